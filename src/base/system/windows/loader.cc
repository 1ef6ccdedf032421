#include "base/system/loader.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/error.h"
#include "base/system/file.h"
#include "base/system/files/library_name.h"
#include "base/system/processes/environment.h"
#include "base/system/windows/api.h"
#include "base/system/windows/pe.h"

// Behind api.h, which it needs.
#include <psapi.h>

namespace sdx {
namespace fs = std::filesystem;
namespace {

using windows::PeInfo;

constexpr std::size_t kLongestPath = 32768;
// More libraries than this need no program; a hostile folder of files that need each other ends here.
constexpr std::size_t kMaxLibraries = 1024;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

fs::path file_of(HMODULE module) {
  std::wstring name(kLongestPath, L'\0');
  name.resize(::GetModuleFileNameW(module, name.data(), static_cast<DWORD>(name.size())));
  return name;
}

// Names that stand for functions of the system, without files.
bool is_of_system(const std::string& name) { return name.starts_with("api-ms-win-") || name.starts_with("ext-ms-"); }

// The libraries that the first one needs, and what those need, each once.
class Walk {
 public:
  explicit Walk(const LoaderView& view) : view_(view) {}

  void start(const fs::path& library) {
    folder_ = fs::absolute(library).parent_path();
    enter(SIZE_MAX, text_of(library.filename()), library);
    for (std::size_t i = 0; i < visits_.size() && visits_.size() < kMaxLibraries; ++i) {
      const std::vector<std::string> needed = visits_[i].pe.imports;
      for (const std::string& name : needed) need(i, name);
    }
  }

  std::vector<MissingLibrary> missing;

 private:
  struct Visit {
    std::string name;
    std::size_t parent = SIZE_MAX;
    PeInfo pe;
  };

  void need(std::size_t parent, const std::string& name) {
    const std::string key = lower(name);
    if (!seen_.insert(key).second || is_of_system(key) || is_loaded(key)) return;
    const fs::path path = locate(name);
    if (path.empty()) return report(parent, name, "not found");
    // What is in the system's folders is whole, and needs only what is there, too.
    if (!is_in(view_.system, path)) enter(parent, name, path);
  }

  bool is_loaded(const std::string& key) const {
    return std::any_of(view_.loaded.begin(), view_.loaded.end(),
                       [&](const std::string& path) { return lower(text_of(path_of(path).filename())) == key; });
  }

  static bool is_in(const std::vector<std::string>& folders, const fs::path& path) {
    const std::string folder = lower(text_of(path.parent_path()));
    return std::any_of(folders.begin(), folders.end(), [&](const std::string& f) { return lower(f) == folder; });
  }

  // In the order of LoadLibraryEx with LOAD_WITH_ALTERED_SEARCH_PATH.
  fs::path locate(const std::string& name) const {
    if (is_file(folder_ / path_of(name))) return folder_ / path_of(name);
    for (const auto* folders : {&view_.system, &view_.library_path}) {
      for (const std::string& folder : *folders) {
        if (const fs::path path = path_of(folder) / path_of(name); is_file(path)) return path;
      }
    }
    return {};
  }

  void enter(std::size_t parent, const std::string& name, const fs::path& path) {
    Visit visit{name, parent, {}};
    try {
      visit.pe = windows::read_pe(path);
    } catch (const Error& e) {
      return report(parent, name, text_of(path) + ": " + e.message());
    }
    if (visit.pe.machine != windows::own_pe_machine()) {
      return report(parent, name, text_of(path) + " is for " + windows::pe_machine_name(visit.pe.machine));
    }
    visits_.push_back(std::move(visit));
  }

  void report(std::size_t parent, const std::string& name, std::string why) {
    std::vector<std::string> chain{name};
    for (std::size_t i = parent; i != SIZE_MAX; i = visits_[i].parent) chain.push_back(visits_[i].name);
    std::reverse(chain.begin(), chain.end());
    missing.push_back({std::move(chain), std::move(why), {}});
  }

  const LoaderView& view_;
  fs::path folder_;
  std::vector<Visit> visits_;
  std::set<std::string> seen_;
};

// A library that Windows does not find is named neither in the error nor elsewhere: explain_library() finds it.
std::string words_for(const fs::path& library, DWORD error) { return text_of(library) + ": " + windows::words_of(error); }

}  // namespace

LoaderView LoaderView::current() {
  LoaderView view;
  view.library_path = listed_in("PATH");
  std::wstring folder(kLongestPath, L'\0');
  folder.resize(::GetSystemDirectoryW(folder.data(), static_cast<UINT>(folder.size())));
  view.system.push_back(windows::narrow(folder));
  folder.resize(kLongestPath);
  folder.resize(::GetWindowsDirectoryW(folder.data(), static_cast<UINT>(folder.size())));
  view.system.push_back(windows::narrow(folder));
  std::vector<HMODULE> modules(kMaxLibraries);
  DWORD bytes = 0;
  const auto room = static_cast<DWORD>(modules.size() * sizeof(HMODULE));
  if (::K32EnumProcessModules(::GetCurrentProcess(), modules.data(), room, &bytes) == 0) return view;
  modules.resize(std::min<std::size_t>(modules.size(), bytes / sizeof(HMODULE)));
  for (const HMODULE module : modules) view.loaded.push_back(text_of(file_of(module)));
  return view;
}

void check_library_file(const fs::path& library) { windows::read_pe(library); }

std::vector<MissingLibrary> missing_libraries(const fs::path& library, const LoaderView& view) {
  Walk walk(view);
  walk.start(library);
  return std::move(walk.missing);
}

// A library's own needs are looked for beside it first. No window asks about a damaged file.
void* load_library(const fs::path& library, LibraryUse use, std::string& why) {
  DWORD before = 0;
  ::SetThreadErrorMode(SEM_FAILCRITICALERRORS | SEM_NOOPENFILEERRORBOX, &before);
  const bool whole = library.has_parent_path();
  const std::wstring name = whole ? fs::absolute(library).make_preferred().native() : library.native();
  const HMODULE module = ::LoadLibraryExW(name.c_str(), nullptr, whole ? LOAD_WITH_ALTERED_SEARCH_PATH : 0);
  const DWORD error = ::GetLastError();
  ::SetThreadErrorMode(before, nullptr);
  if (module == nullptr) {
    why = words_for(library, error);
    return nullptr;
  }
  HMODULE pinned = nullptr;
  if (use == LibraryUse::for_good) {
    ::GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                         reinterpret_cast<const wchar_t*>(module), &pinned);
  }
  return module;
}

void unload_library(void* library) noexcept { ::FreeLibrary(static_cast<HMODULE>(library)); }

void* symbol_of(void* library, const char* name) noexcept {
  const HMODULE module = library != nullptr ? static_cast<HMODULE>(library) : ::GetModuleHandleW(nullptr);
  return reinterpret_cast<void*>(::GetProcAddress(module, name));
}

bool is_loaded(const fs::path& library) {
  HMODULE module = nullptr;
  const std::wstring name = library.has_parent_path() ? fs::absolute(library).make_preferred().native() : library.native();
  return ::GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, name.c_str(), &module) != 0;
}

// Versions, "libsdx_text.so.0", are those of POSIX.
fs::path library_file(const fs::path& name) {
  fs::path file = name;
  while (file.has_extension() && file.extension() != L".so") file.replace_extension();
  return file.replace_extension(L".dll");
}

std::string shared_library_name(std::string_view stem) { return std::string(stem) + ".dll"; }

fs::path program_file() { return file_of(nullptr); }

fs::path program_folder() { return program_file().parent_path(); }

fs::path binary_of(const void* code) {
  HMODULE module = nullptr;
  constexpr DWORD kFlags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  if (::GetModuleHandleExW(kFlags, static_cast<const wchar_t*>(code), &module) == 0) return {};
  return file_of(module);
}

fs::path folder_of(const void* code) { return binary_of(code).parent_path(); }

}  // namespace sdx
