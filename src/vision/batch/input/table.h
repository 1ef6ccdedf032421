#pragma once
// Tables of pictures and the names of their outputs: CSV, JSON Lines, SQLite.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace sdx::vision::batch {

struct TableOptions {
  // Names of columns, or their numbers from 1 where no column has that name; "": the first of file, path, source, image, picture,
  // filename, name that there is, else the first column; the output's may be left open.
  std::string source_column = {}, output_column = {};
  std::string table = {}, query = {};  // SQLite: the only table unless one of these says otherwise
  std::string delimiter = {};          // CSV: one letter, or "tab"; "": the one of , ; tab | that the first line has most of
  bool header = true;                  // CSV: the first line names the columns
};

struct TableRow {
  std::string source, output;  // output: "" where there is no such column, or nothing in it
  std::size_t line = 0;        // CSV, JSON Lines: in the file; SQLite: the row; from 1
};

// Chooses the format by the file's name: .csv, .tsv, .jsonl, .ndjson, .sqlite, .sqlite3, .db; otherwise by its content. Rows
// without a source are an error. Throws Error(io), Error(invalid_argument) with the line, or with the existing columns.
std::vector<TableRow> read_table(const std::filesystem::path& file, const TableOptions& options);

}  // namespace sdx::vision::batch
