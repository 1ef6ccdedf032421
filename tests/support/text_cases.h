#pragma once
// Cases of tests as text:
//
//   == NAME
//   what is tested
//   --
//   what is expected
//
// Lines before the first case say what the file is about; empty lines do not count.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sdx::testing {

struct TextCase {
  std::string name;
  std::vector<std::string> given, expected;  // lines
};

// Throws Error(io).
std::vector<TextCase> read_text_cases(const std::string& file);

// The lines that begin with `word`, without it, and taken out of `lines`.
std::vector<std::string> take_lines(std::vector<std::string>& lines, std::string_view word);

// Each with a line feed behind it.
std::string text_of(const std::vector<std::string>& lines);

// The main() of a program that takes files of cases and perhaps `flag` before them ("": none): calls run_file(file, flag given),
// which returns the number of failures, for each. Returns the exit code.
int run_files(int argc, char** argv, std::string_view flag, const std::function<int(const std::string&, bool)>& run_file);

}  // namespace sdx::testing
