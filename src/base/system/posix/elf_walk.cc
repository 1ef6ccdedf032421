#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/system/elf.h"
#include "base/system/loader.h"

namespace sdx {
namespace fs = std::filesystem;
namespace {

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

}  // namespace

void check_library_file(const fs::path& library) { read_elf(library); }

std::vector<MissingLibrary> missing_libraries(const fs::path& library, const LoaderView& view) {
  Walk walk(view);
  walk.start(library);
  return std::move(walk.missing);
}

}  // namespace sdx
