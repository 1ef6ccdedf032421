#pragma once
// Tables of bytes with vpermi2b, which looks up 64 indices in 128 bytes; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

using ByteMap = void (*)(const std::uint8_t* table, const std::uint8_t* x, std::uint8_t* y, std::int64_t n);
// Null if the build or the machine does not support it.
ByteMap byte_map_vbmi();

}  // namespace sdx::cpu
