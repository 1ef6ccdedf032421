#include "support/text_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "base/error.h"

namespace sdx::testing {

std::vector<TextCase> read_text_cases(const std::string& file) {
  std::ifstream in(file);
  if (!in) fail(ErrorCode::io, "cannot read '{}'", file);
  std::vector<TextCase> cases;
  bool after = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("== ")) {
      cases.push_back({line.substr(3), {}, {}});
      after = false;
    } else if (line == "--") {
      after = true;
    } else if (!cases.empty() && !line.empty()) {
      (after ? cases.back().expected : cases.back().given).push_back(line);
    }
  }
  return cases;
}

std::vector<std::string> take_lines(std::vector<std::string>& lines, std::string_view word) {
  const auto taken =
      std::stable_partition(lines.begin(), lines.end(), [&](const std::string& l) { return !l.starts_with(word); });
  std::vector<std::string> out;
  for (auto it = taken; it != lines.end(); ++it) out.push_back(it->substr(word.size()));
  lines.erase(taken, lines.end());
  return out;
}

std::string text_of(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

int run_files(int argc, char** argv, std::string_view flag, const std::function<int(const std::string&, bool)>& run_file) {
  try {
    int failures = 0;
    bool flagged = false;
    for (int i = 1; i < argc; ++i) {
      const std::string argument = argv[i];
      if (!flag.empty() && argument == flag) {
        flagged = true;
      } else {
        failures += run_file(argument, flagged);
      }
    }
    return failures == 0 ? 0 : 1;
  } catch (const std::exception& e) {
    fmt::print("error: {}\n", e.what());
    return 1;
  }
}

}  // namespace sdx::testing
