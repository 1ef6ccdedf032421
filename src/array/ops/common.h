#pragma once
// What building operations have in common: types, shapes, axes, messages.

#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "array/kind.h"
#include "array/node.h"
#include "base/error.h"

namespace sdx::array::detail {

// Error(invalid_argument): "[add] shapes [2,3] and [4] do not broadcast".
template <class... Args>
[[noreturn]] void refuse(std::string_view operation, fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorCode::invalid_argument, "[{}] {}", operation, fmt::format(format, std::forward<Args>(args)...));
}

// The type that both promote to, as MLX's promote_types().
Dtype promote(Dtype a, Dtype b);
bool is_complex(Dtype dtype);
bool is_inexact(Dtype dtype);       // floating or complex
Dtype at_least_float(Dtype dtype);  // float32 for bool and integers

// The shape to which both broadcast.
Shape broadcast(std::string_view operation, const Shape& a, const Shape& b);

// 0 <= axis < rank; negative ones count from the end.
int axis_of(std::string_view operation, std::int64_t axis, std::size_t rank);
// The same for several, sorted, without repetition; an empty optional means all.
std::vector<std::int64_t> axes_of(std::string_view operation, const std::optional<std::vector<int>>& axes, std::size_t rank);

// a + b and a * b: extents and positions of a result; refused where 64 bits do not hold them.
std::int64_t extent_sum(std::string_view operation, std::int64_t a, std::int64_t b);
std::int64_t extent_product(std::string_view operation, std::int64_t a, std::int64_t b);

// `a` with another element type; `a` itself where it has it.
array as_type(const array& a, Dtype dtype, const StreamOrDevice& s = {});
// `gradient` summed to the shape from which it was broadcast.
array sum_to(const array& gradient, const Shape& shape);

}  // namespace sdx::array::detail
