#include "kernels/cpu/quant/quant.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/plain/conv_depthwise.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/gemm/gemm_simd.h"
#include "kernels/cpu/quant/quant_simd.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kScratchBytes = 256 * 1024;  // the target size of a block of patches

std::int64_t pairs_of(std::int64_t k) { return (k + 1) / 2; }

// Packed weights [m, k] are m row sums, then the tiles as int16.
std::size_t packed_bytes(std::int64_t m, std::int64_t k) { return to_size(round_up(m, 16) * 4 + m * pairs_of(k) * 4); }
const std::int16_t* tiles_of(const void* packed, std::int64_t m) {
  return reinterpret_cast<const std::int16_t*>(static_cast<const std::int32_t*>(packed) + round_up(m, 16));
}

// zeros: m values `zero_step` apart, or null (0). They are subtracted.
void pack_rows(const std::uint8_t* a, bool is_signed, std::int64_t m, std::int64_t k, const std::int32_t* zeros,
               std::int64_t zero_step, void* packed) {
  auto* sums = static_cast<std::int32_t*>(packed);
  auto* out = reinterpret_cast<std::int16_t*>(sums + round_up(m, 16));
  const Cuts tiles(m, quant_kernels().mr);
  const std::int64_t pairs = pairs_of(k);
  for (std::int64_t t = 0; t < tiles.parts; ++t) {
    const std::int64_t first = tiles.begin(t);
    const std::int64_t rows = tiles.size(t);
    std::int16_t* tile = out + first * pairs * 2;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int32_t zero = zeros != nullptr ? zeros[(first + i) * zero_step] : 0;
      const std::uint8_t* row = a + (first + i) * k;
      std::uint32_t sum = 0;
      const auto value = [&](std::int64_t kk) {
        const std::int32_t v = (is_signed ? static_cast<std::int8_t>(row[kk]) : row[kk]) - zero;
        sum += static_cast<std::uint32_t>(v);
        return static_cast<std::int16_t>(v);
      };
      for (std::int64_t p = 0; p < pairs; ++p) {
        std::int16_t* dst = tile + (p * rows + i) * 2;
        dst[0] = value(2 * p);
        dst[1] = 2 * p + 1 < k ? value(2 * p + 1) : std::int16_t{0};
      }
      sums[first + i] = static_cast<std::int32_t>(sum);
    }
  }
}

// Cuts rows and columns into tasks as the float product does, and calls fn(m0, m1, n0, n1, product) for each.
template <class F>
void over_blocks(const QuantKernels& kernels, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t products, F&& fn) {
  GemmKernels shape{};
  shape.mr = kernels.mr;
  shape.nr = kernels.nr;
  const TaskGrid grid = choose_grid(shape, m, n, k, products, false);
  const Cuts tiles(m, kernels.mr);
  const std::int64_t panels = (n + kernels.nr - 1) / kernels.nr;
  const Cuts rows(tiles.parts, (tiles.parts + grid.rows - 1) / grid.rows);
  const Cuts columns(panels, (panels + grid.columns - 1) / grid.columns);
  const std::int64_t cells = rows.parts * columns.parts;
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(std::max<std::int64_t>(k, 1)) /
                      static_cast<double>(cells);
  const auto grain = static_cast<std::int64_t>(std::clamp(100000.0 / work, 1.0, 1e6));
  parallel_for(products * cells, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t r = i % cells / columns.parts;
      const std::int64_t c = i % cells % columns.parts;
      fn(tiles.begin(rows.begin(r)), tiles.begin(rows.begin(r + 1)), columns.begin(c) * kernels.nr,
         std::min(n, columns.begin(c + 1) * kernels.nr), i / cells);
    }
  });
}

struct QPatches {
  const QuantKernels* kernels;
  const ConvShape* shape;
  const std::uint8_t* x;
  bool is_signed;
  std::int32_t zero;
  bool pointwise;
};

bool is_pointwise(const ConvShape& s) {
  for (int i = 0; i < 3; ++i) {
    if (s.kernel[i] != 1 || s.stride[i] != 1 || s.pad[i] != 0 || s.in[i] != s.out[i]) return false;
  }
  return true;
}

// Depthwise convolutions are computed in float, whose sums are exact below 2^24: 255 * 255 * 256 < 2^24.
bool is_depthwise(const ConvShape& s) { return s.groups > 1 && s.in_channels == s.groups && volume(s.kernel) <= 256; }

struct DepthwiseBytes {
  const QuantKernels* kernels;
  const ConvShape* shape;
  const std::uint8_t* x;
  bool is_signed;
  std::int32_t zero;
  const QEpilogue* epilogue;
  void* y;
};

void widen(const void* context, std::int64_t at, std::int64_t n, float* out) {
  const auto& d = *static_cast<const DepthwiseBytes*>(context);
  d.kernels->dequantize(d.x + at, d.is_signed, out, n, 1.0F, d.zero);
}

void narrow(const void* context, const float* sums, std::int64_t n, std::int64_t channel, std::int64_t at) {
  const auto& d = *static_cast<const DepthwiseBytes*>(context);
  const std::int64_t step = bytes_per_output(*d.epilogue);
  d.kernels->narrow(sums, n, *d.epilogue, channel, static_cast<char*>(d.y) + at * step);
}

// Reads kernel element k of output positions [n0, n0 + nb), as bytes of x.
void patch_row(const QPatches& q, std::int64_t k, std::int64_t n0, std::int64_t nb, std::uint8_t* row) {
  const ConvShape& s = *q.shape;
  const std::int64_t kx = k % s.kernel[2];
  const std::int64_t ky = k / s.kernel[2] % s.kernel[1];
  const std::int64_t kz = k / (s.kernel[2] * s.kernel[1]) % s.kernel[0];
  const std::uint8_t* plane = q.x + k / volume(s.kernel) * volume(s.in);
  if (q.pointwise) {
    std::memcpy(row, plane + n0, to_size(nb));
    return;
  }
  const auto zero = static_cast<std::uint8_t>(q.zero & 0xFF);
  std::int64_t ox = n0 % s.out[2];
  std::int64_t line = n0 / s.out[2];
  for (std::int64_t done = 0; done < nb; ++line) {
    const std::int64_t len = std::min(nb - done, s.out[2] - ox);
    const std::int64_t iy = line % s.out[1] * s.stride[1] - s.pad[1] + ky * s.dilation[1];
    const std::int64_t iz = line / s.out[1] * s.stride[0] - s.pad[0] + kz * s.dilation[0];
    std::uint8_t* dst = row + done;
    if (iy < 0 || iy >= s.in[1] || iz < 0 || iz >= s.in[0]) {
      std::memset(dst, zero, to_size(len));
    } else {
      const std::uint8_t* src = plane + (iz * s.in[1] + iy) * s.in[2];
      const std::int64_t stride = s.stride[2];
      const std::int64_t first = ox * stride - s.pad[2] + kx * s.dilation[2];
      const std::int64_t b = first >= 0 ? 0 : std::min(len, (-first + stride - 1) / stride);
      const std::int64_t e = first >= s.in[2] ? b : std::max(b, std::min(len, (s.in[2] - first + stride - 1) / stride));
      std::memset(dst, zero, to_size(b));
      if (stride == 1) {
        std::memcpy(dst + b, src + first + b, to_size(e - b));
      } else if (stride == 2) {
        q.kernels->halve(src + first + 2 * b, e - b, dst + b);
      } else {
        for (std::int64_t i = b; i < e; ++i) dst[i] = src[first + i * stride];
      }
      std::memset(dst + e, zero, to_size(len - e));
    }
    done += len;
    ox = 0;
  }
}

// Packs patches [n0, n0 + nb) into panels of [pairs][nr][2]; u8 becomes s8 by subtracting 128, which flips the top bit.
void pack_patches(const QPatches& q, std::int64_t n0, std::int64_t nb, std::int8_t* out) {
  const ConvShape& s = *q.shape;
  const std::int64_t k = s.in_channels / s.groups * volume(s.kernel);
  const std::int64_t nr = q.kernels->nr;
  const std::int64_t pairs = pairs_of(k);
  const std::uint8_t flip = q.is_signed ? 0 : 0x80;
  std::uint8_t rows[2][16 * 32 + 32] = {};  // 16 panels of at most 32 columns
  for (std::int64_t p = 0; p < pairs; ++p) {
    patch_row(q, 2 * p, n0, nb, rows[0]);
    if (2 * p + 1 < k) {
      patch_row(q, 2 * p + 1, n0, nb, rows[1]);
    } else {
      std::memset(rows[1], flip, sizeof(rows[1]));  // 0 when flipped
    }
    q.kernels->interleave(rows[0], rows[1], flip, nb, out + p * nr * 2, pairs * nr * 2);
  }
}

// Weights [m, k] by patches [k, n].
struct QProduct {
  std::int64_t m, n, k;
  const void* weights;  // packed
  const QPatches* patches;
  QEpilogue epilogue;
  char* y;
};

// Computes y[m0:m1, n0:n1] on this thread. n0 is a multiple of nr; m0 and m1 are tile borders.
void qblock(const QProduct& p, std::int64_t m0, std::int64_t m1, std::int64_t n0, std::int64_t n1) {
  const QuantKernels& kernels = *p.patches->kernels;
  const std::int64_t nr = kernels.nr;
  const std::int64_t pairs = pairs_of(p.k);
  const std::int64_t panel = pairs * nr * 2;
  const std::int64_t columns_at_once = std::clamp<std::int64_t>(kScratchBytes / std::max<std::int64_t>(1, panel), 1, 16) * nr;
  const Cuts tiles(p.m, kernels.mr);
  QTile t;
  t.pairs = pairs;
  t.epilogue = &p.epilogue;
  t.ldc = p.n;
  t.b_zero = p.patches->zero - (p.patches->is_signed ? 0 : 128);
  for (std::int64_t nb = n0; nb < n1; nb += columns_at_once) {
    const std::int64_t ne = std::min(n1, nb + columns_at_once);
    auto* panels = reinterpret_cast<std::int8_t*>(thread_scratch(1, to_size(round_up(ne - nb, nr) * pairs * 2 + 256) / 4));
    pack_patches(*p.patches, nb, ne - nb, panels);
    // Multiplies one tile of weights after another by all panels: the tile stays in the first-level cache and the panels in the
    // second-level cache, while the weights may be larger than both.
    for (std::int64_t i = 0; i < tiles.parts; ++i) {
      t.row = tiles.begin(i);
      if (t.row < m0 || t.row >= m1) continue;
      t.m = tiles.size(i);
      t.a = tiles_of(p.weights, p.m) + t.row * pairs * 2;
      t.row_sums = static_cast<const std::int32_t*>(p.weights) + t.row;
      for (std::int64_t n = nb; n < ne; n += nr) {
        t.b = panels + (n - nb) / nr * panel;
        t.n = std::min(nr, n1 - n);
        t.c = p.y + (t.row * p.n + n) * bytes_per_output(p.epilogue);
        kernels.tile(t);
      }
    }
  }
}

template <class F>
void chunks(std::int64_t n, F&& fn) {
  parallel_for(n, 32768, [&](std::int64_t b, std::int64_t e) { fn(b, e - b); });
}

}  // namespace

void quantize_u8(const float* x, std::uint8_t* y, std::int64_t n, float scale, std::int32_t zero_point) {
  const QuantKernels& k = quant_kernels();
  chunks(n, [&](std::int64_t b, std::int64_t len) { k.quantize(x + b, y + b, false, len, scale, zero_point); });
}
void quantize_s8(const float* x, std::int8_t* y, std::int64_t n, float scale, std::int32_t zero_point) {
  const QuantKernels& k = quant_kernels();
  chunks(n, [&](std::int64_t b, std::int64_t len) { k.quantize(x + b, y + b, true, len, scale, zero_point); });
}
void dequantize_u8(const std::uint8_t* x, float* y, std::int64_t n, float scale, std::int32_t zero_point) {
  const QuantKernels& k = quant_kernels();
  chunks(n, [&](std::int64_t b, std::int64_t len) { k.dequantize(x + b, false, y + b, len, scale, zero_point); });
}
void dequantize_s8(const std::int8_t* x, float* y, std::int64_t n, float scale, std::int32_t zero_point) {
  const QuantKernels& k = quant_kernels();
  chunks(n, [&](std::int64_t b, std::int64_t len) { k.dequantize(x + b, true, y + b, len, scale, zero_point); });
}

void min_max_f32(const float* x, std::int64_t n, float* min, float* max) {
  constexpr std::int64_t kParts = 32;
  float low[kParts], high[kParts];
  const Cuts cuts(n, std::max<std::int64_t>(32768, up_div(n, kParts)));
  parallel_for(cuts.parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) quant_kernels().min_max(x + cuts.begin(i), cuts.size(i), low + i, high + i);
  });
  *min = *std::min_element(low, low + cuts.parts);
  *max = *std::max_element(high, high + cuts.parts);
  if (*min > *max) *min = *max = std::numeric_limits<float>::quiet_NaN();
}

std::size_t qconv_packed_bytes(const ConvShape& s) {
  if (is_depthwise(s)) return to_size(s.out_channels * volume(s.kernel)) * sizeof(float);
  const std::int64_t k = s.in_channels / s.groups * volume(s.kernel);
  return to_size(s.groups) * packed_bytes(s.out_channels / s.groups, k);
}

void qconv_pack(const ConvShape& s, const void* weights, bool is_signed, const std::int32_t* zero_points,
                std::int64_t zero_point_count, void* packed) {
  const std::int64_t m = s.out_channels / s.groups;
  const std::int64_t k = s.in_channels / s.groups * volume(s.kernel);
  if (is_depthwise(s)) {
    const auto* w = static_cast<const std::uint8_t*>(weights);
    for (std::int64_t i = 0; i < s.out_channels * k; ++i) {
      const std::int32_t zero = zero_points == nullptr ? 0 : zero_points[zero_point_count > 1 ? i / k : 0];
      static_cast<float*>(packed)[i] = static_cast<float>((is_signed ? static_cast<std::int8_t>(w[i]) : w[i]) - zero);
    }
    return;
  }
  for (std::int64_t g = 0; g < s.groups; ++g) {
    const bool each = zero_points != nullptr && zero_point_count > 1;
    pack_rows(static_cast<const std::uint8_t*>(weights) + g * m * k, is_signed, m, k, each ? zero_points + g * m : zero_points,
              each ? 1 : 0, static_cast<char*>(packed) + to_size(g) * packed_bytes(m, k));
  }
}

void qconv(const ConvShape& s, const void* x, bool x_signed, std::int32_t x_zero, const void* packed, const QEpilogue& epilogue,
           void* y) {
  const QuantKernels& kernels = quant_kernels();
  const std::int64_t m = s.out_channels / s.groups;
  const std::int64_t channels = s.in_channels / s.groups;
  const std::int64_t k = channels * volume(s.kernel);
  const std::int64_t n = volume(s.out);
  if (m <= 0 || n <= 0) return;
  if (is_depthwise(s)) {
    const DepthwiseBytes bytes{&kernels, &s, static_cast<const std::uint8_t*>(x), x_signed, x_zero, &epilogue, y};
    return conv_depthwise_bytes(s, {&bytes, widen, narrow}, static_cast<const float*>(packed));
  }
  const bool pointwise = is_pointwise(s);
  over_blocks(kernels, m, n, k, s.batch * s.groups,
              [&](std::int64_t m0, std::int64_t m1, std::int64_t n0, std::int64_t n1, std::int64_t product) {
                const std::int64_t g = product % s.groups;
                const QPatches patches{&kernels, &s,     static_cast<const std::uint8_t*>(x) + product * channels * volume(s.in),
                                       x_signed, x_zero, pointwise};
                QProduct p{m,
                           n,
                           k,
                           static_cast<const char*>(packed) + to_size(g) * packed_bytes(m, k),
                           &patches,
                           epilogue,
                           static_cast<char*>(y) + product * m * n * bytes_per_output(epilogue)};
                if (epilogue.bias != nullptr) p.epilogue.bias += g * m;
                if (epilogue.bias_f32 != nullptr) p.epilogue.bias_f32 += g * m;
                if (epilogue.scale_is_array) p.epilogue.scale += g * m;
                qblock(p, m0, m1, n0, n1);
              });
}

}  // namespace sdx::cpu
