#include "base/system/dynlib.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/suggest.h"
#include "base/system/loader.h"

namespace sdx {
namespace fs = std::filesystem;
namespace {

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
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
    finding.missing = missing_libraries(path, view);
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
  if (is_file(library)) {
    try {
      check_library_file(library);
    } catch (const Error& e) {
      fail(ErrorCode::provider_unavailable, "cannot load '{}': {}", library.string(), e.message());
    }
  }
  std::string said;
  opened->handle_ = load_library(library, global ? LibraryUse::global : LibraryUse::local, said);
  if (opened->handle_ == nullptr) {
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
  opened->handle_ = load_library(library, LibraryUse::for_good, why);
  return opened->handle_ != nullptr ? opened : nullptr;
}

DynamicLibrary::~DynamicLibrary() {
  if (handle_ != nullptr) unload_library(handle_);
}

void* DynamicLibrary::symbol(const char* name) const noexcept { return symbol_of(handle_, name); }

void* DynamicLibrary::need(const char* name) const {
  if (void* const found = symbol(name)) return found;
  fail(ErrorCode::io, "'{}' has no {}: another version of the library is needed", path_.string(), name);
}

}  // namespace sdx
