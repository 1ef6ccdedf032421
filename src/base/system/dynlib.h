#pragma once
// Shared libraries loaded at run time, and why one cannot be loaded.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/elf.h"
#include "base/tools_api.h"

namespace sdx {

// Where the loader searches for a library that is named without a folder.
struct LoaderView {
  std::vector<std::string> library_path;  // LD_LIBRARY_PATH
  std::vector<LoaderCacheEntry> cache;    // ld.so.cache
  std::vector<std::string> system;        // built-in folders, last
  std::vector<std::string> loaded;        // paths of the libraries that this process has loaded: they satisfy any dependency

  // The view of this process at the time of the call.
  static SDX_TOOLS_API LoaderView current();
};

// The file that the loader would choose for `soname` if the program itself asked for it; empty if there is none.
SDX_TOOLS_API std::string find_library(std::string_view soname, const LoaderView& view = LoaderView::current());

// A library that another one needs and that cannot be loaded.
struct MissingLibrary {
  std::vector<std::string> chain;  // from the requested file to the missing library
  std::string why;                 // "not found", "/usr/lib/libfoo.so.1 is for AArch64", "/lib/libc.so.6 has no GLIBC_2.38"
  std::string other_version;       // path of the same library with another version in its name, where the machine has one
};

struct LibraryFinding {
  bool loadable = false;                // as far as files tell: symbols are looked at by versions only
  std::vector<MissingLibrary> missing;  // each library once
  std::string reason;                   // sentences for people; empty when loadable
  std::string hint;                     // which packages to install; may be empty
};

// Follows the dependencies of a shared library (a path, or a name that the loader would search for) the way glibc's loader does:
// DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, ld.so.cache, system folders. Loads nothing, runs no code of it, never throws for what
// the files contain. Elsewhere than on Linux: only whether the file exists.
LibraryFinding explain_library(const std::filesystem::path& library, const LoaderView& view = LoaderView::current());

// The package that contains a library: "libcudnn.so.9" -> "cuDNN 9: `pip install nvidia-cudnn-cu12` or the package
// libcudnn9-cuda-12". Empty if unknown.
std::string package_of(std::string_view soname);

// "libcudart.so.12" -> {"libcudart.so", 12}; -1 where there is no number.
struct VersionedName {
  std::string stem;
  int major = -1;
};
VersionedName split_soname(std::string_view soname);

// Whether this program can load libraries at all: one that is a single static file (SDX_STATIC) cannot, and says so.
SDX_TOOLS_API bool can_load_libraries() noexcept;
std::string_view why_no_libraries() noexcept;

// A library held open. Thread-safe.
class SDX_TOOLS_API DynamicLibrary {
 public:
  // Throws Error(provider_unavailable) with explain_library's findings, or with the loader's own words where those find nothing.
  // `global`: its symbols are offered to libraries loaded later (RTLD_GLOBAL).
  static std::shared_ptr<const DynamicLibrary> open(const std::filesystem::path& library, bool global = false);
  // Without a look into the file, for libraries of this installation and of the system. Null where the loader refuses it; `why`
  // is what it says. The library stays loaded for as long as the process: its code may register itself somewhere.
  static std::shared_ptr<const DynamicLibrary> open_for_good(const std::filesystem::path& library, std::string& why);
  ~DynamicLibrary();
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;

  // Null when it has no such symbol.
  void* symbol(const char* name) const noexcept;
  // The same as a function or an object of the type. Throws Error(io) when it has no such symbol.
  template <class F>
  void find(const char* name, F& to) const {
    to = reinterpret_cast<F>(need(name));
  }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  DynamicLibrary() = default;
  void* need(const char* name) const;
  void* handle_ = nullptr;
  std::filesystem::path path_;
};

// Whether this process has loaded the file, whoever loaded it.
bool is_loaded(const std::filesystem::path& library);

// The folder of the program, and the folder of the program or library that contains `code`; empty if unknown.
std::filesystem::path program_folder();
SDX_TOOLS_API std::filesystem::path folder_of(const void* code);
// The program or library that contains `code`; empty if unknown.
SDX_TOOLS_API std::filesystem::path binary_of(const void* code);

}  // namespace sdx
