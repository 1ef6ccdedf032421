#pragma once
// Random numbers from the system, for seeds and for names that must differ between processes, too.

#include <cstdint>

#include "base/tools_api.h"

namespace sdx {

// 64 random bits. One call of the system, about 0.3 µs; a process that forks gives its child other numbers than its own.
SDX_TOOLS_API std::uint64_t random_bits();

}  // namespace sdx
