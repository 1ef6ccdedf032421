#pragma once
// Elements as text, for dumps and messages.

#include <string>

#include <sdx/tensor.hpp>

#include "base/tools_api.h"

namespace sdx {

// One element as text: "1.5", "-3", "true", "\"word\"", "(1, -2)" for complex. `index` counts in row-major order.
SDX_TOOLS_API std::string print_element(const Tensor& tensor, std::int64_t index);
// "{1, 2, 3, … 100 in all}": at most `limit` elements.
SDX_TOOLS_API std::string print_elements(const Tensor& tensor, std::int64_t limit);

}  // namespace sdx
