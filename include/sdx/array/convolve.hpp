#pragma once
// Convolutions with channels last: inputs [N, spatial…, C], weights [O, spatial…, C / groups], results [N, spatial…, O]. float32
// and float64; float16 and bfloat16 are computed in float32. Names, arguments and defaults are those of MLX 0.32; what Python
// takes as a number or a tuple is a list here: one number for each spatial axis, or one for all.

#include <optional>
#include <vector>

#include <sdx/array/array.hpp>

namespace sdx::array {

using Extents = std::vector<int>;

SDX_API array conv1d(const array& input, const array& weight, int stride = 1, int padding = 0, int dilation = 1, int groups = 1,
                     StreamOrDevice s = {});
SDX_API array conv2d(const array& input, const array& weight, const Extents& stride = {1}, const Extents& padding = {0},
                     const Extents& dilation = {1}, int groups = 1, StreamOrDevice s = {});
SDX_API array conv3d(const array& input, const array& weight, const Extents& stride = {1}, const Extents& padding = {0},
                     const Extents& dilation = {1}, int groups = 1, StreamOrDevice s = {});

// Weights are [C_out, spatial…, C_in / groups] here too. output_padding extends the results at the end.
SDX_API array conv_transpose1d(const array& input, const array& weight, int stride = 1, int padding = 0, int dilation = 1,
                               int output_padding = 0, int groups = 1, StreamOrDevice s = {});
SDX_API array conv_transpose2d(const array& input, const array& weight, const Extents& stride = {1}, const Extents& padding = {0},
                               const Extents& dilation = {1}, const Extents& output_padding = {0}, int groups = 1,
                               StreamOrDevice s = {});
SDX_API array conv_transpose3d(const array& input, const array& weight, const Extents& stride = {1}, const Extents& padding = {0},
                               const Extents& dilation = {1}, const Extents& output_padding = {0}, int groups = 1,
                               StreamOrDevice s = {});

// One to three spatial axes. padding_high defaults to padding. input_dilation d inserts d - 1 zeros between elements of the
// input; `flip` flips the weights, as in mathematical convolution.
SDX_API array conv_general(const array& input, const array& weight, const Extents& stride = {1}, const Extents& padding = {0},
                           const std::optional<Extents>& padding_high = std::nullopt, const Extents& kernel_dilation = {1},
                           const Extents& input_dilation = {1}, int groups = 1, bool flip = false, StreamOrDevice s = {});

}  // namespace sdx::array
