#pragma once
// The per-target inner kernels of blocked_winograd.cc; internal to this folder.

#include <cstdint>

#include "kernels/cpu/conv/blocked/tiled/blocked_image_tile.h"

namespace sdx::cpu {

// A tile of Winograd's F(t x t, 3 x 3), with (rows + 2) x (columns + 2) inputs. With fewer outputs, it uses only rows 0 .. rows
// and t + 1 of the transformed elements, and columns likewise; the others are neither set nor read.
struct WinogradTile : ImageTile {
  // The transformed elements, e_step apart: output of input(), input of output().
  float* v = nullptr;
  std::int64_t e_step = 0;
};

struct BlockedWinogradKernels {
  void (*input)(int t, const WinogradTile& tile);
  void (*output)(int t, const WinogradTile& tile);
  // G g G^T of filters whose nine taps are in g as [channel][tap][width], width being one or two vectors; element e goes to
  // out[e * kWinogradStep + channel * width]. channels * width <= kWinogradFilters.
  void (*weights)(int t, const float* g, std::int64_t channels, std::int64_t width, float* out);
};

const BlockedWinogradKernels& blocked_winograd_kernels();

}  // namespace sdx::cpu
