#pragma once
// Operations by their name, for the C interface.

#include <optional>
#include <string_view>
#include <vector>

#include <sdx/array.hpp>

namespace sdx::array::detail {

using Unary = array (*)(const array&, StreamOrDevice);
using Binary = array (*)(const array&, const array&, StreamOrDevice);

// Throw Error(invalid_argument), with the closest match, for a name that they do not know.
Unary unary_by_name(std::string_view name);
Binary binary_by_name(std::string_view name);
array reduce_by_name(std::string_view name, const array& a, const std::optional<std::vector<int>>& axes, bool keep);
array random_by_name(std::string_view name, Dtype dtype, const Shape& shape, double a, double b);

}  // namespace sdx::array::detail
