#pragma once
// Matrices in few bits, in MLX 0.32's formats. Rows are cut into groups; elements of the last axis lie one after the other from
// the lowest bit on in uint32, whatever their width.
//   affine: group 32, 64 (if not given) or 128; 1, 2, 3, 4 (if not given), 5, 6 or 8 bits; element = code * scale + bias, scales
//           and biases of the matrix's type.
//   mxfp4, mxfp8: groups of 32, elements E2M1 or E4M3, scales E8M0 (uint8).
//   nvfp4: groups of 16, elements E2M1, scales E4M3 (uint8); with a global scale (the largest magnitude of all) both are of
//          element * 2688 / global_scale.
// Products are summed in float32.

#include <optional>
#include <string>
#include <vector>

#include <sdx/array/array.hpp>

namespace sdx::array {

// Codes, scales and, if affine, biases. `w` has two axes at least, the last one a multiple of the group.
SDX_API std::vector<array> quantize(const array& w, std::optional<int> group_size = std::nullopt,
                                    std::optional<int> bits = std::nullopt, const std::string& mode = "affine",
                                    const std::optional<array>& global_scale = std::nullopt, StreamOrDevice s = {});
// `dtype`: if not given that of the scales, or bfloat16.
SDX_API array dequantize(const array& w, const array& scales, const std::optional<array>& biases = std::nullopt,
                         std::optional<int> group_size = std::nullopt, std::optional<int> bits = std::nullopt,
                         const std::string& mode = "affine", const std::optional<array>& global_scale = std::nullopt,
                         std::optional<Dtype> dtype = std::nullopt, StreamOrDevice s = {});
// x @ w.T, or x @ w, where w is quantized.
SDX_API array quantized_matmul(const array& x, const array& w, const array& scales,
                               const std::optional<array>& biases = std::nullopt, bool transpose = true,
                               std::optional<int> group_size = std::nullopt, std::optional<int> bits = std::nullopt,
                               const std::string& mode = "affine", StreamOrDevice s = {});
// Products of the matrices that the (broadcast) index arrays pick among the flattened leading axes.
SDX_API array gather_qmm(const array& x, const array& w, const array& scales, const std::optional<array>& biases = std::nullopt,
                         const std::optional<array>& lhs_indices = std::nullopt,
                         const std::optional<array>& rhs_indices = std::nullopt, bool transpose = true,
                         std::optional<int> group_size = std::nullopt, std::optional<int> bits = std::nullopt,
                         const std::string& mode = "affine", const std::optional<array>& global_scale = std::nullopt,
                         bool sorted_indices = false, StreamOrDevice s = {});
// x @ w.T, where x is quantized first, and so is w if it has no scales.
SDX_API array qqmm(const array& x, const array& w, const std::optional<array>& scales = std::nullopt,
                   std::optional<int> group_size = std::nullopt, std::optional<int> bits = std::nullopt,
                   const std::string& mode = "nvfp4", const std::optional<array>& global_scale_x = std::nullopt,
                   const std::optional<array>& global_scale_w = std::nullopt, StreamOrDevice s = {});
SDX_API array gather_qqmm(const array& x, const array& w, const std::optional<array>& scales = std::nullopt,
                          const std::optional<array>& lhs_indices = std::nullopt,
                          const std::optional<array>& rhs_indices = std::nullopt, std::optional<int> group_size = std::nullopt,
                          std::optional<int> bits = std::nullopt, const std::string& mode = "nvfp4",
                          const std::optional<array>& global_scale_x = std::nullopt,
                          const std::optional<array>& global_scale_w = std::nullopt, bool sorted_indices = false,
                          StreamOrDevice s = {});

}  // namespace sdx::array
