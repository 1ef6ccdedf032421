#pragma once
// The places where vendors' shared libraries may be.

#include <filesystem>
#include <string_view>
#include <vector>

namespace sdx {

// The folder of this program or of libsdx, and `lib` beside it.
std::vector<std::filesystem::path> program_folders();

// Folders of installed Python packages: of $VIRTUAL_ENV, $CONDA_PREFIX, ~/.local (on Windows %APPDATA%\Python), each python3 or
// python.exe on the PATH, /usr/local and /usr. Without links in their paths, each folder once. No Python is run.
std::vector<std::filesystem::path> site_packages();

// Appends a file or folder unless `out` has it already, be it under another name: by a symbolic or a hard link.
void add_distinct(const std::filesystem::path& file, std::vector<std::filesystem::path>& out);

// Appends "libSTEM.so", "libSTEM.so.VERSION" (the last by name) or "libSTEM.dylib" of a folder, on Windows "STEM.dll", where it
// has one.
void add_library_of(const std::filesystem::path& folder, std::string_view stem, std::vector<std::filesystem::path>& out);

}  // namespace sdx
