#include "base/system/process.h"

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

}  // namespace sdx
