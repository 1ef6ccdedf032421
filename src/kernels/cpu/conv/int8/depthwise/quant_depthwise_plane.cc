#include "kernels/cpu/conv/int8/depthwise/quant_depthwise_plane.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/int8/depthwise/quant_depthwise3_simd.h"
#include "kernels/cpu/conv/int8/depthwise/quant_depthwise_any_simd.h"
#include "kernels/cpu/conv/int8/depthwise/quant_depthwise_vnni.h"
#include "kernels/cpu/conv/int8/quant_nhwc_simd.h"
#include "kernels/cpu/conv/int8/quant_quads_vnni.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kStripBytes = 192 * 1024;  // of the image: a strip stays in the second-level cache for all channels
constexpr std::int64_t kLeastRows = 8;            // of a strip: each strip widens two rows more than it has
constexpr std::int64_t kTaskProducts = 1 << 18;   // about 15 microseconds

constexpr std::int64_t kBlock = 16;
constexpr std::int64_t kMostPadded = 1 << 20;  // bytes of an image whose few channels are padded to a block

std::int64_t pixels(const std::int64_t (&v)[3]) { return v[1] * v[2]; }

// Copies pixels of n bytes to pixels of m bytes; the smaller number counts. Copies 16 bytes at a time as long as there are so
// many.
void respace(const std::uint8_t* from, std::int64_t n, std::uint8_t* to, std::int64_t m, std::int64_t count) {
  const std::int64_t used = std::min(n, m);
  std::int64_t i = 0;
  for (; i < count && (count - i) * used >= kBlock; ++i) std::memcpy(to + i * m, from + i * n, kBlock);
  for (; i < count; ++i) std::memcpy(to + i * m, from + i * n, static_cast<std::size_t>(used));
}

// Whether the kernel for 3x3 taps supports the shape.
bool three(const ConvShape& s) {
  return qdepthwise3_kernel() != nullptr && s.kernel[1] == 3 && s.kernel[2] == 3 && s.dilation[2] == 1 &&
         s.stride[1] == s.stride[2] && (s.stride[1] == 1 || s.stride[1] == 2) && s.out[2] >= 2;
}

}  // namespace

bool qdepthwise_plane_takes(const ConvShape& s) {
  return s.groups > 1 && s.kernel[0] == 1 && s.kernel[1] <= kMostDepthwiseTaps && s.kernel[2] <= kMostDepthwiseTaps;
}

bool qdepthwise_plane_runs(const ConvShape& s, const QEpilogue& e) {
  return gives_bytes(e) && qdepthwise_plane_takes(s) && s.in[0] == 1 && s.out[0] == 1 && s.pad[0] == 0 &&
         (s.dilation[1] == 1 || s.kernel[1] == 1) && (three(s) || qdepthwise_any_columns(s) >= 4) &&
         (s.groups >= kBlock || std::max(pixels(s.in), pixels(s.out)) * kBlock <= kMostPadded);
}

namespace {

// The number of blocks of 16 channels to compute at once, from `block` on and before `stop`. A last block that is cut short is
// computed alone.
std::int64_t groups_at(std::int64_t block, std::int64_t stop) {
  const std::int64_t left = stop - block;
  return left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

// For fewer than 16 channels: pads the image to 16; the added ones may hold any values.
void few_channels(ConvShape s, const QDepthwiseImage& x, const std::int16_t* weights, bool quads, const QEpilogue& epilogue,
                  std::uint8_t* y) {
  const std::int64_t channels = s.groups;
  const std::int64_t batch = s.batch;
  std::int32_t bias[kBlock] = {};
  float scale[kBlock] = {};
  for (std::int64_t i = 0; i < channels; ++i) {
    bias[i] = epilogue.bias != nullptr ? epilogue.bias[i] : 0;
    scale[i] = epilogue.scale[epilogue.scale_is_array ? i : 0];
  }
  QEpilogue e = epilogue;
  e.bias = bias;
  e.scale = scale;
  e.scale_is_array = true;
  s.batch = 1;
  s.groups = s.in_channels = s.out_channels = kBlock;
  auto* wide_x =
      reinterpret_cast<std::uint8_t*>(thread_scratch(1, static_cast<std::size_t>((pixels(s.in) + pixels(s.out)) * kBlock / 4)));
  std::uint8_t* wide_y = wide_x + pixels(s.in) * kBlock;
  for (std::int64_t i = 0; i < batch; ++i) {
    respace(x.data + i * pixels(s.in) * channels, channels, wide_x, kBlock, pixels(s.in));
    qdepthwise_plane_conv(s, {wide_x, x.is_signed, x.zero}, weights, quads, e, wide_y);
    respace(wide_y, kBlock, y + i * pixels(s.out) * channels, channels, pixels(s.out));
  }
}

}  // namespace

bool qdepthwise_plane_has_quads(const ConvShape& s) {
  const bool any = s.kernel[1] > 1 && s.dilation[1] == 1 && s.dilation[2] == 1 && s.stride[2] <= 2;
  const QNhwcKernels& kernels = qnhwc_kernels();
  return (three(s) || any) && kernels.quads != nullptr && kernels.nr == kQuadColumns && qdepthwise_quads(1) != nullptr;
}

void qdepthwise_plane_conv(const ConvShape& s, const QDepthwiseImage& x, const std::int16_t* weights, bool quads,
                           const QEpilogue& epilogue, std::uint8_t* y) {
  if (s.groups < kBlock) return few_channels(s, x, weights, quads, epilogue, y);
  const bool by_three = three(s);
  const QDepthwise3Kernel kernel = by_three ? qdepthwise3_kernel() : qdepthwise_any_kernel();
  const std::int64_t channels = s.groups;
  const std::int64_t row_bytes = s.in[2] * channels * s.stride[1];
  const std::int64_t row_work = s.out[2] * channels * volume(s.kernel);
  std::int64_t rows = std::max(kLeastRows, kStripBytes / std::max<std::int64_t>(1, row_bytes));
  if (current_pool().threads() > 1) rows = std::min(rows, std::max(kLeastRows, kTaskProducts / row_work));
  rows = rows / 2 * 2;
  const std::int64_t strips = (s.out[1] + rows - 1) / rows;
  // If there are few rows but many channels, channels are divided, too.
  const std::int64_t blocks = (channels + 15) / 16;
  const std::int64_t wanted = std::clamp<std::int64_t>(s.out[1] * row_work / kTaskProducts, 1, 2 * current_pool().threads());
  const std::int64_t parts = std::clamp<std::int64_t>((wanted + strips - 1) / strips, 1, blocks);
  const Cuts cuts(blocks, (blocks + parts - 1) / parts);
  const std::int64_t columns = (s.out[2] - 1) * s.stride[2] + 3;
  parallel_for(s.batch * strips * cuts.parts, 1, [&](std::int64_t begin, std::int64_t end) {
    QDepthwise3 d;
    d.shape = &s;
    d.is_signed = x.is_signed;
    d.zero = x.zero;
    d.weight_step = (channels + 15) / 16 * 16;
    d.epilogue = &epilogue;
    const std::int64_t quad_bytes = by_three ? kDepthwiseQuadBytes : kDepthwiseAnyQuadBytes;
    const std::int64_t buffer = quads ? quad_bytes / 4 : by_three ? 2 * columns * 16 : kDepthwiseAnyBytes / 4;
    d.pairs = reinterpret_cast<std::int16_t*>(thread_scratch(0, static_cast<std::size_t>(buffer)));
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t part = i % cuts.parts;
      const std::int64_t strip = i / cuts.parts % strips;
      const std::int64_t image = i / (cuts.parts * strips);
      d.begin = strip * rows;
      d.end = std::min(s.out[1], d.begin + rows);
      const std::int64_t stop = cuts.begin(part + 1);
      for (std::int64_t b = cuts.begin(part); b < stop;) {
        d.column = std::min(b * 16, channels - 16);  // the last block computes some channels again
        const std::int64_t groups = quads ? groups_at(b, std::min(stop, channels / 16)) : 1;
        b += groups;
        d.x = x.data + image * s.in[1] * s.in[2] * channels + d.column;
        d.y = y + image * s.out[1] * s.out[2] * channels + d.column;
        d.weights = weights + d.column;
        if (quads) {
          (by_three ? qdepthwise_quads : qdepthwise_any_quads)(groups)(d);
        } else {
          kernel(d);
        }
      }
    }
  });
}

}  // namespace sdx::cpu
