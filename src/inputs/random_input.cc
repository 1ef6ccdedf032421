#include "inputs/random_input.h"

#include <algorithm>
#include <string>

#include "base/splitmix64.h"
#include "tensor/element.h"

namespace sdx::inputs {

IntegerRange drawn_from(const IntegerRange& permitted) {
  constexpr IntegerRange kUsual;
  if (permitted.low > kUsual.high) return {permitted.low, std::min(permitted.high, permitted.low + kUsual.high)};
  if (permitted.high < kUsual.low) return {std::max(permitted.low, permitted.high - kUsual.high), permitted.high};
  return {std::max(permitted.low, kUsual.low), std::min(permitted.high, kUsual.high)};
}

Tensor random_tensor(DataType dtype, const Shape& shape, std::uint64_t seed, const IntegerRange& permitted) {
  const IntegerRange range = drawn_from(permitted);
  const auto count = static_cast<std::uint64_t>(range.high - range.low) + 1;
  Tensor t(dtype, shape);
  SplitMix64 random(seed);
  if (dtype == DataType::string) {
    for (std::string& s : t.mutable_values<std::string>()) s = std::string(1, static_cast<char>('a' + random.bits() % 10));
    return t;
  }
  for (std::int64_t i = 0; i < t.size(); ++i) {
    const std::uint64_t bits = random.bits();
    if (dtype == DataType::boolean) {
      set_element(t, i, static_cast<double>(bits >> 63));
    } else if (is_integer(dtype)) {
      set_element_int(t, i, range.low + static_cast<std::int64_t>(bits % count));
    } else {
      set_element(t, i, static_cast<double>(bits >> 11) * 0x1p-53);
    }
  }
  return t;
}

}  // namespace sdx::inputs
