#include "kernels/cpu/conv/blocked/tiled/blocked_direct.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/blocked/blocked_tasks.h"
#include "kernels/cpu/conv/blocked/tiled/blocked_direct_simd.h"
#include "kernels/cpu/conv/winograd/uneven.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

// The filters of vector number `vector` of a group's outputs.
PackedFilters filters_of(const TiledConv& j, std::int64_t elements, int t, std::int64_t group, std::int64_t vector) {
  const std::int64_t pair = vector / 2, width = j.width(pair);
  const float* const w = j.weights + j.weights_at(group, pair, elements) + vector % 2 * j.k->lanes;
  if (elements == 9) return {w, width, 9 * width, 0};
  return {w, width * j.in_channels, width, t};
}

}  // namespace

bool mark_uneven_tiles(const TiledConv& j, int t, const float* x, std::uint8_t* uneven) {
  const ConvShape& s = *j.s;
  const std::int64_t c = j.k->block, height = s.in[1], width = s.in[2], images = s.batch * s.groups;
  float* const squares = thread_scratch(4, to_size(images * height * width));
  constexpr std::int64_t kGrain = std::int64_t{1} << 16;
  parallel_for(images * height, std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, j.in_channels * width)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end;) {
                   const std::int64_t image = i / height, row = i % height, rows = std::min(end - i, height - row);
                   const std::int64_t block = image / s.groups * blocks_between_images(s, c) + image % s.groups * j.in_blocks;
                   blocked_direct_kernels().squares(x + (block * height + row) * width * c, height * width * c, j.in_channels,
                                                    rows * width, squares + i * width);
                   i += rows;
                 }
               });
  return find_uneven_tiles(t, s, {squares, images}, uneven);
}

bool is_uneven(const TiledConv& j, int t, std::int64_t group, const Place& at) {
  if (j.uneven == nullptr) return false;
  const std::int64_t tiles_y = up_div(j.s->out[1], t), tiles_x = up_div(j.s->out[2], t);
  return j.uneven[((at.image * j.s->groups + group) * tiles_y + at.y / t) * tiles_x + at.x / t] != 0;
}

void output_directly(const TiledConv& j, int t, std::int64_t elements, const float* x, std::int64_t group, std::int64_t block,
                     const Place& at) {
  constexpr std::int64_t kMostOutputs = 16, kMostLanes = 16;
  const BlockedDirectKernels& kernels = blocked_direct_kernels();
  const std::int64_t c = j.k->block, lanes = j.k->lanes;
  alignas(64) float sums[kMostOutputs * kMostLanes];
  for (std::int64_t offset = 0; offset < c; offset += lanes) {
    PackedFilters f = filters_of(j, elements, t, group, (block * c + offset) / lanes);
    ImageTile tile;
    for (std::int64_t b = 0; b < j.in_blocks; ++b, f.w += c * f.channel_step) {
      place_input(j, x, group, b, at, tile);
      kernels.sums(t, static_cast<int>(j.s->stride[1]), tile, f, std::min(c, j.in_channels - b * c), b == 0, sums);
    }
    place_output(j, group, block, at, tile);
    kernels.output(t, tile, sums, offset);
  }
}

}  // namespace sdx::cpu
