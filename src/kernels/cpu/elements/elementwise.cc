#include "kernels/cpu/elements/elementwise.h"

#include <algorithm>

#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/cpu/elements/halves.h"
#include "kernels/cpu/elements/vector_math.h"

namespace sdx::cpu {
namespace {

// About 10 microseconds of plain arithmetic; a thread gets less of what calls the C library.
constexpr std::int64_t kGrain = 32768, kCallGrain = 2048;
// 16-bit floats go through float32 in parts that stay in the first-level cache.
constexpr std::int64_t kPart = 1024;

std::int64_t width(DataType type) { return bit_width(type) / 8; }

const char* at(const void* p, std::int64_t bytes) { return static_cast<const char*>(p) + bytes; }
char* at(void* p, std::int64_t bytes) { return static_cast<char*>(p) + bytes; }

void half_map(UnaryRow row, DataType type, bool to_bool, const void* x, void* y, std::int64_t n) {
  float in[kPart], out[kPart];
  for (std::int64_t i = 0; i < n; i += kPart) {
    const std::int64_t part = std::min(kPart, n - i);
    widen(type, at(x, i * 2), in, part);
    row(in, to_bool ? static_cast<void*>(at(y, i)) : out, part);
    if (!to_bool) narrow(type, out, at(y, i * 2), part);
  }
}

void half_pair(BinaryRow row, DataType type, bool to_bool, const void* a, std::int64_t a_step, const void* b, std::int64_t b_step,
               void* y, std::int64_t n) {
  float left[kPart], right[kPart], out[kPart];
  if (a_step == 0) widen(type, a, left, 1);
  if (b_step == 0) widen(type, b, right, 1);
  for (std::int64_t i = 0; i < n; i += kPart) {
    const std::int64_t part = std::min(kPart, n - i);
    if (a_step != 0) widen(type, at(a, i * 2), left, part);
    if (b_step != 0) widen(type, at(b, i * 2), right, part);
    row(left, a_step, right, b_step, to_bool ? static_cast<void*>(at(y, i)) : out, part);
    if (!to_bool) narrow(type, out, at(y, i * 2), part);
  }
}

DataType computed(DataType type) { return is_half(type) ? DataType::float32 : type; }

template <class Fn, class Row>
Row or_fail(Row row, Fn fn, DataType type) {
  if (row == nullptr) fail(ErrorCode::not_implemented, "element function {} of {}", static_cast<int>(fn), name(type));
  return row;
}

// Rows of one function and type, 16-bit floats included.
class PairRows {
 public:
  PairRows(BinaryFn fn, DataType type)
      : row_(or_fail(binary_row(fn, computed(type)), fn, type)),
        type_(type),
        to_bool_(gives_bool(fn)),
        in_(width(type)),
        out_(width(result_type_of(fn, type))),
        grain_(plain_binary_row(fn, computed(type)) != nullptr ? kGrain : kCallGrain) {}
  std::int64_t grain() const { return grain_; }
  // Computes one row; places are counted in elements.
  void operator()(const void* a, std::int64_t a_at, std::int64_t a_step, const void* b, std::int64_t b_at, std::int64_t b_step,
                  void* y, std::int64_t y_at, std::int64_t n) const {
    const void *left = at(a, a_at * in_), *right = at(b, b_at * in_);
    void* to = at(y, y_at * out_);
    if (is_half(type_)) return half_pair(row_, type_, to_bool_, left, a_step, right, b_step, to, n);
    row_(left, a_step, right, b_step, to, n);
  }

 private:
  BinaryRow row_;
  DataType type_;
  bool to_bool_;
  std::int64_t in_, out_, grain_;
};

}  // namespace

UnaryRow unary_row(UnaryFn fn, DataType type) {
  if (UnaryRow row = plain_unary_row(fn, type)) return row;
  if (UnaryRow row = vector_math().unary(fn, type)) return row;
  return real_math_row(fn, type);
}

BinaryRow binary_row(BinaryFn fn, DataType type) {
  if (BinaryRow row = plain_binary_row(fn, type)) return row;
  if (BinaryRow row = vector_math().binary(fn, type)) return row;
  return real_math_row(fn, type);
}

DataType result_type_of(UnaryFn fn, DataType type) {
  if (gives_bool(fn)) return DataType::boolean;
  if (fn == UnaryFn::abs || fn == UnaryFn::real || fn == UnaryFn::imag) {
    if (type == DataType::complex64) return DataType::float32;
    if (type == DataType::complex128) return DataType::float64;
  }
  return type;
}

DataType result_type_of(BinaryFn fn, DataType type) { return gives_bool(fn) ? DataType::boolean : type; }

bool supports(UnaryFn fn, DataType type) { return unary_row(fn, computed(type)) != nullptr; }
bool supports(BinaryFn fn, DataType type) { return binary_row(fn, computed(type)) != nullptr; }

void apply(UnaryFn fn, DataType type, const void* x, void* y, std::int64_t n) {
  const UnaryRow row = or_fail(unary_row(fn, computed(type)), fn, type);
  const bool plain = plain_unary_row(fn, computed(type)) != nullptr;
  const std::int64_t in = width(type), out = width(result_type_of(fn, type));
  parallel_for(n, plain ? kGrain : kCallGrain, [&](std::int64_t begin, std::int64_t end) {
    const void* from = at(x, begin * in);
    void* to = at(y, begin * out);
    if (is_half(type)) return half_map(row, type, gives_bool(fn), from, to, end - begin);
    row(from, to, end - begin);
  });
}

void apply(BinaryFn fn, DataType type, const RowPlan<2>& plan, const void* a, const void* b, void* y) {
  const PairRows rows(fn, type);
  parallel_rows(plan, rows.grain(), [&](const std::int64_t(&from)[2], std::int64_t to, std::int64_t n) {
    rows(a, from[0], plan.inner_step[0], b, from[1], plan.inner_step[1], y, to, n);
  });
}

void select(int bytes, const RowPlan<3>& plan, const std::uint8_t* condition, const void* a, const void* b, void* y) {
  const SelectRow row = select_row(bytes);
  parallel_rows(plan, kGrain, [&](const std::int64_t(&from)[3], std::int64_t to, std::int64_t n) {
    row(condition + from[0], plan.inner_step[0], at(a, from[1] * bytes), plan.inner_step[1], at(b, from[2] * bytes),
        plan.inner_step[2], at(y, to * bytes), n);
  });
}

void clip(DataType type, const void* low, const void* high, const void* x, void* y, std::int64_t n) {
  const PairRows above(BinaryFn::maximum, type), below(BinaryFn::minimum, type);
  parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; i += kPart) {
      const std::int64_t part = std::min(kPart, end - i);
      if (low != nullptr) above(x, i, 1, low, 0, 0, y, i, part);
      if (high != nullptr) below(low != nullptr ? y : x, i, 1, high, 0, 0, y, i, part);
    }
  });
}

namespace {

template <class T>
bool zero_among(const void* x, std::int64_t n) {
  const auto* p = static_cast<const T*>(x);
  int found = 0;
  for (std::int64_t i = 0; i < n; ++i) found |= static_cast<int>(p[i] == 0);
  return found != 0;
}

}  // namespace

bool has_zero(DataType type, const void* x, std::int64_t n) {
  switch (width(type)) {
    case 1: return zero_among<std::uint8_t>(x, n);
    case 2: return zero_among<std::uint16_t>(x, n);
    case 4: return zero_among<std::uint32_t>(x, n);
    default: return zero_among<std::uint64_t>(x, n);
  }
}

}  // namespace sdx::cpu
