#include "ops/tensor/movement.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "tensor/types.h"

namespace sdx::ops {

std::int64_t grain_for(std::int64_t bytes_per_item) {
  return std::max<std::int64_t>(1, kMoveGrainBytes / std::max<std::int64_t>(1, bytes_per_item));
}

Tensor widened(const Tensor& t) {
  if (!is_sub_byte(t.dtype())) return t;
  const int bits = bit_width(t.dtype());
  Tensor codes(DataType::uint8, t.shape());
  auto* p = static_cast<std::uint8_t*>(codes.mutable_data());
  for (std::int64_t i = 0; i < t.size(); ++i) p[i] = get_packed(t.data(), bits, i);
  return codes;
}

void narrow(const Tensor& codes, Tensor& packed) {
  const int bits = bit_width(packed.dtype());
  const auto* p = static_cast<const std::uint8_t*>(codes.data());
  void* out = packed.mutable_data();
  if (packed.bytes() != 0) std::memset(out, 0, packed.bytes());
  for (std::int64_t i = 0; i < codes.size(); ++i) set_packed(out, bits, i, p[i]);
}

void copy_all(const Tensor& from, Tensor& to) {
  SDX_ASSERT(from.dtype() == to.dtype() && from.size() == to.size());
  if (from.size() == 0) return;
  if (from.dtype() == DataType::string) {
    std::copy_n(static_cast<const std::string*>(from.data()), from.size(), static_cast<std::string*>(to.mutable_data()));
    return;
  }
  const auto* source = static_cast<const char*>(from.data());
  auto* target = static_cast<char*>(to.mutable_data());
  parallel_for(static_cast<std::int64_t>(from.bytes()), 4 * kMoveGrainBytes, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(target + begin, source + begin, static_cast<std::size_t>(end - begin));
  });
}

void fill_with(Tensor& to, const Tensor& value) {
  if (to.size() == 0) return;
  if (is_sub_byte(to.dtype())) {
    const int bits = bit_width(to.dtype());
    const std::uint8_t code = get_packed(value.data(), bits, 0);
    std::uint8_t byte = 0;
    for (int i = 0; i < 8 / bits; ++i) set_packed(&byte, bits, i, code);
    std::memset(to.mutable_data(), byte, to.bytes());
    return;
  }
  dispatch_unit(to.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T unit{};
    if constexpr (std::is_trivially_copyable_v<T>) {
      std::memcpy(&unit, value.data(), sizeof(T));  // attributes may be unaligned
    } else {
      unit = *static_cast<const T*>(value.data());
    }
    std::fill_n(static_cast<T*>(to.mutable_data()), to.size(), unit);
  });
}

void fill_zero(Tensor& to) {
  if (to.dtype() == DataType::string) {
    std::fill_n(static_cast<std::string*>(to.mutable_data()), to.size(), std::string());
  } else if (to.bytes() != 0) {
    std::memset(to.mutable_data(), 0, to.bytes());
  }
}

}  // namespace sdx::ops
