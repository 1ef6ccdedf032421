#include "kernels/cpu/elementwise/convert.h"

#include <algorithm>

#include "base/copy_bytes.h"
#include "base/thread_pool.h"
#include "kernels/cpu/elementwise/cast_simd.h"
#include "kernels/cpu/elementwise/convert_simd.h"
#include "tensor/halves.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kGrain = 32768;

const char* at16(const void* p, std::int64_t i) { return static_cast<const char*>(p) + 2 * i; }
char* at16(void* p, std::int64_t i) { return static_cast<char*>(p) + 2 * i; }

constexpr std::int64_t kBlock = 1024;  // elements on the way to another type: two blocks stay in the first-level cache

constexpr DataType kSingle = DataType::float32, kDouble = DataType::float64;

bool is_wide_integer(DataType t) {
  return t == DataType::int32 || t == DataType::uint32 || t == DataType::int64 || t == DataType::uint64;
}

// The loops, each over what the one before leaves, that bring elements from one type to another without rounding twice.
class CastPath {
 public:
  CastPath(DataType from, DataType to) : at_(from) {
    if (is_half(from)) hop(kSingle);
    if (from == DataType::int16 || from == DataType::uint16) hop(DataType::int32);
    if (from == DataType::uint32) hop(DataType::int64);
    if (from == DataType::uint64 && !is_floating(to)) at_ = DataType::int64;  // the same bits
    is_half(to) ? to_half(to) : to_number(to);
  }

  void run(const char* x, char* y, std::int64_t n, std::int64_t in, std::int64_t out) const {
    if (count_ == 0) return copy_bytes(y, x, static_cast<std::size_t>(n * out));
    if (count_ == 1) return hops_[0](x, y, n);
    alignas(64) char buffers[2][kBlock * 8];
    for (std::int64_t i = 0; i < n; i += kBlock) {
      const std::int64_t len = std::min(kBlock, n - i);
      const char* from = x + i * in;
      for (std::size_t k = 0; k < count_; ++k) {
        char* const to = k + 1 == count_ ? y + i * out : buffers[k % 2];
        hops_[k](from, to, len);
        from = to;
      }
    }
  }

 private:
  // Unsigned integers from the signed ones, which have the same bits.
  void to_number(DataType to) {
    if (to == DataType::int16 || to == DataType::uint16) {
      hop(DataType::int32);
      return hop(DataType::int16);
    }
    if (to == DataType::uint32 && is_floating(at_)) hop(DataType::int64);
    if (to == DataType::uint32) return hop(DataType::int32);
    hop(to == DataType::uint64 && !is_floating(at_) ? DataType::int64 : to);
  }

  // By way of float32 where that holds the numbers, or all that the type holds: integers that float32 rounds are beyond float16's
  // range, where both roundings give infinity.
  void to_half(DataType to) {
    if (at_ == kDouble || (to == DataType::bfloat16 && is_wide_integer(at_))) {
      hop(kDouble);
      add(odd_row(), kSingle);
    }
    hop(kSingle);
    hop(to);
  }

  void hop(DataType to) {
    if (at_ != to) add(row(at_, to), to);
  }

  void add(CastRow row, DataType to) {
    hops_[count_++] = row;
    at_ = to;
  }

  static CastRow row(DataType from, DataType to) {
    if (from == DataType::float16)
      return [](const void* x, void* y, std::int64_t n) { convert_kernels().half_to_f32(x, static_cast<float*>(y), n); };
    if (from == DataType::bfloat16)
      return [](const void* x, void* y, std::int64_t n) { convert_kernels().bfloat_to_f32(x, static_cast<float*>(y), n); };
    if (to == DataType::float16)
      return [](const void* x, void* y, std::int64_t n) { convert_kernels().f32_to_half(static_cast<const float*>(x), y, n); };
    if (to == DataType::bfloat16)
      return [](const void* x, void* y, std::int64_t n) { convert_kernels().f32_to_bfloat(static_cast<const float*>(x), y, n); };
    return cast_row(from, to);
  }

  CastRow hops_[5] = {};
  std::size_t count_ = 0;
  DataType at_;
};

}  // namespace

void half_to_f32(const void* x, float* y, std::int64_t n) {
  const auto f = convert_kernels().half_to_f32;
  parallel_for(n, kGrain, [&](std::int64_t b, std::int64_t e) { f(at16(x, b), y + b, e - b); });
}
void f32_to_half(const float* x, void* y, std::int64_t n) {
  const auto f = convert_kernels().f32_to_half;
  parallel_for(n, kGrain, [&](std::int64_t b, std::int64_t e) { f(x + b, at16(y, b), e - b); });
}
void bfloat_to_f32(const void* x, float* y, std::int64_t n) {
  const auto f = convert_kernels().bfloat_to_f32;
  parallel_for(n, kGrain, [&](std::int64_t b, std::int64_t e) { f(at16(x, b), y + b, e - b); });
}
void f32_to_bfloat(const float* x, void* y, std::int64_t n) {
  const auto f = convert_kernels().f32_to_bfloat;
  parallel_for(n, kGrain, [&](std::int64_t b, std::int64_t e) { f(x + b, at16(y, b), e - b); });
}

bool can_cast(DataType from, DataType to) {
  const auto known = [](DataType t) {
    return t == DataType::boolean || is_integer(t) || is_half(t) || t == kSingle || t == kDouble;
  };
  return known(from) && known(to) && bit_width(from) >= 8 && bit_width(to) >= 8;
}

void cast_elements(DataType from, DataType to, const void* x, void* y, std::int64_t n) {
  const std::int64_t in = bit_width(from) / 8, out = bit_width(to) / 8;
  const CastPath path(from, to);
  parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    path.run(static_cast<const char*>(x) + begin * in, static_cast<char*>(y) + begin * out, end - begin, in, out);
  });
}

}  // namespace sdx::cpu
