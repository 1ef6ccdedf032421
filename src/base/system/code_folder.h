#pragma once
// The folders of the program and of its libraries.

#include <filesystem>

#include "base/tools_api.h"

namespace sdx {

// The folder of the program, and the folder of the program or library that contains `code`; empty if unknown.
std::filesystem::path program_folder();
SDX_TOOLS_API std::filesystem::path folder_of(const void* code);

}  // namespace sdx
