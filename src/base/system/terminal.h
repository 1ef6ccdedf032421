#pragma once

#include <cstddef>

#include "base/tools_api.h"

namespace sdx {

// The columns of the terminal behind the descriptor; `otherwise` where there is none, or it does not say.
SDX_TOOLS_API std::size_t columns_of_terminal(int fd, std::size_t otherwise = 80) noexcept;

// While it exists, what the process writes to standard output, libraries included, goes to standard error.
class OutputToErrors {
 public:
  OutputToErrors();
  ~OutputToErrors();
  OutputToErrors(const OutputToErrors&) = delete;
  OutputToErrors& operator=(const OutputToErrors&) = delete;

 private:
  int kept_ = -1;
};

}  // namespace sdx
