#pragma once
// The floating types of 16 bits.

#include <sdx/dtype.hpp>

namespace sdx {

inline bool is_half(DataType type) { return type == DataType::float16 || type == DataType::bfloat16; }

}  // namespace sdx
