#pragma once
// AMX's tile registers (Intel SDM, volume 1, 18.2). use_amx() says whether the machine has them and the process may use them.

#include <cstdint>

namespace sdx::cpu {

// The operand of ldtilecfg: extents of up to 8 tiles.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  void set(int tile, std::int64_t tile_rows, std::int64_t bytes) {
    rows[tile] = static_cast<std::uint8_t>(tile_rows);
    row_bytes[tile] = static_cast<std::uint16_t>(bytes);
  }
  // All tiles of 16 rows of 64 bytes.
  static const TileConfig& whole();
};

// Configures the calling thread's tiles, and releases them at its end. About 300 cycles.
class TileScope {
 public:
  explicit TileScope(const TileConfig& config);
  ~TileScope();
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

}  // namespace sdx::cpu
