#pragma once
// TypeProto <-> Type.

#include <string>
#include <string_view>

#include "graph/type.h"

namespace sdx {

// Negative extents and nameless ones are unknown. Throws Error(invalid_model): unknown element type, nesting above 16, rank
// above 64.
Type read_type(std::string_view message);
std::string write_type(const Type& type);

}  // namespace sdx
