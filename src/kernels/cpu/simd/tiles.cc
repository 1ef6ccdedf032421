#include "kernels/cpu/simd/tiles.h"

namespace sdx::cpu {

const TileConfig& TileConfig::whole() {
  static const TileConfig config = [] {
    TileConfig c;
    for (int i = 0; i < 8; ++i) c.set(i, 16, 64);
    return c;
  }();
  return config;
}

#if defined(__x86_64__) && defined(__GNUC__)

// Not _tile_loadconfig: GCC 12's declares that it reads eight bytes, so the rest is never written.
TileScope::TileScope(const TileConfig& config) { __asm__ volatile("ldtilecfg %0" ::"m"(config)); }
TileScope::~TileScope() { __asm__ volatile("tilerelease"); }

#else

TileScope::TileScope(const TileConfig&) {}
TileScope::~TileScope() = default;

#endif

}  // namespace sdx::cpu
