#pragma once
// Names as people give them: exact ones, and globs with `*` and `?`.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sdx::train {

bool is_glob(std::string_view pattern);
// `*`: any characters, also none; `?`: one character. No other character is special.
bool glob_matches(std::string_view pattern, std::string_view name);

// Matches names with patterns: result[i] is whether any pattern matches names[i]. Throws Error(invalid_argument) for a pattern
// that matches none, with the nearest name; `what`: "requires_grad".
std::vector<bool> matched(std::span<const std::string> patterns, std::span<const std::string> names, std::string_view what);

}  // namespace sdx::train
