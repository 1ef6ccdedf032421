#pragma once
// Helpers for throwing sdx::Error with a formatted message.

#include <fmt/format.h>

#include <sdx/error.hpp>
#include <utility>

namespace sdx {

// Throws Error(code, formatted text).
template <class... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::vformat(format, fmt::make_format_args(args...)));
}

// Reports a mistake in our own code, never bad input.
// The file without its folder: binaries do not depend on where they were built.
#define SDX_ASSERT(condition)                                                                                       \
  do {                                                                                                              \
    if (!(condition))                                                                                               \
      ::sdx::fail(::sdx::ErrorCode::internal, "assertion failed: {} ({}:{})", #condition, __FILE_NAME__, __LINE__); \
  } while (false)

}  // namespace sdx
