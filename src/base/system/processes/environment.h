#pragma once
// What the system tells this process: its variables, its user's folder, its program.

#include <filesystem>
#include <string>
#include <vector>

#include "base/tools_api.h"

namespace sdx {

// NAME=VALUE of every variable.
SDX_TOOLS_API std::vector<std::string> environment_entries();
// The folders or files that a variable such as PATH lists, without empty ones: between colons, on Windows between semicolons.
SDX_TOOLS_API std::vector<std::string> listed_in(const char* variable);

// $HOME, on Windows %USERPROFILE%; empty where the environment names no folder.
SDX_TOOLS_API std::filesystem::path user_folder();

// The file of the program; empty if unknown.
SDX_TOOLS_API std::filesystem::path program_file();

}  // namespace sdx
