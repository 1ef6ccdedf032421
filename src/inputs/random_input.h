#pragma once
// Made-up inputs, for trying a model out.

#include <cstdint>

#include <sdx/session.hpp>

namespace sdx::inputs {

// Both ends are included.
struct IntegerRange {
  std::int64_t low = 0, high = 9;

  bool operator==(const IntegerRange&) const = default;
};

// The range from which integers are drawn: the permitted part of 0 to 9, or the ten permitted values nearest to it.
IntegerRange drawn_from(const IntegerRange& permitted);

// The same on every machine for one seed: floats uniform in [0, 1), integers 0 to 9 (small enough to be an index in most
// vocabularies), bools, strings "a" to "j". Throws Error(not_implemented) for sequences and maps.
Tensor random_tensor(DataType dtype, const Shape& shape, std::uint64_t seed, const IntegerRange& permitted = {});

}  // namespace sdx::inputs
