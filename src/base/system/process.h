#pragma once
// This process: its number, its environment.

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/tools_api.h"

namespace sdx {

SDX_TOOLS_API std::uint64_t process_id() noexcept;

// For this process and those that it starts; null: takes the variable away. Windows cannot tell an empty value from none. Not
// while other threads read the environment.
SDX_TOOLS_API void set_environment(const char* name, const char* value) noexcept;

// "Linux", "6.1.0-18-amd64", "x86_64"; "Windows", "10.0.19045", "AMD64".
struct SystemNames {
  std::string system, release, machine;
};
SDX_TOOLS_API SystemNames system_names();

// Where programs keep what they can make again for this user: $XDG_CACHE_HOME/NAME, else $HOME/.cache/NAME, on Windows
// %LOCALAPPDATA%\NAME; empty where the environment names no folder.
SDX_TOOLS_API std::filesystem::path user_cache_folder(const char* name);

}  // namespace sdx
