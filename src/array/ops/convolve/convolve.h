#pragma once
// Convolutions in settled form.

#include <sdx/array/convolve.hpp>

namespace sdx::array::detail {

// `head`: spatial axes, groups, strides, dilations, padding at the beginning (one number for each axis). The last argument is the
// result's shape. Of one floating type, 32 or 64 bits.
array conv(const array& x, const array& w, const std::vector<std::int64_t>& head, const Shape& y, const StreamOrDevice& s = {});
array conv_input(const array& y, const array& w, const std::vector<std::int64_t>& head, const Shape& x,
                 const StreamOrDevice& s = {});
array conv_weights(const array& x, const array& y, const std::vector<std::int64_t>& head, const Shape& w,
                   const StreamOrDevice& s = {});

}  // namespace sdx::array::detail
