#pragma once
// The system's loader of shared libraries, behind base/system/dynlib.h.

#include <filesystem>
#include <string>
#include <vector>

#include "base/system/dynlib.h"
#include "base/tools_api.h"

namespace sdx {

enum class LibraryUse {
  local,
  global,    // its symbols are offered to libraries loaded later
  for_good,  // it is never unloaded
};

// Null with the loader's own words.
SDX_TOOLS_API void* load_library(const std::filesystem::path& library, LibraryUse use, std::string& why);
SDX_TOOLS_API void unload_library(void* library) noexcept;
// `library` null: of the program, or of what it has loaded for all to see.
SDX_TOOLS_API void* symbol_of(void* library, const char* name) noexcept;

// The name that a library of ours, "libsdx_hub.so", has on this system.
std::filesystem::path library_file(const std::filesystem::path& name);

// Throws Error(invalid_model) for a file that the loader would not survive: one that is cut short.
void check_library_file(const std::filesystem::path& library);

// What the file and the libraries that it needs lack. Runs no code of theirs, and never throws for what the files contain.
std::vector<MissingLibrary> missing_libraries(const std::filesystem::path& library, const LoaderView& view);

}  // namespace sdx
