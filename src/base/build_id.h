#pragma once
// Identifies this build of the engine.

#include <string_view>

#include "base/tools_api.h"

namespace sdx {

// 32 hexadecimal digits: a hash of the engine's sources, its compiler and its flags. Programs and libraries of one build agree.
SDX_TOOLS_API std::string_view build_id() noexcept;

}  // namespace sdx
