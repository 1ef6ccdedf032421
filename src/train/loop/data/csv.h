#pragma once
// Tables of text with names of columns.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace sdx::train::loop {

struct CsvTable {
  std::vector<std::string> names;              // of the columns: the first record
  std::vector<std::vector<std::string>> rows;  // each as long as `names`
  std::vector<std::size_t> lines;              // of the file, where each row begins
};

// CSV (base/text/csv.h), with the separator that the first line has most of. Throws Error(invalid_argument) that names file and
// line for a quote without its other, a row of another length, and a name that comes twice; Error(io).
CsvTable read_csv(const std::filesystem::path& path);
CsvTable parse_csv(std::string_view text, const std::string& where);

}  // namespace sdx::train::loop
