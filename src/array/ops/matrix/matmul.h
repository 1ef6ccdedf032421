#pragma once
// Matrix products in settled form.

#include <sdx/array/matrix.hpp>

namespace sdx::array::detail {

// op(a) @ op(b), where op transposes the last two axes. Both have rank 2 at least and one type; leading axes broadcast.
array product(const array& a, const array& b, bool trans_a, bool trans_b, const StreamOrDevice& s = {});

}  // namespace sdx::array::detail
