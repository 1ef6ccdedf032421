#include "base/system/process.h"
#include "base/system/processes/environment.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

extern char** environ;

namespace sdx {
namespace {

std::filesystem::path folder_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

}  // namespace

std::uint64_t process_id() noexcept { return static_cast<std::uint64_t>(::getpid()); }

void set_environment(const char* name, const char* value) noexcept {
  if (value == nullptr) {
    ::unsetenv(name);
  } else {
    ::setenv(name, value, 1);
  }
}

std::vector<std::string> environment_entries() {
  std::vector<std::string> entries;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) entries.emplace_back(*at);
  return entries;
}

SystemNames system_names() {
  utsname names{};
  ::uname(&names);
  return {names.sysname, names.release, names.machine};
}

std::vector<std::string> listed_in(const char* variable) {
  const char* const text = std::getenv(variable);
  std::vector<std::string> out;
  for (std::string_view rest = text == nullptr ? "" : text; !rest.empty();) {
    const std::string_view entry = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    if (!entry.empty()) out.emplace_back(entry);
  }
  return out;
}

std::filesystem::path user_folder() { return folder_in("HOME"); }

std::filesystem::path user_cache_folder(const char* name) {
  if (const auto xdg = folder_in("XDG_CACHE_HOME"); xdg.is_absolute()) return xdg / name;  // relative ones are to be ignored
  if (const auto home = user_folder(); home.is_absolute()) return home / ".cache" / name;
  return {};
}

}  // namespace sdx
