#pragma once
// Products of matrices. All numeric element types, also integers and complex numbers; operands promote to one type. Names,
// arguments and defaults are those of MLX 0.32. float16 and bfloat16 are summed in float32.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sdx/array/array.hpp>

namespace sdx::array {

// The last two axes are matrices, the others broadcast. A vector on the left is a row, on the right a column; that axis goes.
SDX_API array matmul(const array& a, const array& b, StreamOrDevice s = {});
// beta * c + alpha * (a @ b)
SDX_API array addmm(const array& c, const array& a, const array& b, float alpha = 1.0F, float beta = 1.0F, StreamOrDevice s = {});
// Sums over the last axes of both.
SDX_API array inner(const array& a, const array& b, StreamOrDevice s = {});
// The outer product of the flattened arrays.
SDX_API array outer(const array& a, const array& b, StreamOrDevice s = {});
// Sums of products along an axis; the first operand's complex numbers are conjugated.
SDX_API array vecdot(const array& a, const array& b, int axis = -1, StreamOrDevice s = {});
// Sums over a's last `axes` axes and b's first, or over the pairs of axes.
SDX_API array tensordot(const array& a, const array& b, int axes = 2, StreamOrDevice s = {});
SDX_API array tensordot(const array& a, const array& b, const std::vector<int>& axes_a, const std::vector<int>& axes_b,
                        StreamOrDevice s = {});

// Einstein's summation: "ij,jk->ik", with "..." for further axes. Contracts two operands at a time in the order of einsum_path().
SDX_API array einsum(const std::string& subscripts, const std::vector<array>& operands, StreamOrDevice s = {});
// The order: which operands are contracted next (they are removed; the result is appended); and a description of the costs.
SDX_API std::pair<std::vector<std::vector<int>>, std::string> einsum_path(const std::string& subscripts,
                                                                          const std::vector<array>& operands);

// a @ b in blocks of block_size (32 or 64), each multiplied by its element of the masks; bool masks switch blocks off.
SDX_API array block_masked_mm(const array& a, const array& b, int block_size = 64,
                              const std::optional<array>& mask_out = std::nullopt,
                              const std::optional<array>& mask_lhs = std::nullopt,
                              const std::optional<array>& mask_rhs = std::nullopt, StreamOrDevice s = {});
// Products of the matrices that the (broadcast) index arrays pick among the flattened leading axes.
SDX_API array gather_mm(const array& a, const array& b, const std::optional<array>& lhs_indices = std::nullopt,
                        const std::optional<array>& rhs_indices = std::nullopt, bool sorted_indices = false,
                        StreamOrDevice s = {});
// a[:, from:to] @ b[from:to] for each (from, to) of segments[..., 2].
SDX_API array segmented_mm(const array& a, const array& b, const array& segments, StreamOrDevice s = {});
// Multiplies by the Hadamard matrix of size m * 2^k (m = 1, 12, 20, 28) along the last axis. scale: 1 / sqrt(size) if not given.
SDX_API array hadamard_transform(const array& a, std::optional<float> scale = std::nullopt, StreamOrDevice s = {});
// The convolution of two vectors. Modes: "full", "valid", "same".
SDX_API array convolve(const array& a, const array& v, const std::string& mode = "full", StreamOrDevice s = {});

}  // namespace sdx::array
