#pragma once

#include <cstddef>

#include "base/tools_api.h"

namespace sdx {

// Descriptors that every program has.
inline constexpr int kInput = 0, kOutput = 1, kErrors = 2;

// The columns of the terminal behind the descriptor; `otherwise` where there is none, or it does not say.
SDX_TOOLS_API std::size_t columns_of_terminal(int fd, std::size_t otherwise = 80) noexcept;

// Whether the descriptor is a terminal's.
SDX_TOOLS_API bool is_terminal(int fd) noexcept;

// Whether the descriptor is a terminal's that obeys sequences which move the cursor and colour text.
SDX_TOOLS_API bool is_steerable_terminal(int fd) noexcept;

// Makes Windows' console understand UTF-8 and the sequences that move the cursor and colour text, and its pipes and files pass
// bytes on as they are, without another ending of lines. For programs, at their start.
SDX_TOOLS_API void prepare_terminal() noexcept;

// Some file systems say only when a file is closed that it is full. False, with errno, where standard output's does.
SDX_TOOLS_API bool output_arrived() noexcept;

// Writing to a reader that is gone, or beyond the process's limit of file sizes, fails from this call on, where it would end the
// process. For programs, at their start.
SDX_TOOLS_API void survive_failing_writes() noexcept;
// Ends as the system ends a program that writes to a reader that is gone: shells then report 141, which is returned where the
// signal is blocked, or where the system has none.
SDX_TOOLS_API int end_by_closed_pipe() noexcept;

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
