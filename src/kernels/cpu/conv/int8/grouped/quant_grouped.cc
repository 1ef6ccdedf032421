#include "kernels/cpu/conv/int8/grouped/quant_grouped.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/int8/grouped/quant_grouped_vnni.h"
#include "kernels/cpu/conv/int8/quant_nhwc_layout.h"
#include "kernels/cpu/conv/int8/quant_nhwc_simd.h"
#include "kernels/cpu/conv/int8/quant_quads.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kVector = 16;      // outputs
constexpr std::int64_t kMostPixels = 96;  // of a block: the places that their taps read stay in the first-level cache
constexpr std::int64_t kTaskProducts = 1 << 19;

// The packed weights: the sum of each output channel's, then panels [panel][tap][quad][32][4].
struct Layout {
  std::int64_t in, out;  // channels of a group
  std::int64_t taps, quads, panels;

  explicit Layout(const ConvShape& s)
      : in(s.in_channels / s.groups),
        out(s.out_channels / s.groups),
        taps(volume(s.kernel)),
        quads(in / 4),
        panels(up_div(s.out_channels, kQuadColumns)) {}
  std::int64_t columns() const { return panels * kQuadColumns; }
  std::int64_t panel_bytes() const { return taps * quads * kQuadColumns * 4; }
  bool ordered() const { return out < kVector; }
  // The input channels that the vector of outputs with this first one reads.
  std::int64_t first_input(std::int64_t column) const { return column / out * in; }
  // The quads from the first one on that this vector needs, as bits: those of all its groups, of which the last vector may have
  // fewer.
  std::uint16_t quads_of(std::int64_t column, std::int64_t outputs) const {
    const std::int64_t groups = std::min(up_div(kVector, out), up_div(outputs - column, out));
    return static_cast<std::uint16_t>((std::uint32_t{1} << (groups * quads)) - 1);
  }
};

// The quad that each lane takes, for each quad of a group.
void order_of(const Layout& l, std::int32_t* order) {
  for (std::int64_t j = 0; j < l.quads; ++j) {
    for (std::int64_t lane = 0; lane < kVector; ++lane) *order++ = static_cast<std::int32_t>(lane / l.out * l.quads + j);
  }
}

// Blocks of whole lines of outputs.
struct Block {
  std::int64_t first, pixels;  // outputs, counted over the batch
};

// The pixels that one tap reads for `count` outputs of a line, the first at `ix` of `line`; null: a line of padding.
void find_line(const ConvShape& s, const std::uint8_t* line, const std::uint8_t* zeros, std::int64_t ix, std::int64_t count,
               const std::uint8_t** to) {
  const std::int64_t stride = s.stride[2], step = stride * s.in_channels;
  const std::int64_t begin = line == nullptr ? count : std::clamp<std::int64_t>(up_div(-ix, stride), 0, count);
  const std::int64_t end = ix >= s.in[2] ? begin : std::clamp<std::int64_t>(up_div(s.in[2] - ix, stride), begin, count);
  std::fill(to, to + begin, zeros);
  const std::uint8_t* pixel = end > begin ? line + (ix + begin * stride) * s.in_channels : nullptr;
  for (std::int64_t i = begin; i < end; ++i, pixel += step) to[i] = pixel;
  std::fill(to + end, to + count, zeros);
}

// Finds what each tap of each output reads: places[tap * pixels + i]. `zeros`: a pixel of padding.
void find_places(const ConvShape& s, const std::uint8_t* x, const std::uint8_t* zeros, const Block& b,
                 const std::uint8_t** places) {
  for (std::int64_t i = 0, count = 0; i < b.pixels; i += count) {
    const std::int64_t ox = (b.first + i) % s.out[2], line = (b.first + i) / s.out[2];
    const std::int64_t oy = line % s.out[1], oz = line / s.out[1] % s.out[0], image = line / s.out[1] / s.out[0];
    count = std::min(s.out[2] - ox, b.pixels - i);
    const std::uint8_t** to = places + i;
    for (std::int64_t z = 0; z < s.kernel[0]; ++z) {
      const std::int64_t iz = oz * s.stride[0] - s.pad[0] + z * s.dilation[0];
      for (std::int64_t y = 0; y < s.kernel[1]; ++y) {
        const std::int64_t iy = oy * s.stride[1] - s.pad[1] + y * s.dilation[1];
        const bool inside = iz >= 0 && iz < s.in[0] && iy >= 0 && iy < s.in[1];
        const std::uint8_t* const from = inside ? x + ((image * s.in[0] + iz) * s.in[1] + iy) * s.in[2] * s.in_channels : nullptr;
        for (std::int64_t t = 0; t < s.kernel[2]; ++t, to += b.pixels) {
          find_line(s, from, zeros, ox * s.stride[2] - s.pad[2] + t * s.dilation[2], count, to);
        }
      }
    }
  }
}

struct GroupedArguments {
  const ConvShape* s;
  Layout layout;
  const std::int8_t* panels;
  const std::int32_t* order;
  const std::uint8_t* zeros;
  QGroupedImage image;
  QEpilogue epilogue;  // its bias includes the zero point's share
  void* y;
};

void run_block(const GroupedArguments& j, const Block& block, std::int64_t panel0, std::int64_t panel1) {
  const Layout& l = j.layout;
  const std::int64_t outputs = j.s->out_channels;
  const bool bytes = gives_bytes(j.epilogue);
  float* const scratch = thread_scratch(1, to_size(2 * l.taps * block.pixels + kQuadColumns * block.pixels + 32));
  auto* const places = reinterpret_cast<const std::uint8_t**>(scratch);
  auto* const sums = reinterpret_cast<std::int32_t*>(scratch + round_up(2 * l.taps * block.pixels, 16));
  find_places(*j.s, j.image.x, j.zeros, block, places);
  QGroupedPanel p;
  p.pixels = places;
  p.m = block.pixels;
  p.taps = l.taps;
  p.quads = l.quads;
  p.order = l.ordered() ? j.order : nullptr;
  p.flip = j.image.is_signed;
  p.ldc = outputs;
  p.sums = bytes ? nullptr : sums;
  for (std::int64_t panel = panel0; panel < panel1; ++panel) {
    const std::int64_t column = panel * kQuadColumns;
    p.columns = std::min(kQuadColumns, outputs - column);
    p.b = j.panels + panel * l.panel_bytes();
    for (const std::int64_t v : {0, 1}) {
      const std::int64_t first = std::min(column + v * kVector, outputs - 1);
      p.offset[v] = l.first_input(first);
      p.there[v] = l.quads_of(first, outputs);
    }
    QQuadFinish finish;
    if (bytes) {
      finish = qquad_finish(j.epilogue, column, p.columns);
      p.finish = &finish;
      p.y = static_cast<std::uint8_t*>(j.y) + block.first * outputs + column;
    }
    qgrouped_avx512()(p);
    if (!bytes) {
      qnhwc_kernels().finish(j.epilogue, sums, block.pixels, p.columns, column,
                             static_cast<char*>(j.y) + (block.first * outputs + column) * bytes_per_output(j.epilogue), outputs);
    }
  }
}

}  // namespace

bool qgrouped_takes(const ConvShape& s, bool wide) {
  if (wide || s.groups < 2 || qnhwc_kernels().quads == nullptr || qnhwc_kernels().nr != kQuadColumns) return false;
  const Layout l(s);
  if (l.in % 4 != 0) return false;
  return l.out % kVector == 0 || (l.out < kVector && kVector % l.out == 0 && kVector / l.out * l.quads <= kVector);
}

std::size_t qgrouped_packed_bytes(const ConvShape& s) {
  const Layout l(s);
  return to_size(l.columns() * 4 + l.panels * l.panel_bytes());
}

void qgrouped_pack(const ConvShape& s, const QWeights& w, void* packed) {
  const Layout l(s);
  std::memset(packed, 0, qgrouped_packed_bytes(s));
  auto* const sums = static_cast<std::int32_t*>(packed);
  auto* const panels = reinterpret_cast<std::int8_t*>(sums + l.columns());
  parallel_for(s.out_channels, std::max<std::int64_t>(1, (1 << 14) / (l.in * l.taps)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t m = begin; m < end; ++m) {
      const nhwc::Column values(s, w, m, l.in * l.taps);
      std::int8_t* const panel = panels + m / kQuadColumns * l.panel_bytes() + m % kQuadColumns * 4;
      for (std::int64_t c = 0; c < l.in; ++c) {
        for (std::int64_t t = 0; t < l.taps; ++t) {
          const std::int32_t v = values[c * l.taps + t];
          sums[m] += v;
          panel[(t * l.quads + c / 4) * kQuadColumns * 4 + c % 4] = static_cast<std::int8_t>(v);
        }
      }
    }
  });
}

void qgrouped_conv(const ConvShape& s, const QGroupedImage& image, const void* packed, const QEpilogue& epilogue, void* y) {
  const Layout l(s);
  const auto* const sums = static_cast<const std::int32_t*>(packed);
  // All threads read the biases, the order and the padding.
  const std::int64_t order_size = l.quads * kVector, pixel = round_up(s.in_channels + 64, 64);
  auto* const bias = reinterpret_cast<std::int32_t*>(thread_scratch(2, to_size(l.columns() + order_size + pixel / 4)));
  std::int32_t* const order = bias + l.columns();
  auto* const zeros = reinterpret_cast<std::uint8_t*>(order + order_size);
  nhwc::bias_without_zero(epilogue, sums, image.zero + (image.is_signed ? 128 : 0), s.out_channels, bias);
  order_of(l, order);
  std::memset(zeros, image.zero & 0xFF, to_size(pixel));
  GroupedArguments j{&s, l, reinterpret_cast<const std::int8_t*>(sums + l.columns()), order, zeros, image, epilogue, y};
  j.epilogue.bias = bias;
  const std::int64_t pixels = s.batch * volume(s.out), work = s.out_channels * l.in * l.taps;
  const std::int64_t threads = current_pool().threads();
  // Few pixels are shared by panels.
  const std::int64_t most = std::min(kMostPixels, std::max(kGroupedRows, up_div(pixels, threads)));
  const Cuts blocks(pixels, most);
  const std::int64_t parts = std::clamp<std::int64_t>(threads / blocks.parts, 1, l.panels);
  const Cuts shares(l.panels, up_div(l.panels, parts));
  const std::int64_t each = std::max<std::int64_t>(1, work * most / shares.parts);
  parallel_for(blocks.parts * shares.parts, std::max<std::int64_t>(1, kTaskProducts / each),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t block = i / shares.parts, share = i % shares.parts;
                   run_block(j, {blocks.begin(block), blocks.size(block)}, shares.begin(share), shares.begin(share + 1));
                 }
               });
}

}  // namespace sdx::cpu
