#pragma once
// Made-up inputs, for trying a model out.

#include <cstdint>

#include <sdx/session.hpp>

namespace sdx::inputs {

// The same on every machine for one seed: floats uniform in [0, 1), integers 0 to 9 (small enough to be an index in most
// vocabularies), bools, strings "a" to "j". Throws Error(not_implemented) for sequences and maps.
Tensor random_tensor(DataType dtype, const Shape& shape, std::uint64_t seed);

}  // namespace sdx::inputs
