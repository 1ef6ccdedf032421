#pragma once
// Axis arithmetic shared by operators.

#include <cstdint>
#include <span>
#include <vector>

#include <sdx/tensor.hpp>

#include "base/tools_api.h"
#include "graph/dim.h"

namespace sdx::ops {

// Maps an axis in [-rank, rank) to [0, rank). Throws Error(invalid_model) otherwise.
std::int64_t normalize_axis(std::int64_t axis, std::size_t rank);
// The same for a list; also refuses duplicates.
std::vector<std::int64_t> normalize_axes(std::span<const std::int64_t> axes, std::size_t rank);

// Product of shape[begin..end).
SDX_TOOLS_API std::int64_t product(const Shape& shape, std::size_t begin, std::size_t end);
Dim product(const SymShape& shape, std::size_t begin, std::size_t end);

// Row-major strides in elements.
SDX_TOOLS_API std::vector<std::int64_t> strides_of(const Shape& shape);

}  // namespace sdx::ops
