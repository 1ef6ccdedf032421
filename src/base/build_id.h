#pragma once
// Which build of the engine this is.

#include <string_view>

namespace sdx {

// 32 hexadecimal digits: a hash of the engine's sources, its compiler and its flags. Programs and libraries of one build agree.
std::string_view build_id() noexcept;

}  // namespace sdx
