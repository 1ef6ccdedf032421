#include "runner/random_input.h"

#include <string>

#include "tensor/element.h"

namespace sdx {
namespace {

// splitmix64 (Steele, Lea, Flood 2014): the standard library's distributions differ between implementations.
std::uint64_t next(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9E3779B97F4A7C15ULL);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

}  // namespace

Tensor random_tensor(DataType dtype, const Shape& shape, std::uint64_t seed) {
  Tensor t(dtype, shape);
  std::uint64_t state = seed;
  if (dtype == DataType::string) {
    for (std::string& s : t.mutable_values<std::string>()) s = std::string(1, static_cast<char>('a' + next(state) % 10));
    return t;
  }
  for (std::int64_t i = 0; i < t.size(); ++i) {
    const std::uint64_t bits = next(state);
    if (dtype == DataType::boolean) {
      set_element(t, i, static_cast<double>(bits >> 63));
    } else if (is_integer(dtype)) {
      set_element_int(t, i, static_cast<std::int64_t>(bits % 10));
    } else {
      set_element(t, i, static_cast<double>(bits >> 11) * 0x1p-53);
    }
  }
  return t;
}

Shape concrete_shape(const ValueSpec& spec, const std::vector<std::pair<std::string, std::int64_t>>& dimensions) {
  if (!spec.has_shape) return {1};
  Shape shape = spec.shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] >= 0) continue;
    shape[i] = 1;
    for (const auto& [symbol, extent] : dimensions) {
      if (i < spec.symbols.size() && spec.symbols[i] == symbol) shape[i] = extent;
    }
  }
  return shape;
}

}  // namespace sdx
