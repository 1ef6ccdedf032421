#pragma once
// Reading SQLite databases by libsqlite3, which is loaded when it is first needed.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace sdx::vision::batch {

using SqlRow = std::vector<std::string>;  // null: ""

// Calls `use` for each row of the query, or of the table, or of the only table that there is. Nothing is written. Throws
// Error(io) where libsqlite3 is missing, Error(invalid_argument) for files that are not databases, with the tables that there
// are, or with SQLite's message.
void query_sqlite(const std::filesystem::path& file, const std::string& table, const std::string& query,
                  const std::function<void(const std::vector<std::string>& columns, const SqlRow& row, std::size_t number)>& use);

}  // namespace sdx::vision::batch
