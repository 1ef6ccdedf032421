#pragma once

#include "base/tools_api.h"

namespace sdx {

// Whether the program is one file with its modules inside (SDX_STATIC), so that there are no libraries of ours beside it. Such a
// program links a module of this name.
inline constexpr const char* kOneFile = "one file";
SDX_TOOLS_API bool is_one_file() noexcept;

}  // namespace sdx
