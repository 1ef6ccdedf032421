#pragma once

#include <cstddef>

#include "base/tools_api.h"

namespace sdx {

// The columns of the terminal behind the descriptor; `otherwise` where there is none, or it does not say.
SDX_TOOLS_API std::size_t columns_of_terminal(int fd, std::size_t otherwise = 80) noexcept;

// Whether the descriptor is a terminal's.
SDX_TOOLS_API bool is_terminal(int fd) noexcept;

// Makes Windows' console understand UTF-8 and the sequences that move the cursor and colour text. For programs, at their start.
SDX_TOOLS_API void prepare_terminal() noexcept;

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
