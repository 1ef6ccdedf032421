#pragma once
// Elements as text, for dumps and messages.

#include <string>

#include <sdx/tensor.hpp>

namespace sdx {

// One element as text: "1.5", "-3", "true", "\"word\"", "(1, -2)" for complex. `index` counts in row-major order.
std::string print_element(const Tensor& tensor, std::int64_t index);
// "{1, 2, 3, … 100 in all}": at most `limit` elements.
std::string print_elements(const Tensor& tensor, std::int64_t limit);

}  // namespace sdx
