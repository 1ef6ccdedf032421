#pragma once
// Reading and writing single elements of any type: slow, for messages, attributes, file formats and small tensors.

#include <cstdint>
#include <vector>

#include <sdx/tensor.hpp>

#include "base/tools_api.h"

namespace sdx {

// Element `index` (row-major) as a double or integer. Complex: the real part. Strings: Error(invalid_argument).
SDX_TOOLS_API double element_as_double(const Tensor& tensor, std::int64_t index);
SDX_TOOLS_API std::int64_t element_as_int(const Tensor& tensor, std::int64_t index);  // floats are truncated; NaN is 0
// Stores a number, converted as C++ does (floats to integers truncate; saturated at the type's ends; NaN becomes 0).
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
