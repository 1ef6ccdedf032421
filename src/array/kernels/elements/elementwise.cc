#include "array/kernels/elements/elementwise.h"

#include <algorithm>
#include <complex>

#include "array/kernels/elements/rows.h"
#include "array/kernels/elements/vector_math.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/cpu/elementwise/convert.h"
#include "kernels/cpu/elementwise/typed_simd.h"

namespace sdx::array::detail {
namespace {

// About 10 microseconds of plain arithmetic; a thread gets less of what calls the C library.
constexpr std::int64_t kGrain = 32768, kCallGrain = 2048;
// Halves go through float32 in parts that stay in the first cache.
constexpr std::int64_t kPart = 1024;

bool is_half(DataType type) { return type == DataType::float16 || type == DataType::bfloat16; }

std::int64_t width(DataType type) { return bit_width(type) / 8; }

const char* at(const void* p, std::int64_t bytes) { return static_cast<const char*>(p) + bytes; }
char* at(void* p, std::int64_t bytes) { return static_cast<char*>(p) + bytes; }

void widen(DataType type, const void* x, float* y, std::int64_t n) {
  type == DataType::float16 ? cpu::half_to_f32(x, y, n) : cpu::bfloat_to_f32(x, y, n);
}

void narrow(DataType type, const float* x, void* y, std::int64_t n) {
  type == DataType::float16 ? cpu::f32_to_half(x, y, n) : cpu::f32_to_bfloat(x, y, n);
}

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

template <class Fn>
[[noreturn]] void lacks(Fn fn, DataType type) {
  fail(ErrorCode::not_implemented, "element function {} of {}", static_cast<int>(fn), name(type));
}

}  // namespace

UnaryRow unary_row(UnaryFn fn, DataType type) {
  if (UnaryRow row = plain_unary_row(fn, type)) return row;
  if (UnaryRow row = vector_math().unary(fn, type)) return row;
  if (UnaryRow row = real_math_row(fn, type)) return row;
  return complex_row(fn, type);
}

BinaryRow binary_row(BinaryFn fn, DataType type) {
  if (BinaryRow row = plain_binary_row(fn, type)) return row;
  if (BinaryRow row = vector_math().binary(fn, type)) return row;
  if (BinaryRow row = real_math_row(fn, type)) return row;
  return complex_row(fn, type);
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

void apply(UnaryFn fn, const Tensor& x, Tensor& y) {
  const DataType type = x.dtype();
  const DataType computed = is_half(type) ? DataType::float32 : type;
  const bool plain = plain_unary_row(fn, computed) != nullptr;
  const UnaryRow row = unary_row(fn, computed);
  if (row == nullptr) lacks(fn, type);
  const std::int64_t in = width(type), out = width(result_type_of(fn, type));
  const void* px = x.data();
  void* py = y.mutable_data();
  parallel_for(x.size(), plain ? kGrain : kCallGrain, [&](std::int64_t begin, std::int64_t end) {
    if (is_half(type)) {
      half_map(row, type, gives_bool(fn), at(px, begin * in), at(py, begin * out), end - begin);
    } else {
      row(at(px, begin * in), at(py, begin * out), end - begin);
    }
  });
}

void apply(BinaryFn fn, const Tensor& a, const Tensor& b, Tensor& y) {
  const DataType type = a.dtype();
  const DataType computed = is_half(type) ? DataType::float32 : type;
  const bool plain = plain_binary_row(fn, computed) != nullptr;
  const BinaryRow row = binary_row(fn, computed);
  if (row == nullptr) lacks(fn, type);
  const std::int64_t in = width(type), out = width(result_type_of(fn, type));
  const void *pa = a.data(), *pb = b.data();
  void* py = y.mutable_data();
  for_rows<2>(y.shape(), {&a.shape(), &b.shape()}, plain ? kGrain : kCallGrain,
              [&](const std::int64_t(&from)[2], const std::int64_t(&step)[2], std::int64_t to, std::int64_t n) {
                const void* left = at(pa, from[0] * in);
                const void* right = at(pb, from[1] * in);
                if (is_half(type)) {
                  half_pair(row, type, gives_bool(fn), left, step[0], right, step[1], at(py, to * out), n);
                } else {
                  row(left, step[0], right, step[1], at(py, to * out), n);
                }
              });
}

namespace {

struct Wide {
  std::uint64_t low, high;
};

void select_wide(const std::uint8_t* condition, std::int64_t condition_step, const void* a, std::int64_t a_step, const void* b,
                 std::int64_t b_step, void* y, std::int64_t n) {
  const auto* pa = static_cast<const Wide*>(a);
  const auto* pb = static_cast<const Wide*>(b);
  auto* py = static_cast<Wide*>(y);
  for (std::int64_t i = 0; i < n; ++i) py[i] = condition[i * condition_step] != 0 ? pa[i * a_step] : pb[i * b_step];
}

}  // namespace

void select(const Tensor& condition, const Tensor& a, const Tensor& b, Tensor& y) {
  const std::int64_t bytes = width(y.dtype());
  const cpu::SelectRow row = bytes == 16 ? &select_wide : cpu::typed_kernels().select(static_cast<int>(bytes));
  const auto* pc = static_cast<const std::uint8_t*>(condition.data());
  const void *pa = a.data(), *pb = b.data();
  void* py = y.mutable_data();
  for_rows<3>(y.shape(), {&condition.shape(), &a.shape(), &b.shape()}, kGrain,
              [&](const std::int64_t(&from)[3], const std::int64_t(&step)[3], std::int64_t to, std::int64_t n) {
                row(pc + from[0], step[0], at(pa, from[1] * bytes), step[1], at(pb, from[2] * bytes), step[2], at(py, to * bytes),
                    n);
              });
}

}  // namespace sdx::array::detail
