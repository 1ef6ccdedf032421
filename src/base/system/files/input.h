#pragma once
// Waiting for what a terminal, a pipe or a file gives.

#include <cstddef>
#include <optional>
#include <string>

#include "base/tools_api.h"

namespace sdx {

enum class InputState { nothing, ready, ended };
// Waits up to `ms` milliseconds, less where a signal arrives. `ready`: reading does not wait; a file's end counts as ready.
// `ended`: the other end is gone, or cannot be asked, and nothing is left to read.
SDX_TOOLS_API InputState wait_for_input(int descriptor, int ms) noexcept;

// What is there, at most `bytes`; 0: the end; -1 with errno.
SDX_TOOLS_API std::ptrdiff_t read_some(int descriptor, void* to, std::size_t bytes) noexcept;

// The line that a person types at the terminal behind standard input, in UTF-8 and without its end; the system edits it. nullopt:
// the end of the input, or Ctrl-C (catch_break()).
SDX_TOOLS_API std::optional<std::string> line_of_terminal();

}  // namespace sdx
