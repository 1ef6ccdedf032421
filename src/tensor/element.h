#pragma once
// Reading and writing single elements of any type: slow, for messages, attributes, file formats and small tensors.

#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include <sdx/tensor.hpp>

#include "base/tools_api.h"

namespace sdx {

// The integer nearest to zero-truncated `v`; the type's ends where it does not fit; 0 for NaN. Floats: plain conversion.
template <class T>
T saturating_cast(double v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v != 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (v != v) return 0;
    if (v <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    // max() of 64-bit types rounds up to a power of two, which itself does not fit.
    if (v >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(v);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(v);
  } else {
    return T(static_cast<float>(v));
  }
}

// Element `index` (row-major) as a double or integer. Complex: the real part. Strings: Error(invalid_argument).
SDX_TOOLS_API double element_as_double(const Tensor& tensor, std::int64_t index);
SDX_TOOLS_API std::int64_t element_as_int(const Tensor& tensor, std::int64_t index);  // floats are truncated; NaN is 0
// Stores a number: saturating_cast().
SDX_TOOLS_API void set_element(Tensor& tensor, std::int64_t index, double value);
SDX_TOOLS_API void set_element_int(Tensor& tensor, std::int64_t index, std::int64_t value);

// All elements of an integer (or bool) tensor of any shape. Throws Error(invalid_argument) for other types.
std::vector<std::int64_t> to_ints(const Tensor& tensor);
// All elements of a numeric tensor.
SDX_TOOLS_API std::vector<float> to_floats(const Tensor& tensor);
// The same as a tensor; itself where it is of float32.
SDX_TOOLS_API Tensor to_float32(const Tensor& tensor);
// rank-1 int64
Tensor from_ints(const std::vector<std::int64_t>& values);

}  // namespace sdx
