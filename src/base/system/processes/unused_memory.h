#pragma once

#include <cstdint>

#include "base/tools_api.h"

namespace sdx {

// Bytes of the machine's memory that new pages can take without swapping; 0: the system does not say.
SDX_TOOLS_API std::uint64_t unused_memory();

}  // namespace sdx
