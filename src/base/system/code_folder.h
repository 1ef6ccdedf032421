#pragma once
// Where the program and its libraries lie.

#include <filesystem>

#include "base/tools_api.h"

namespace sdx {

// Where the program lies, and where whatever contains `code` lies (a program, or a library); empty when that is not known.
std::filesystem::path program_folder();
SDX_TOOLS_API std::filesystem::path folder_of(const void* code);

}  // namespace sdx
