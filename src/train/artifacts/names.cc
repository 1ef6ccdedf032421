#include "train/artifacts/names.h"

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"

namespace sdx::train {

bool is_glob(std::string_view pattern) { return pattern.find_first_of("*?") != std::string_view::npos; }

// Goes back to the last star alone, so the time is at most the product of the lengths.
bool glob_matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;
  std::size_t taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return std::all_of(pattern.begin() + static_cast<std::ptrdiff_t>(p), pattern.end(), [](char c) { return c == '*'; });
}

std::vector<bool> matched(std::span<const std::string> patterns, std::span<const std::string> names, std::string_view what) {
  std::vector<bool> out(names.size(), false);
  for (const std::string& pattern : patterns) {
    // A name may hold a star itself.
    const bool exact = std::find(names.begin(), names.end(), pattern) != names.end();
    bool any = false;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (exact ? names[i] != pattern : !glob_matches(pattern, names[i])) continue;
      out[i] = any = true;
    }
    if (any) continue;
    if (is_glob(pattern)) {
      const std::string known =
          names.empty() ? "there are none" : "the first of " + std::to_string(names.size()) + " is '" + names[0] + "'";
      fail(ErrorCode::invalid_argument, "{}: '{}' matches no name; {}", what, pattern, known);
    }
    const std::string near = closest(pattern, names);
    fail(ErrorCode::invalid_argument, "{}: there is no '{}'{}", what, pattern,
         near.empty() ? "" : "; did you mean '" + near + "'?");
  }
  return out;
}

}  // namespace sdx::train
