#include "vision/batch/input/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <memory>

#include "base/error.h"
#include "base/suggest.h"
#include "base/system/dynlib.h"

namespace sdx::vision::batch {
namespace {

namespace fs = std::filesystem;

// The functions in use, with the types that sqlite3.h declares.
struct Library {
  decltype(&::sqlite3_open_v2) open;
  decltype(&::sqlite3_close) close;
  decltype(&::sqlite3_errmsg) errmsg;
  decltype(&::sqlite3_prepare_v2) prepare;
  decltype(&::sqlite3_finalize) finalize;
  decltype(&::sqlite3_step) step;
  decltype(&::sqlite3_column_count) column_count;
  decltype(&::sqlite3_column_name) column_name;
  decltype(&::sqlite3_column_text) column_text;
  decltype(&::sqlite3_column_bytes) column_bytes;
  decltype(&::sqlite3_busy_timeout) busy_timeout;
};

Library load() {
  std::string why;
  auto library = DynamicLibrary::open_for_good("libsqlite3.so.0", why);
  if (std::string ignored; library == nullptr)
    library = DynamicLibrary::open_for_good("winsqlite3.dll", ignored);  // Windows' own
  if (library == nullptr) {
    fail(ErrorCode::io, "reading SQLite databases needs libsqlite3 (Debian's package libsqlite3-0), which cannot be loaded: {}",
         why);
  }
  Library out{};
  library->find("sqlite3_open_v2", out.open);
  library->find("sqlite3_close", out.close);
  library->find("sqlite3_errmsg", out.errmsg);
  library->find("sqlite3_prepare_v2", out.prepare);
  library->find("sqlite3_finalize", out.finalize);
  library->find("sqlite3_step", out.step);
  library->find("sqlite3_column_count", out.column_count);
  library->find("sqlite3_column_name", out.column_name);
  library->find("sqlite3_column_text", out.column_text);
  library->find("sqlite3_column_bytes", out.column_bytes);
  library->find("sqlite3_busy_timeout", out.busy_timeout);
  return out;
}

const Library& library() {
  static const Library loaded = load();
  return loaded;
}

class Database {
 public:
  explicit Database(const fs::path& file) : file_(file) {
    if (std::error_code ignored; !fs::is_regular_file(file, ignored)) {
      fail(ErrorCode::io, "cannot open '{}': no such file", file.string());
    }
    sqlite3* opened = nullptr;
    const int state = lib_.open(file.string().c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
    db_.reset(opened);
    if (state != SQLITE_OK) broken();
    lib_.busy_timeout(opened, 5000);
  }

  template <class F>
  void query(const std::string& text, F&& use) const {
    sqlite3_stmt* raw = nullptr;
    if (lib_.prepare(db_.get(), text.c_str(), -1, &raw, nullptr) != SQLITE_OK) broken();
    const std::unique_ptr<sqlite3_stmt, decltype(lib_.finalize)> statement(raw, lib_.finalize);
    if (raw == nullptr) fail(ErrorCode::invalid_argument, "'{}': the query is empty", file_.string());
    std::vector<std::string> names;
    for (int i = 0; i < lib_.column_count(raw); ++i) names.emplace_back(lib_.column_name(raw, i));
    if (names.empty()) fail(ErrorCode::invalid_argument, "'{}': the query '{}' returns no rows", file_.string(), text);
    int state = SQLITE_ROW;
    for (std::size_t n = 1; (state = lib_.step(raw)) == SQLITE_ROW; ++n) {
      SqlRow row;
      for (int i = 0; i < static_cast<int>(names.size()); ++i) {
        const auto* value = reinterpret_cast<const char*>(lib_.column_text(raw, i));
        row.emplace_back(value == nullptr ? "" : value,
                         value == nullptr ? 0 : static_cast<std::size_t>(lib_.column_bytes(raw, i)));
      }
      use(names, row, n);
    }
    if (state != SQLITE_DONE) broken();
  }

 private:
  [[noreturn]] void broken() const {
    const std::string why = db_ == nullptr ? "out of memory" : lib_.errmsg(db_.get());
    fail(ErrorCode::invalid_argument, "SQLite cannot read '{}': {}", file_.string(), why);
  }

  const Library& lib_ = library();
  fs::path file_;
  std::unique_ptr<sqlite3, decltype(Library::close)> db_{nullptr, lib_.close};
};

std::string quoted(const std::string& name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string only_table(const Database& database, const fs::path& file, const std::string& wanted) {
  std::vector<std::string> tables;
  database.query("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name",
                 [&](const auto&, const SqlRow& row, std::size_t) { tables.push_back(row[0]); });
  if (wanted.empty() && tables.size() == 1) return tables[0];
  for (const std::string& table : tables) {
    if (table == wanted) return table;
  }
  if (tables.empty()) fail(ErrorCode::invalid_argument, "'{}' has no tables", file.string());
  if (wanted.empty()) {
    fail(ErrorCode::invalid_argument, "'{}' has several tables; --map-table names one of {}", file.string(), join(tables));
  }
  const std::string near = closest(wanted, tables);
  fail(ErrorCode::invalid_argument, "--map-table {}: '{}' has no such table{}; it has {}", wanted, file.string(),
       near.empty() ? "" : fmt::format(", did you mean '{}'?", near), join(tables));
}

}  // namespace

void query_sqlite(const fs::path& file, const std::string& table, const std::string& query,
                  const std::function<void(const std::vector<std::string>&, const SqlRow&, std::size_t)>& use) {
  const Database database(file);
  const std::string text = query.empty() ? "SELECT * FROM " + quoted(only_table(database, file, table)) : query;
  database.query(text, use);
}

}  // namespace sdx::vision::batch
