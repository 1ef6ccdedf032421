#include "base/system/process.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>

namespace sdx {

std::uint64_t process_id() noexcept { return static_cast<std::uint64_t>(::getpid()); }

void set_environment(const char* name, const char* value) noexcept {
  if (value == nullptr) {
    ::unsetenv(name);
  } else {
    ::setenv(name, value, 1);
  }
}

SystemNames system_names() {
  utsname names{};
  ::uname(&names);
  return {names.sysname, names.release, names.machine};
}

std::filesystem::path user_cache_folder(const char* name) {
  const auto variable = [](const char* of) -> std::filesystem::path {
    const char* const text = std::getenv(of);
    return text == nullptr ? "" : text;
  };
  if (const auto xdg = variable("XDG_CACHE_HOME"); xdg.is_absolute()) return xdg / name;  // relative ones are to be ignored
  if (const auto home = variable("HOME"); home.is_absolute()) return home / ".cache" / name;
  return {};
}

}  // namespace sdx
