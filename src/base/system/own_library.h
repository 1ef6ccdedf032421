#pragma once
// Parts of Sardonyx in libraries of their own, loaded when they are first needed: who never needs one starts without it.

#include <filesystem>
#include <vector>

#include "base/tools_api.h"

namespace sdx {

struct OwnLibrary {
  const char* file;      // "libsdx_hub.so"
  const char* variable;  // environment variable that names another file
  const char* purpose;   // for the message: "downloading"
  // Looked for in every folder below every start, in this order; empty starts are left out.
  std::vector<std::filesystem::path> starts;
  std::vector<const char*> folders;
};

// Where the program lies, and where whatever contains `code` lies (a program, or a library); empty when that is not known.
SDX_TOOLS_API std::filesystem::path program_folder();
SDX_TOOLS_API std::filesystem::path folder_of(const void* code);

// What `accept` makes of the first library that it takes: null for one of another version. The library stays loaded. Throws
// Error(io) with every file that was tried, and why not.
SDX_TOOLS_API void* load_own_library(const OwnLibrary& library, void* (*accept)(void* handle));

}  // namespace sdx
