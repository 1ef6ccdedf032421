// Pointwise convolutions whose groups do not fill blocks of channels, or whose input channels are shuffled: ShuffleNet's.
// Register tiles multiply channels stored anywhere, given a list of offsets.

#include "kernels/cpu/conv/blocked/blocked_listed.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/blocked/blocked_simd.h"
#include "kernels/cpu/conv/blocked/blocked_tasks.h"
#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/conv/conv_windows.h"
#include "kernels/cpu/elementwise/elementwise_simd.h"
#include "kernels/cpu/simd/cuts.h"

namespace sdx::cpu {
namespace {

// One or two vectors of outputs and the groups [group0, group1) that they belong to. In a vector that spans
// groups, each lane takes only its own group's sums.
struct Part {
  std::int64_t vector, width, group0, group1;
  std::int64_t weights;  // where they begin: [channels of the groups][width * lanes]
};

struct Parts {
  std::vector<Part> all;
  std::int64_t lanes, vectors;
  std::int64_t floats = 0;  // of weights; the bias of all vectors follows

  explicit Parts(const ConvShape& s) {
    const BlockedKernels& k = blocked_kernels();
    lanes = k.lanes;
    vectors = up_div(s.out_channels, k.block) * k.block / lanes;
    const std::int64_t outputs = s.out_channels / s.groups;
    const auto groups_of = [&](std::int64_t v) {
      const std::int64_t last = s.out_channels - 1;
      return Span{std::min(last, v * lanes) / outputs, std::min(last, (v + 1) * lanes - 1) / outputs + 1};
    };
    for (std::int64_t v = 0; v < vectors;) {
      const Span a = groups_of(v), b = groups_of(v + 1);
      const bool two = v + 1 < vectors && a.begin == b.begin && a.end == b.end;
      all.push_back({v, two ? 2 : 1, a.begin, a.end, floats});
      floats += a.size() * (s.in_channels / s.groups) * (two ? 2 : 1) * lanes;
      v += two ? 2 : 1;
    }
  }
};

struct ListedArguments {
  const BlockedKernels* k;
  const ConvShape* s;
  const Parts* parts;
  const std::int64_t* list;  // offset of each channel, in the order of the groups
  const float* packed;
  const float* residual;
  Bounds bounds;
  float* y;
};

// Pixels [first, first + count) of one image in one part of the outputs. x: the image.
void run_part(const ListedArguments& j, const Part& part, const float* x, std::int64_t image, std::int64_t first,
              std::int64_t count) {
  const ConvShape& s = *j.s;
  const std::int64_t c = j.k->block, lanes = j.parts->lanes, plane = s.out[1] * s.out[2], each = s.in_channels / s.groups;
  BlockedTile t;
  t.pixel_step = c;
  t.list = j.list + part.group0 * each;
  t.run = each;
  t.parts = part.group1 - part.group0;
  t.lane_step = s.out_channels / s.groups;
  t.lane = (part.group0 + 1) * t.lane_step - part.vector * lanes;
  t.wide = part.width == 2;
  t.w = j.packed + part.weights;
  t.bias = j.packed + j.parts->floats + part.vector * lanes;
  t.lo = j.bounds.lo;
  t.hi = j.bounds.hi;
  const Cuts cuts(count, t.wide ? j.k->wide_pixels : j.k->narrow_pixels);
  equal_tiles(cuts, [&](std::int64_t i, std::int64_t tiles) {
    const std::int64_t at = (first + cuts.begin(i)) * c;
    t.x = x + at;
    t.pixels = cuts.size(i);
    t.tiles = tiles;
    for (std::int64_t v = 0; v < part.width; ++v) {
      const std::int64_t channel = (part.vector + v) * lanes;
      const std::int64_t to = (image * up_div(s.out_channels, c) + channel / c) * plane * c + at + channel % c;
      t.y[v] = j.y + to;
      t.residual[v] = j.residual != nullptr ? j.residual + to : nullptr;
    }
    j.k->tile(t);
  });
}

// Pieces of the input that stay in the second-level cache while all outputs are computed from them.
constexpr std::int64_t kInputFloats = 96 * 1024;

}  // namespace

std::size_t blocked_listed_floats(const ConvShape& s) {
  const Parts parts(s);
  return static_cast<std::size_t>(parts.floats + parts.vectors * parts.lanes);
}

void blocked_listed_pack(const ConvShape& s, const void* weights, const float* bias, float* packed) {
  const Parts parts(s);
  const std::int64_t each = s.in_channels / s.groups, outputs = s.out_channels / s.groups;
  for (const Part& part : parts.all) {
    float* to = packed + part.weights;
    const std::int64_t first = part.vector * parts.lanes, width = part.width * parts.lanes;
    for (std::int64_t group = part.group0; group < part.group1; ++group) {
      // In this part, outputs [begin, end) are this group's.
      const std::int64_t begin = std::max(first, group * outputs), end = std::min(first + width, (group + 1) * outputs);
      for (std::int64_t k = 0; k < each; ++k, to += width) {
        std::fill(to, to + width, 0.0F);
        for (std::int64_t m = begin; m < end; ++m) {
          std::memcpy(to + (m - first), static_cast<const char*>(weights) + (m * each + k) * 4, sizeof(float));
        }
      }
    }
  }
  pack_bias(bias, s.out_channels, parts.vectors * parts.lanes, packed + parts.floats);
}

void conv_blocked_listed(const ConvShape& s, const float* x, const float* packed, const float* residual, const UnarySpec& act,
                         float* y) {
  const BlockedKernels& k = blocked_kernels();
  const Parts parts(s);
  const std::int64_t c = k.block, plane = s.out[1] * s.out[2];
  const std::int64_t in_blocks = up_div(s.in_channels, c), out_blocks = up_div(s.out_channels, c);
  std::vector<std::int64_t> list(static_cast<std::size_t>(s.in_channels));
  for (std::int64_t i = 0; i < s.in_channels; ++i) {
    const std::int64_t from = i % s.shuffle * (s.in_channels / s.shuffle) + i / s.shuffle;
    list[static_cast<std::size_t>(i)] = from / c * plane * c + from % c;
  }
  const ListedArguments j{&k, &s, &parts, list.data(), packed, residual, Bounds(act), y};
  const Cuts chunks(plane, std::clamp<std::int64_t>(kInputFloats / s.in_channels, 1, plane));
  const std::int64_t outer = s.batch * chunks.parts;
  const std::int64_t threads = current_pool().threads();
  // Threads also split the parts of the outputs if the pixels are too few tasks, unless an activation follows, which needs whole
  // blocks of outputs.
  const auto count = static_cast<std::int64_t>(parts.all.size());
  const bool whole = threads <= 1 || outer >= 4 * threads || j.bounds.after;
  const Cuts shares(count, whole ? count : up_div(count, std::min(count, up_div(4 * threads, outer))));
  const std::int64_t work = parts.floats * plane / (chunks.parts * shares.parts);
  const auto grain = std::max<std::int64_t>(1, 100000 / std::max<std::int64_t>(1, work));
  parallel_for(outer * shares.parts, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t share = i % shares.parts, place = i / shares.parts;
      const std::int64_t image = place / chunks.parts, chunk = place % chunks.parts;
      const std::int64_t first = chunks.begin(chunk), pixels = chunks.size(chunk);
      for (std::int64_t p = shares.begin(share); p < shares.begin(share + 1); ++p) {
        run_part(j, parts.all[static_cast<std::size_t>(p)], x + image * in_blocks * plane * c, image, first, pixels);
      }
      for (std::int64_t b = 0; j.bounds.after && b < out_blocks; ++b) {
        float* const at = y + ((image * out_blocks + b) * plane + first) * c;
        elementwise_kernels().unary(act, at, at, pixels * c);
      }
    }
  });
}

}  // namespace sdx::cpu
