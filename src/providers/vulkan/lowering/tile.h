#pragma once
// Tiles of matrix products.

#include <cstdint>

namespace sdx::vulkan {

// Rows and columns that an invocation computes; a workgroup has 16 x 16.
struct Tile {
  std::uint32_t rows, columns;
};

inline Tile tile_for(std::int64_t m, std::int64_t n) {
  const auto each = [](std::int64_t extent) { return extent <= 16 ? 1U : extent <= 32 ? 2U : 4U; };
  return {each(m), each(n)};
}

// Tiles along an axis.
inline std::int64_t tiles(std::int64_t extent, std::uint32_t each) { return (extent + 16 * each - 1) / (16 * each); }

}  // namespace sdx::vulkan
