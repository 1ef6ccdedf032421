#include "base/system/glob.h"

#include <algorithm>
#include <system_error>

namespace sdx {
namespace {

namespace fs = std::filesystem;

// The number of bytes of the UTF-8 character that begins here; 1 for an invalid byte.
std::size_t letter_bytes(std::string_view text) {
  std::size_t n = 1;
  while (n < text.size() && n < 4 && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) ++n;
  return n;
}

struct Class {
  std::size_t bytes = 0;  // of the pattern; 0: no class, the bracket stands for itself
  bool matches = false;
};

Class match_class(std::string_view pattern, unsigned char c) {
  std::size_t i = 1;
  const bool inverted = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (inverted) ++i;
  bool found = false;
  for (const std::size_t first = i; i < pattern.size(); ++i) {
    if (pattern[i] == ']' && i > first) return {i + 1, found != inverted};
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      found = found || (static_cast<unsigned char>(pattern[i]) <= c && c <= static_cast<unsigned char>(pattern[i + 2]));
      i += 2;
    } else {
      found = found || static_cast<unsigned char>(pattern[i]) == c;
    }
  }
  return {};
}

// One step that is no star: how many bytes of the pattern and of the name it takes; {0, 0} where it does not fit.
std::pair<std::size_t, std::size_t> step(std::string_view pattern, std::string_view name) {
  if (name.empty()) return {0, 0};
  if (pattern[0] == '?') return {1, letter_bytes(name)};
  if (pattern[0] == '[') {
    const Class c = match_class(pattern, static_cast<unsigned char>(name[0]));
    if (c.bytes > 0) return c.matches ? std::pair{c.bytes, std::size_t{1}} : std::pair{std::size_t{0}, std::size_t{0}};
  }
  if (pattern[0] == '\\' && pattern.size() > 1) {
    return pattern[1] == name[0] ? std::pair{std::size_t{2}, std::size_t{1}} : std::pair{std::size_t{0}, std::size_t{0}};
  }
  return pattern[0] == name[0] ? std::pair{std::size_t{1}, std::size_t{1}} : std::pair{std::size_t{0}, std::size_t{0}};
}

class Expansion {
 public:
  Expansion(std::vector<std::string> parts, std::vector<fs::path>& files) : parts_(std::move(parts)), files_(files) {}

  void visit(const fs::path& folder, std::size_t part) {
    const std::string& pattern = parts_[part];
    const bool last = part + 1 == parts_.size();
    if (pattern == "**") {
      if (!last) visit(folder, part + 1);
      for (const fs::directory_entry& e : entries(folder)) {
        const std::string name = e.path().filename().string();
        if (name.starts_with('.')) continue;
        if (is_folder(e) && !is_link(e)) visit(e.path(), part);
        if (last && is_file(e)) files_.push_back(e.path());
      }
      return;
    }
    for (const fs::directory_entry& e : entries(folder)) {
      if (!matches_part(pattern, e.path().filename().string())) continue;
      if (last && is_file(e)) files_.push_back(e.path());
      if (!last && is_folder(e)) visit(e.path(), part + 1);
    }
  }

 private:
  static bool is_folder(const fs::directory_entry& e) {
    std::error_code ignored;
    return e.is_directory(ignored);
  }
  static bool is_link(const fs::directory_entry& e) {
    std::error_code ignored;
    return e.is_symlink(ignored);
  }
  static bool is_file(const fs::directory_entry& e) {
    std::error_code ignored;
    return e.is_regular_file(ignored);
  }
  // Returns nothing for a folder that cannot be read.
  static std::vector<fs::directory_entry> entries(const fs::path& folder) {
    std::vector<fs::directory_entry> out;
    std::error_code error;
    const fs::path where = folder.empty() ? fs::path(".") : folder;
    for (fs::directory_iterator it(where, error), end; !error && it != end; it.increment(error)) {
      out.emplace_back(folder.empty() ? it->path().filename() : it->path());
    }
    return out;
  }

  std::vector<std::string> parts_;
  std::vector<fs::path>& files_;
};

}  // namespace

bool is_pattern(std::string_view text) { return text.find_first_of("*?[") != std::string_view::npos; }

bool matches_part(std::string_view pattern, std::string_view name) {
  if (name.starts_with('.') && !pattern.starts_with('.')) return false;
  // One place to return to is enough: a later star can do all that an earlier one could.
  std::size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size() || p < pattern.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
      continue;
    }
    if (p < pattern.size()) {
      if (const auto [of_pattern, of_name] = step(pattern.substr(p), name.substr(n)); of_pattern > 0) {
        p += of_pattern;
        n += of_name;
        continue;
      }
    }
    if (star == std::string_view::npos || resume >= name.size()) return false;
    p = star + 1;
    n = ++resume;
  }
  return true;
}

Matched expand_pattern(const std::string& pattern) {
  Matched out;
  std::vector<std::string> parts;
  for (const fs::path& part : fs::path(pattern)) {
    const std::string text = part.string();
    if (parts.empty() && !is_pattern(text)) {
      out.base /= part;
    } else if (!text.empty()) {
      if (text == "**" && !parts.empty() && parts.back() == "**") continue;  // else every file would come several times
      parts.push_back(text);
    }
  }
  if (!parts.empty()) Expansion(parts, out.files).visit(out.base, 0);
  std::sort(out.files.begin(), out.files.end());
  out.files.erase(std::unique(out.files.begin(), out.files.end()), out.files.end());
  return out;
}

void walk_folder(const fs::path& folder, const FolderWalk& walk) {
  std::error_code error, ignored;
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) entries.push_back(it->path());
  if (error) return walk.unreadable(folder, error);
  std::sort(entries.begin(), entries.end());
  for (const fs::path& entry : entries) {
    if (fs::is_directory(entry, ignored)) {
      const bool hidden = entry.filename().string().starts_with('.');
      if (!hidden && !fs::is_symlink(entry, ignored) && !(walk.skips && walk.skips(entry))) walk_folder(entry, walk);
    } else if (fs::is_regular_file(entry, ignored)) {
      walk.file(entry);
    }
  }
}

}  // namespace sdx
