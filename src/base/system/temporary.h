#pragma once
// Folders for temporary files.

#include <filesystem>
#include <string_view>

#include "base/tools_api.h"

namespace sdx {

// Makes a folder of a new name, START and some letters, for this user alone, where the system keeps temporary files (TMPDIR, on
// Windows TEMP). Throws Error(io).
SDX_TOOLS_API std::filesystem::path make_temporary_folder(std::string_view start);

}  // namespace sdx
