#pragma once
// What operations over axes have in common.

#include <cstdint>
#include <vector>

#include <sdx/array/reduce.hpp>

#include "kernels/cpu/order/reduce.h"
#include "tensor/halves.h"

namespace sdx::array::detail {

// Without the axes `over` (sorted), or with extents of 1 there.
Shape reduced_shape(const Shape& shape, const std::vector<std::int64_t>& over, bool keepdims);
// Axes [first, last] between those before and those behind.
cpu::Lanes lanes_of(const Shape& shape, std::int64_t first, std::int64_t last);
// Elements that go into one result.
std::int64_t count_over(const array& a, const Axes& axes, const char* operation);

}  // namespace sdx::array::detail
