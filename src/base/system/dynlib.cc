#include "base/system/dynlib.h"

#include <dlfcn.h>
#if defined(__linux__)
#include <link.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/error.h"
#include "base/suggest.h"
#include "base/system/mapped_file.h"

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

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// $ORIGIN, $LIB and $PLATFORM as the loader replaces them; the last two as far as our own platforms use them.
std::string expand(std::string text, const fs::path& file) {
  const auto replace = [&](std::string_view from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
  };
  const std::string origin = file.has_parent_path() ? file.parent_path().string() : ".";
  replace("${ORIGIN}", origin);
  replace("$ORIGIN", origin);
  replace("${LIB}", "lib");
  replace("$LIB", "lib");
  return text;
}

// One file in the tree of dependencies.
struct Visit {
  fs::path path;
  std::string name;  // as the caller named it
  std::size_t parent = SIZE_MAX;
  ElfInfo elf;
};

// More libraries than this need no program; a hostile folder of files that need each other ends here.
constexpr std::size_t kMaxLibraries = 1024;

class Walk {
 public:
  explicit Walk(const LoaderView& view) : view_(view) {}

  void start(const fs::path& library);
  std::vector<MissingLibrary> missing;

 private:
  bool is_loaded(const std::string& soname) const;
  std::string locate(const std::string& soname, std::size_t asker) const;
  std::string in_folders(const std::vector<std::string>& folders, const std::string& soname, const fs::path& origin) const;
  bool fits(const fs::path& path) const;
  void enter(std::size_t parent, const std::string& name, const fs::path& path);
  void check_versions(std::size_t index);
  void report(std::size_t parent, const std::string& name, std::string why, std::string other = {});
  std::vector<std::string> chain_to(std::size_t index, const std::string& name) const;
  std::string other_version(const std::string& soname, std::size_t asker) const;

  const LoaderView& view_;
  std::vector<Visit> visits_;
  std::set<std::string> seen_;  // sonames requested so far
};

std::vector<std::string> Walk::chain_to(std::size_t index, const std::string& name) const {
  std::vector<std::string> chain{name};
  for (; index != SIZE_MAX; index = visits_[index].parent) chain.push_back(visits_[index].name);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

void Walk::report(std::size_t parent, const std::string& name, std::string why, std::string other) {
  missing.push_back({chain_to(parent, name), std::move(why), std::move(other)});
}

// The loader passes over files of another kind (32-bit ones, say) and goes on searching.
bool Walk::fits(const fs::path& path) const {
  if (!is_file(path)) return false;
  try {
    const ElfInfo elf = read_elf(path);
    return visits_.empty() || (elf.machine == visits_[0].elf.machine && elf.bits == visits_[0].elf.bits);
  } catch (const Error&) {
    return false;
  }
}

std::string Walk::in_folders(const std::vector<std::string>& folders, const std::string& soname, const fs::path& origin) const {
  for (const std::string& folder : folders) {
    const fs::path candidate = fs::path(expand(folder, origin)) / soname;
    if (fits(candidate)) return candidate.string();
  }
  return {};
}

bool Walk::is_loaded(const std::string& soname) const {
  return std::any_of(view_.loaded.begin(), view_.loaded.end(),
                     [&](const std::string& path) { return fs::path(path).filename() == soname; });
}

std::string Walk::locate(const std::string& soname, std::size_t asker) const {
  if (soname.find('/') != std::string::npos) return is_file(soname) ? soname : std::string();
  const Visit& who = visits_[asker];
  std::string found;
  if (who.elf.runpath.empty()) {  // DT_RPATH counts for what the library's dependencies need as well; DT_RUNPATH switches it off
    for (std::size_t i = asker; i != SIZE_MAX && found.empty(); i = visits_[i].parent) {
      if (visits_[i].elf.runpath.empty()) found = in_folders(visits_[i].elf.rpath, soname, visits_[i].path);
    }
  }
  if (found.empty()) found = in_folders(view_.library_path, soname, who.path);
  if (found.empty()) found = in_folders(who.elf.runpath, soname, who.path);
  for (const LoaderCacheEntry& e : view_.cache) {
    if (!found.empty()) break;
    if (e.soname == soname && is_file(e.path)) found = e.path;
  }
  if (found.empty()) found = in_folders(view_.system, soname, who.path);
  return found;
}

// The same library with another version number, the usual sign of a version skew.
std::string Walk::other_version(const std::string& soname, std::size_t asker) const {
  const VersionedName wanted = split_soname(soname);
  if (wanted.major < 0) return {};
  const auto differs = [&](const std::string& name) {
    const VersionedName v = split_soname(name);
    return v.stem == wanted.stem && v.major >= 0 && v.major != wanted.major;
  };
  for (const LoaderCacheEntry& e : view_.cache) {
    if (differs(e.soname) && is_file(e.path)) return e.path;
  }
  std::vector<std::string> folders = view_.library_path;
  for (const std::string& f : visits_[asker].elf.runpath) folders.push_back(expand(f, visits_[asker].path));
  for (const std::string& f : visits_[asker].elf.rpath) folders.push_back(expand(f, visits_[asker].path));
  folders.insert(folders.end(), view_.system.begin(), view_.system.end());
  for (const std::string& folder : folders) {
    std::error_code ignored;
    for (auto it = fs::directory_iterator(folder, ignored); !ignored && it != fs::directory_iterator(); it.increment(ignored)) {
      if (differs(it->path().filename().string()) && is_file(it->path())) return it->path().string();
    }
  }
  return {};
}

void Walk::check_versions(std::size_t index) {
  const std::vector<ElfVersionNeed> needs = visits_[index].elf.version_needs;
  std::set<std::string> told;
  for (const ElfVersionNeed& need : needs) {
    if (told.contains(need.library)) continue;
    const std::string path = locate(need.library, index);
    if (path.empty()) continue;  // reported as missing already
    try {
      const std::vector<std::string> offered = read_elf(fs::path(path)).version_defs;
      // A library without any versions is accepted by the loader with a warning only.
      if (offered.empty() || std::find(offered.begin(), offered.end(), need.version) != offered.end()) continue;
    } catch (const Error&) {
      continue;
    }
    told.insert(need.library);
    report(index, need.library, path + " has no " + need.version);
  }
}

void Walk::enter(std::size_t parent, const std::string& name, const fs::path& path) {
  Visit visit{path, name, parent, {}};
  try {
    visit.elf = read_elf(path);
  } catch (const Error& e) {
    return report(parent, name, path.string() + ": " + e.message());
  }
  const std::uint16_t machine = parent == SIZE_MAX ? own_elf_machine() : visits_[0].elf.machine;
  if (machine != 0 && visit.elf.machine != machine) {
    return report(parent, name, path.string() + " is for " + elf_machine_name(visit.elf.machine));
  }
  visits_.push_back(std::move(visit));
}

void Walk::start(const fs::path& library) {
  enter(SIZE_MAX, library.filename().string(), library);
  for (std::size_t i = 0; i < visits_.size() && visits_.size() < kMaxLibraries; ++i) {
    const std::vector<std::string> needed = visits_[i].elf.needed;
    for (const std::string& soname : needed) {
      if (!seen_.insert(soname).second || is_loaded(soname)) continue;
      const std::string path = locate(soname, i);
      if (path.empty()) {
        report(i, soname, "not found", other_version(soname, i));
      } else {
        enter(i, soname, path);
      }
    }
    check_versions(i);
  }
}

std::string sentence(const MissingLibrary& m) {
  std::string text;
  const std::string& name = m.chain.back();
  if (m.chain.size() > 1) {
    text = m.chain[m.chain.size() - 2] + " needs " + name + ": " + m.why;
    if (m.chain.size() > 2) text += " (" + join(m.chain, " -> ") + ")";
  } else {
    text = m.why == "not found" ? name + " is not found" : m.why;
  }
  if (!m.other_version.empty()) {
    const VersionedName other = split_soname(fs::path(m.other_version).filename().string());
    text += fmt::format("; this machine has version {} ({}), which cannot stand in for version {}", other.major, m.other_version,
                        split_soname(name).major);
  }
  return text;
}

void describe(LibraryFinding& finding) {
  std::vector<std::string> sentences, packages;
  bool too_new = false;
  for (const MissingLibrary& m : finding.missing) {
    sentences.push_back(sentence(m));
    too_new = too_new || m.why.find(" has no GLIBC_") != std::string::npos;
    const std::string package = package_of(m.chain.back());
    if (!package.empty() && std::find(packages.begin(), packages.end(), package) == packages.end()) packages.push_back(package);
  }
  finding.reason = join(sentences, "; ");
  if (!packages.empty()) finding.hint = "install " + join(packages, "; ");
  if (too_new) {
    finding.hint += std::string(finding.hint.empty() ? "" : ". ") +
                    "The library was built for a newer system than this one: take an older version of it";
  }
  finding.loadable = finding.missing.empty();
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

std::string find_library(std::string_view soname, const LoaderView& view) {
  const std::string name(soname);
  for (const std::string& path : view.loaded) {
    if (fs::path(path).filename() == name) return path;
  }
  for (const std::string& folder : view.library_path) {
    if (is_file(fs::path(folder) / name)) return (fs::path(folder) / name).string();
  }
  for (const LoaderCacheEntry& e : view.cache) {
    if (e.soname == name && is_file(e.path)) return e.path;
  }
  for (const std::string& folder : view.system) {
    if (is_file(fs::path(folder) / name)) return (fs::path(folder) / name).string();
  }
  return {};
}

LibraryFinding explain_library(const fs::path& library, const LoaderView& view) {
  LibraryFinding finding;
  fs::path path = library;
  if (!library.has_parent_path()) path = find_library(library.string(), view);
  if (path.empty() || !is_file(path)) {
    finding.missing.push_back({{library.string()}, "not found", {}});
  } else {
#if defined(__linux__)
    Walk walk(view);
    walk.start(path);
    finding.missing = std::move(walk.missing);
#endif
  }
  describe(finding);
  return finding;
}

VersionedName split_soname(std::string_view soname) {
  VersionedName v{std::string(soname), -1};
  const std::size_t at = soname.find(".so.");
  if (at == std::string_view::npos) return v;
  v.stem = std::string(soname.substr(0, at + 3));
  int number = 0;
  std::size_t i = at + 4;
  if (i >= soname.size() || soname[i] < '0' || soname[i] > '9') return v;
  for (; i < soname.size() && soname[i] >= '0' && soname[i] <= '9' && number < 100'000'000; ++i)
    number = number * 10 + (soname[i] - '0');
  v.major = number;
  return v;
}

bool can_load_libraries() noexcept {
#if defined(SDX_STATIC)
  return false;
#else
  return true;
#endif
}

std::string_view why_no_libraries() noexcept {
  return "this program is one static file and cannot load libraries; take a build of Sardonyx that has its own";
}

std::shared_ptr<const DynamicLibrary> DynamicLibrary::open(const fs::path& library, bool global) {
  if (!can_load_libraries()) {
    fail(ErrorCode::provider_unavailable, "cannot load '{}': {}", library.string(), why_no_libraries());
  }
  // Not std::make_shared: the constructor is private.
  std::shared_ptr<DynamicLibrary> opened(new DynamicLibrary);
  opened->path_ = library;
#if defined(__linux__)
  std::error_code none;
  if (fs::is_regular_file(library, none)) {
    try {
      read_elf(library);
    } catch (const Error& e) {
      fail(ErrorCode::provider_unavailable, "cannot load '{}': {}", library.string(), e.message());
    }
  }
#endif
  opened->handle_ = ::dlopen(library.c_str(), RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
  if (opened->handle_ == nullptr) {
    const char* words = ::dlerror();
    const std::string said = words != nullptr ? words : "no reason given";
    const LibraryFinding finding = explain_library(library);
    fail(ErrorCode::provider_unavailable, "cannot load '{}': {}{}{}", library.string(), finding.loadable ? said : finding.reason,
         finding.hint.empty() ? "" : ". ", finding.hint);
  }
  return opened;
}

std::shared_ptr<const DynamicLibrary> DynamicLibrary::open_for_good(const fs::path& library, std::string& why) {
  if (!can_load_libraries()) {
    why = why_no_libraries();
    return nullptr;
  }
  std::shared_ptr<DynamicLibrary> opened(new DynamicLibrary);
  opened->path_ = library;
  opened->handle_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (opened->handle_ != nullptr) return opened;
  const char* words = ::dlerror();
  why = words != nullptr ? words : "no reason given";
  return nullptr;
}

bool is_loaded(const fs::path& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle != nullptr) ::dlclose(handle);
  return handle != nullptr;
}

DynamicLibrary::~DynamicLibrary() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

void* DynamicLibrary::symbol(const char* name) const noexcept { return ::dlsym(handle_, name); }

void* DynamicLibrary::need(const char* name) const {
  if (void* const found = symbol(name)) return found;
  fail(ErrorCode::io, "'{}' has no {}: another version of the library is needed", path_.string(), name);
}

fs::path program_folder() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

fs::path folder_of(const void* code) {
  Dl_info info{};
  std::error_code ignored;
  if (::dladdr(code, &info) == 0 || info.dli_fname == nullptr) return {};
  return fs::absolute(info.dli_fname, ignored).parent_path();
}

}  // namespace sdx
