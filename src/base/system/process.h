#pragma once
// This process: its number, its environment.

#include <cstdint>

#include "base/tools_api.h"

namespace sdx {

SDX_TOOLS_API std::uint64_t process_id() noexcept;

// For this process and those that it starts; null: takes the variable away. Windows cannot tell an empty value from none. Not
// while other threads read the environment.
SDX_TOOLS_API void set_environment(const char* name, const char* value) noexcept;

}  // namespace sdx
