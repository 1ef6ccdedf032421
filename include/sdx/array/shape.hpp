#pragma once
// Reshapes, reorders, joins and splits arrays of any element type. Negative axes count from the end. Names, arguments and
// defaults are those of MLX 0.32. Errors: Error(invalid_argument) when the operation is built.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sdx/array/array.hpp>

namespace sdx::array {

// One extent may be -1: it is inferred.
SDX_API array reshape(const array& a, Shape shape, StreamOrDevice s = {});
// Merges axes start_axis to end_axis into one; a scalar gets one axis.
SDX_API array flatten(const array& a, int start_axis = 0, int end_axis = -1, StreamOrDevice s = {});
// Splits axis `axis` into several; one extent may be -1.
SDX_API array unflatten(const array& a, int axis, Shape shape, StreamOrDevice s = {});
// Removes axes of extent 1: those given, or all.
SDX_API array squeeze(const array& a, const std::optional<std::vector<int>>& axis = std::nullopt, StreamOrDevice s = {});
SDX_API array squeeze(const array& a, int axis, StreamOrDevice s = {});
// Adds axes of extent 1 at these positions of the result.
SDX_API array expand_dims(const array& a, const std::vector<int>& axis, StreamOrDevice s = {});
SDX_API array expand_dims(const array& a, int axis, StreamOrDevice s = {});
SDX_API array atleast_1d(const array& a, StreamOrDevice s = {});
SDX_API array atleast_2d(const array& a, StreamOrDevice s = {});
SDX_API array atleast_3d(const array& a, StreamOrDevice s = {});

SDX_API array broadcast_to(const array& a, const Shape& shape, StreamOrDevice s = {});
SDX_API std::vector<array> broadcast_arrays(const std::vector<array>& arrays, StreamOrDevice s = {});
SDX_API Shape broadcast_shapes(const std::vector<Shape>& shapes);

// Without axes, reverses their order.
SDX_API array transpose(const array& a, const std::optional<std::vector<int>>& axes = std::nullopt, StreamOrDevice s = {});
SDX_API array permute_dims(const array& a, const std::optional<std::vector<int>>& axes = std::nullopt, StreamOrDevice s = {});
// The last two axes.
SDX_API array matrix_transpose(const array& a, StreamOrDevice s = {});
SDX_API array moveaxis(const array& a, int source, int destination, StreamOrDevice s = {});
SDX_API array swapaxes(const array& a, int axis1, int axis2, StreamOrDevice s = {});

// Promotes all to one element type. Without an axis, flattens all arrays first.
SDX_API array concatenate(const std::vector<array>& arrays, std::optional<int> axis = 0, StreamOrDevice s = {});
SDX_API array concat(const std::vector<array>& arrays, std::optional<int> axis = 0, StreamOrDevice s = {});
SDX_API array stack(const std::vector<array>& arrays, int axis = 0, StreamOrDevice s = {});
// Into equal parts, or at these positions.
SDX_API std::vector<array> split(const array& a, int sections, int axis = 0, StreamOrDevice s = {});
SDX_API std::vector<array> split(const array& a, const Shape& indices, int axis = 0, StreamOrDevice s = {});
SDX_API std::vector<array> unstack(const array& a, int axis = 0, StreamOrDevice s = {});

// Without an axis, repeats the flattened array.
SDX_API array repeat(const array& a, int repeats, std::optional<int> axis = std::nullopt, StreamOrDevice s = {});
SDX_API array tile(const array& a, const std::vector<int>& reps, StreamOrDevice s = {});
SDX_API array flip(const array& a, const std::optional<std::vector<int>>& axis = std::nullopt, StreamOrDevice s = {});
// One shift for each axis, or one for all; without axes the flattened array is shifted.
SDX_API array roll(const array& a, const Shape& shift, const std::optional<std::vector<int>>& axis = std::nullopt,
                   StreamOrDevice s = {});

// `pad_width`: before and after, for each axis, or one pair for all. Modes: "constant", "edge", "reflect", "symmetric".
SDX_API array pad(const array& a, const std::vector<std::pair<int, int>>& pad_width, const std::string& mode = "constant",
                  const array& constant_values = array(0), StreamOrDevice s = {});
SDX_API array pad(const array& a, int pad_width, const std::string& mode = "constant", const array& constant_values = array(0),
                  StreamOrDevice s = {});

// The diagonal becomes the last axis.
SDX_API array diagonal(const array& a, int offset = 0, int axis1 = 0, int axis2 = 1, StreamOrDevice s = {});
// The diagonal of a matrix, or the matrix with this diagonal.
SDX_API array diag(const array& a, int k = 0, StreamOrDevice s = {});
// `dtype` undefined: the type of `a`.
SDX_API array trace(const array& a, int offset = 0, int axis1 = 0, int axis2 = 1, Dtype dtype = Dtype::undefined,
                    StreamOrDevice s = {});
SDX_API array kron(const array& a, const array& b, StreamOrDevice s = {});

// Returns `a` itself, because all arrays are row-major and without gaps.
SDX_API array contiguous(const array& a, bool allow_col_major = false, StreamOrDevice s = {});
// Element [i, j, …] is that of the flattened `a` at offset + i * strides[0] + j * strides[1] + …, which must exist. Without a
// shape: that of `a`; without strides: those of a row-major array of the shape.
SDX_API array as_strided(const array& a, const std::optional<Shape>& shape = std::nullopt,
                         const std::optional<Shape>& strides = std::nullopt, std::int64_t offset = 0, StreamOrDevice s = {});

}  // namespace sdx::array
