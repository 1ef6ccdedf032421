#pragma once
// Modules: parts of Sardonyx in libraries of their own, loaded when they are first needed, so that programs that never need one
// start without it. A module exports one C function, which returns the head of a table of functions. Modules that link nothing of
// the engine include this file, too.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>

#include "base/tools_api.h"

namespace sdx {

inline constexpr std::uint64_t kModuleMagic = 0x53'44'58'4D'4F'44'00'01;

// The first member of each table. It is read before both sides are known to agree, so its layout is the same in all releases.
struct ModuleHead {
  std::uint64_t magic;
  const char* release;      // SDX_VERSION
  std::size_t table_bytes;  // sizeof the table
  std::size_t types_bytes;  // of structures that cross the border, which another build may lay out another way
};

struct ModuleName {
  const char* file;               // "libsdx_hub.so", or "sardonyx/libsdx_hub.so" for one that no program links
  const char* symbol;             // the function that returns the head
  const char* variable;           // environment variable that names another file
  const char* purpose;            // for messages: "downloading"
  const char* package = nullptr;  // Debian's package of what the module needs, where that may be missing
};

// The head of a table, which may state `kTypesBytes`.
template <class Table>
constexpr ModuleHead module_head(const char* release) {
  static_assert(std::is_standard_layout_v<Table>);
  std::size_t types = 0;
  if constexpr (requires { Table::kTypesBytes; }) types = Table::kTypesBytes;
  return {kModuleMagic, release, sizeof(Table), types};
}

// A module that is linked into the program, where all is one file (SDX_STATIC): no library is looked for. Objects are made before
// main() and live as long as the program.
class SDX_TOOLS_API LinkedModule {
 public:
  using Entry = const ModuleHead* (*)();

  LinkedModule(const char* symbol, Entry entry) noexcept;
  LinkedModule(const LinkedModule&) = delete;
  LinkedModule& operator=(const LinkedModule&) = delete;

  // Null where none has the symbol.
  static const LinkedModule* find(const char* symbol) noexcept;
  const ModuleHead* head() const { return entry_(); }

 private:
  const char* symbol_;
  Entry entry_;
  const LinkedModule* next_;
};

// Returns the head of a linked module, or of the first library that fits and is of this release; it stays loaded. Throws
// Error(io) with every file that was tried and the reason for each, what was expected, and what to do.
SDX_TOOLS_API const ModuleHead& open_module(const ModuleName& name, std::size_t table_bytes, std::size_t types_bytes);

// The table, looked for at the first call. Thread-safe; throws as open_module(), and the next call tries again.
template <class Table, const ModuleName& name = Table::kModule>
const Table& load_module() {
  constexpr ModuleHead own = module_head<Table>("");
  static const Table& loaded = reinterpret_cast<const Table&>(open_module(name, own.table_bytes, own.types_bytes));
  return loaded;
}

// Holds an exception that a module's callback throws, because it must not cross the module's frames.
struct CallbackError {
  std::exception_ptr thrown;

  // False where `f` throws or returns false: the module stops then.
  template <class F>
  bool guarded(F&& f) noexcept {
    try {
      if constexpr (std::is_same_v<decltype(f()), bool>) return f();
      f();
      return true;
    } catch (...) {
      thrown = std::current_exception();
      return false;
    }
  }
  void rethrow() const {
    if (thrown) std::rethrow_exception(thrown);
  }
};

}  // namespace sdx
