#pragma once
// Blocks at given positions, as gather() and scatter() have them.

#include <sdx/array/index.hpp>

namespace sdx::array::detail {

// Positions as int64. Throws for types that are not integers.
array positions_of(const char* operation, const array& indices, const StreamOrDevice& s = {});

// scatter() into zeros of this shape.
array scatter_zeros(const Shape& shape, const std::vector<array>& indices, const array& updates, const std::vector<int>& axes,
                    const StreamOrDevice& s = {});
// put_along_axis() into zeros of this shape, adding.
array scatter_zeros_along(const Shape& shape, const array& indices, const array& updates, int axis, const StreamOrDevice& s = {});

}  // namespace sdx::array::detail
