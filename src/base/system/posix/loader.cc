#include "base/system/loader.h"

#include <dlfcn.h>
#if defined(__linux__)
#include <link.h>
#endif

#include <cstdlib>

#include "base/error.h"
#include "base/system/files/library_name.h"
#include "base/system/mapped_file.h"
#include "base/system/processes/environment.h"

namespace sdx {
namespace fs = std::filesystem;
namespace {

std::vector<std::string> split_path(const char* text) {
  std::vector<std::string> parts;
  std::string part;
  for (; text != nullptr; ++text) {
    // The loader takes ';' for a separator as well.
    if (*text != 0 && *text != ':' && *text != ';') {
      part += *text;
      continue;
    }
    if (!part.empty()) parts.push_back(std::move(part));
    part.clear();
    if (*text == 0) break;
  }
  return parts;
}

std::string last_words() {
  const char* const words = ::dlerror();
  return words != nullptr ? words : "no reason given";
}

}  // namespace

LoaderView LoaderView::current() {
  LoaderView view;
#if defined(__linux__)
  view.library_path = split_path(std::getenv("LD_LIBRARY_PATH"));
  try {
    view.cache = read_loader_cache(MappedFile::open("/etc/ld.so.cache", 0)->bytes());
  } catch (const Error&) {  // none: the folders below are all there is
  }
#if defined(__x86_64__)
  view.system = {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"};
#elif defined(__aarch64__)
  view.system = {"/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"};
#else
  view.system = {"/lib64", "/usr/lib64", "/lib", "/usr/lib"};
#endif
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        if (info->dlpi_name != nullptr && info->dlpi_name[0] != 0) {
          static_cast<std::vector<std::string>*>(out)->emplace_back(info->dlpi_name);
        }
        return 0;
      },
      &view.loaded);
#endif
  return view;
}

void* load_library(const fs::path& library, LibraryUse use, std::string& why) {
  const int scope = use == LibraryUse::global ? RTLD_GLOBAL : RTLD_LOCAL;
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | scope | (use == LibraryUse::for_good ? RTLD_NODELETE : 0));
  if (handle == nullptr) why = last_words();
  return handle;
}

void unload_library(void* library) noexcept { ::dlclose(library); }

void* symbol_of(void* library, const char* name) noexcept { return ::dlsym(library, name); }

bool is_loaded(const fs::path& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle != nullptr) ::dlclose(handle);
  return handle != nullptr;
}

fs::path library_file(const fs::path& name) { return name; }

std::string shared_library_name(std::string_view stem) { return fmt::format("lib{}.so", stem); }

fs::path program_file() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored);
}

fs::path program_folder() { return program_file().parent_path(); }

fs::path binary_of(const void* code) {
  Dl_info info{};
  std::error_code ignored;
  if (::dladdr(code, &info) == 0 || info.dli_fname == nullptr) return {};
  return fs::absolute(info.dli_fname, ignored);
}

fs::path folder_of(const void* code) { return binary_of(code).parent_path(); }

}  // namespace sdx
