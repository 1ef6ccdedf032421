#pragma once
// Whether the libraries of this installation can be loaded.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/module/module.h"
#include "base/tools_api.h"

namespace sdx {

// A library to look at: a module, or one that programs link.
struct LibraryAsked {
  std::vector<std::filesystem::path> files;  // the first that works counts
  std::string named_by;                      // the environment variable that names it; empty: none does
  const char* symbol = nullptr;              // the function that returns the head; null: a library without one
  ModuleHead expected{};                     // that head
  const char* package = nullptr;             // Debian's package of what it needs, where that may be missing
  bool linked = false;                       // known to be part of the program
};

// A module as open_module() looks for it.
SDX_TOOLS_API LibraryAsked ask_for(const ModuleName& name, std::size_t table_bytes, std::size_t types_bytes);
template <class Table, const ModuleName& name = Table::kModule>
LibraryAsked ask_for() {
  constexpr ModuleHead own = module_head<Table>("");
  return ask_for(name, own.table_bytes, own.types_bytes);
}
// A library beside the engine that programs link.
SDX_TOOLS_API LibraryAsked ask_for_library(const char* file);

struct LibraryLook {
  // absent: there is no file, or what the file needs is a package that may be missing.
  enum class State { works, absent, fails };
  State state = State::absent;
  std::filesystem::path file;  // that works, or does not; empty: there is none, or it is part of the program
  std::string reason;          // why it does not work
  std::string hint;            // what to do; may be empty
};

// Loads each library in a child process, so that a damaged file ends only that, and nothing stays loaded. Modules that are linked
// into the program work without that; a program that is one file has no others. One answer each, in order. Throws
// Error(runtime_failure) where no process can be started.
SDX_TOOLS_API std::vector<LibraryLook> look_at_libraries(std::span<const LibraryAsked> asked);

}  // namespace sdx
