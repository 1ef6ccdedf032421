#include "base/module/module.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/module/one_file.h"
#include "base/module/places.h"
#include "base/system/dynlib.h"
#include "base/system/file.h"
#include "base/system/loader.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

// Of all that are linked into the program, the one made last.
constinit const LinkedModule* g_linked = nullptr;

// Empty where the head is the expected one.
std::string difference(const ModuleHead* head, const ModuleHead& expected) {
  if (head == nullptr || head->magic != kModuleMagic) return "of another release";
  if (std::string_view(head->release) != expected.release) return fmt::format("of release {}", head->release);
  if (head->table_bytes != expected.table_bytes) {
    return fmt::format("of another build: its table has {} bytes instead of {}", head->table_bytes, expected.table_bytes);
  }
  if (head->types_bytes != expected.types_bytes) {
    return fmt::format("of another build: its structures have {} bytes instead of {}", head->types_bytes, expected.types_bytes);
  }
  return "";
}

// Null with `why`.
const ModuleHead* head_of(const fs::path& path, const char* symbol, const ModuleHead& expected, std::string& why) {
  if (std::error_code ignored; !fs::is_regular_file(path, ignored)) {
    why = path.string() + ": not there";
    return nullptr;
  }
  const auto library = DynamicLibrary::open_for_good(path, why);
  if (library == nullptr) return nullptr;
  const auto entry = reinterpret_cast<const ModuleHead* (*)()>(library->symbol(symbol));
  const ModuleHead* const head = entry == nullptr ? nullptr : entry();
  const std::string differs = entry == nullptr ? fmt::format("it has no function {}", symbol) : difference(head, expected);
  why = path.string() + ": " + differs;
  return differs.empty() ? head : nullptr;
}

}  // namespace

std::vector<fs::path> module_files(const ModuleName& name) {
  std::error_code ignored;
  // Absolute, because the loader searches elsewhere for a name without a folder.
  if (const char* named = std::getenv(name.variable); named != nullptr && *named != '\0')
    return {fs::absolute(path_of(named), ignored)};
  const fs::path file = library_file(name.file);
  std::vector<fs::path> out;
  for (const fs::path& start : {folder_of(reinterpret_cast<const void*>(&module_files)), program_folder()}) {
    if (start.empty()) continue;
    for (const fs::path& path : {start / file, start / "../lib" / file, start / SDX_LIB_FROM_BIN / file,
                                 start / (file.has_parent_path() ? "." : "..") / file.filename()}) {
      if (const fs::path normal = path.lexically_normal(); std::find(out.begin(), out.end(), normal) == out.end()) {
        out.push_back(normal);
      }
    }
  }
  return out;
}

std::string module_problem(const fs::path& path, const char* symbol, const ModuleHead& expected) {
  std::string why;
  return head_of(path, symbol, expected, why) != nullptr ? "" : why;
}

std::string linked_problem(const char* symbol, const ModuleHead& expected) {
  const LinkedModule* const linked = LinkedModule::find(symbol);
  return linked == nullptr ? "not part of the program" : difference(linked->head(), expected);
}

LinkedModule::LinkedModule(const char* symbol, Entry entry) noexcept
    : symbol_(symbol), entry_(entry), next_(std::exchange(g_linked, this)) {}

const LinkedModule* LinkedModule::find(const char* symbol) noexcept {
  const LinkedModule* module = g_linked;
  while (module != nullptr && std::string_view(module->symbol_) != symbol) module = module->next_;
  return module;
}

bool is_one_file() noexcept { return LinkedModule::find(kOneFile) != nullptr; }

const ModuleHead& open_module(const ModuleName& name, std::size_t table_bytes, std::size_t types_bytes) {
  const ModuleHead expected{kModuleMagic, SDX_VERSION, table_bytes, types_bytes};
  if (const LinkedModule* linked = LinkedModule::find(name.symbol)) {
    if (const std::string differs = difference(linked->head(), expected); !differs.empty()) {
      fail(ErrorCode::io, "{} needs a part of this program, {}, which is {}: it was linked wrongly", name.purpose, name.symbol,
           differs);
    }
    return *linked->head();
  }
  if (is_one_file()) {
    fail(ErrorCode::io,
         "{} needs {}: this program is one static file without libraries of its own; take a build of Sardonyx that has them",
         name.purpose, library_file(name.file).filename().string());
  }
  std::string tried;
  for (const fs::path& path : module_files(name)) {
    std::string why;
    if (const ModuleHead* head = head_of(path, name.symbol, expected, why)) return *head;
    tried += "\n  " + why;
  }
  fail(ErrorCode::io,
       "{} needs {}, which cannot be loaded ({} may name it); tried:{}\nThe library must be that of Sardonyx {}: install all "
       "files "
       "of this release{}; a build of your own has it where CMake does not say that it was left out",
       name.purpose, library_file(name.file).filename().string(), name.variable, tried, expected.release,
       name.package == nullptr ? "" : fmt::format(", and what the library needs, Debian's package {}", name.package));
}

}  // namespace sdx
