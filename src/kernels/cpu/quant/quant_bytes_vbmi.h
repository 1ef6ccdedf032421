#pragma once
// Tables of bytes by vpermi2b, which looks up 64 bytes in 128; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

using ByteMap = void (*)(const std::uint8_t* table, const std::uint8_t* x, std::uint8_t* y, std::int64_t n);
// Null where the build or the machine has none.
ByteMap byte_map_vbmi();

}  // namespace sdx::cpu
