#include "base/system/process.h"

#include <cstdlib>

#include "base/system/windows/api.h"

namespace sdx {

std::uint64_t process_id() noexcept { return ::GetCurrentProcessId(); }

void set_environment(const char* name, const char* value) noexcept { ::_putenv_s(name, value == nullptr ? "" : value); }

}  // namespace sdx
