#pragma once
// Where modules are looked for, and whether a file is the one that is wanted.

#include <filesystem>
#include <string>
#include <vector>

#include "base/module/module.h"

namespace sdx {

// The files that may be the module, the first one first: the one that its variable names, else those beside the binary that
// contains the engine, then those beside the program: the layouts of a build, an installation and the Python package, which has
// all in one folder.
std::vector<std::filesystem::path> module_files(const ModuleName& name);

// Loads a file for good. Empty where it has the head that is expected; else why it cannot be used.
std::string module_problem(const std::filesystem::path& path, const char* symbol, const ModuleHead& expected);

// As module_problem(), for a module that is linked into the program.
std::string linked_problem(const char* symbol, const ModuleHead& expected);

}  // namespace sdx
