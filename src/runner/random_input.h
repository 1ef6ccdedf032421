#pragma once
// Made-up inputs, for trying a model out.

#include <cstdint>

#include <sdx/session.hpp>

namespace sdx {

// The same on every machine for one seed: floats uniform in [0, 1), integers 0 to 9 (small enough to be an index in most
// vocabularies), bools, strings "a" to "j". Throws Error(not_implemented) for sequences and maps.
Tensor random_tensor(DataType dtype, const Shape& shape, std::uint64_t seed);

// The spec's shape with extents that are not fixed replaced: by the one in `dimensions` that has the axis's symbol, else by 1.
// An unknown rank becomes [1].
Shape concrete_shape(const ValueSpec& spec, const std::vector<std::pair<std::string, std::int64_t>>& dimensions);

}  // namespace sdx
