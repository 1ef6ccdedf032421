#pragma once
// Made-up inputs, for trying a model out.

#include <cstdint>

#include <sdx/session.hpp>

namespace sdx::inputs {

// Both ends belong to it.
struct IntegerRange {
  std::int64_t low = 0, high = 9;

  bool operator==(const IntegerRange&) const = default;
};

// What integers are drawn from: the range's part in 0 to 9, or the ten of its values that are nearest.
IntegerRange drawn_from(const IntegerRange& permitted);

// The same on every machine for one seed: floats uniform in [0, 1), integers 0 to 9 (small enough to be an index in most
// vocabularies), bools, strings "a" to "j". Throws Error(not_implemented) for sequences and maps.
Tensor random_tensor(DataType dtype, const Shape& shape, std::uint64_t seed, const IntegerRange& permitted = {});

}  // namespace sdx::inputs
