#include "kernels/cpu/conv/plain/conv.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/plain/conv_depthwise.h"
#include "kernels/cpu/conv/plain/conv_narrow.h"
#include "kernels/cpu/conv/plain/conv_shifted.h"
#include "kernels/cpu/conv/plain/conv_simd.h"
#include "kernels/cpu/conv/winograd/winograd.h"
#include "kernels/cpu/elementwise/elementwise_simd.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/gemm/gemm_simd.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

bool pointwise(const ConvShape& s) {
  for (int i = 0; i < 3; ++i) {
    if (s.kernel[i] != 1 || s.stride[i] != 1 || s.pad[i] != 0 || s.in[i] != s.out[i]) return false;
  }
  return true;
}

struct Patches {
  const ConvKernels* kernels;
  const ConvShape* shape;
  const float* x;
};

void pack_patches(const void* context, std::int64_t k0, std::int64_t kc, std::int64_t n0, std::int64_t nb, float* out) {
  const Patches& p = *static_cast<const Patches*>(context);
  p.kernels->patches(*p.shape, p.x, k0, kc, n0, nb, out);
}

// Several images whose pixels are columns side by side.
struct Images {
  const ConvShape* shape;
  const float* x;
  std::int64_t nr;
};

constexpr std::int64_t kMostColumns = 64;  // of a panel

// A panel's columns: the image of each, and where its first tap reads along each axis.
struct PanelColumns {
  std::int64_t count;
  const float* image[kMostColumns];
  std::int64_t start[3][kMostColumns];
};

PanelColumns columns_of(const Images& images, std::int64_t first, std::int64_t count) {
  const ConvShape& s = *images.shape;
  const std::int64_t pixels = volume(s.out);
  PanelColumns p;
  p.count = count;
  for (std::int64_t i = 0; i < count; ++i) {
    p.image[i] = images.x + (first + i) / pixels * s.in_channels * volume(s.in);
    std::int64_t pixel = (first + i) % pixels;
    for (int axis = 2; axis >= 0; --axis) {
      p.start[axis][i] = pixel % s.out[axis] * s.stride[axis] - s.pad[axis];
      pixel /= s.out[axis];
    }
  }
  return p;
}

// The input that tap `tap` of each column reads in the first channel, and the step to the next channel.
void find_taps(const ConvShape& s, const PanelColumns& p, std::int64_t tap, const float** from, std::int64_t* step) {
  static constexpr float kZero = 0;
  const std::int64_t x = tap % s.kernel[2] * s.dilation[2], y = tap / s.kernel[2] % s.kernel[1] * s.dilation[1],
                     z = tap / (s.kernel[2] * s.kernel[1]) * s.dilation[0], plane = volume(s.in);
  const auto within = [](std::int64_t i, std::int64_t n) { return i >= 0 && i < n; };
  for (std::int64_t i = 0; i < p.count; ++i) {
    const std::int64_t iz = p.start[0][i] + z, iy = p.start[1][i] + y, ix = p.start[2][i] + x;
    const bool inside = within(iz, s.in[0]) && within(iy, s.in[1]) && within(ix, s.in[2]);
    from[i] = inside ? p.image[i] + (iz * s.in[1] + iy) * s.in[2] + ix : &kZero;
    step[i] = inside ? plane : 0;
  }
}

void pack_images(const void* context, std::int64_t k0, std::int64_t kc, std::int64_t n0, std::int64_t nb, float* out) {
  const Images& images = *static_cast<const Images*>(context);
  const ConvShape& s = *images.shape;
  const std::int64_t taps = volume(s.kernel), nr = images.nr;
  const float* from[kMostColumns];
  std::int64_t step[kMostColumns];
  for (std::int64_t j = 0; j < nb; j += nr) {
    const PanelColumns columns = columns_of(images, n0 + j, std::min(nr, nb - j));
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const std::int64_t first = k0 + (tap - k0 % taps + taps) % taps;
      if (first >= k0 + kc) continue;
      find_taps(s, columns, tap, from, step);
      for (std::int64_t k = first; k < k0 + kc; k += taps) {
        float* row = out + j * kc + (k - k0) * nr;
        for (std::int64_t i = 0; i < columns.count; ++i) row[i] = from[i][k / taps * step[i]];
        std::fill(row + columns.count, row + nr, 0.0F);
      }
    }
  }
}

// Images of a few pixels would leave most of a panel's columns empty, so the pixels of several images are multiplied together,
// and each image gets its columns back. Image by image, Silero's encoder over 2,000 windows of 1 to 4 pixels ran at 3 to 18
// GFLOP/s.
void conv_images(const ConvShape& s, const float* x, const float* packed, const float* bias, const UnarySpec& act, float* y) {
  const GemmKernels& kernels = gemm_kernels();
  const std::int64_t m = s.out_channels, n = volume(s.out), k = s.in_channels * volume(s.kernel);
  constexpr std::int64_t kColumns = 128;
  const std::int64_t threads = std::max(current_pool().threads(), 1);
  const std::int64_t most = std::max<std::int64_t>(kColumns / n, 1), least = std::min(most, (2 * kernels.nr + n - 1) / n);
  const std::int64_t per = std::clamp((s.batch + threads - 1) / threads, least, most);
  const double work = static_cast<double>(m) * static_cast<double>(per * n) * static_cast<double>(k);
  const auto grain = static_cast<std::int64_t>(std::clamp(100000.0 / std::max(work, 1.0), 1.0, 1e6));
  parallel_for((s.batch + per - 1) / per, grain, [&](std::int64_t begin, std::int64_t end) {
    float* products = thread_scratch(3, static_cast<std::size_t>(m * per * n));
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
      const std::int64_t first = chunk * per, images = std::min(per, s.batch - first);
      GemmArgs g;
      g.m = m;
      g.n = images * n;
      g.k = k;
      g.packed_a = packed;
      g.c = products;
      g.ldc = g.n;
      g.epilogue.bias = bias;
      g.epilogue.bias_per_row = true;
      g.epilogue.act = act;
      const Images columns{&s, x + first * s.in_channels * volume(s.in), kernels.nr};
      const BPacker packer{&columns, pack_images};
      gemm_block(kernels, g, &packer, 0, m, 0, g.n);
      for (std::int64_t i = 0; i < images; ++i) {
        float* image = y + (first + i) * m * n;
        for (std::int64_t c = 0; c < m; ++c) std::copy_n(products + c * g.n + i * n, n, image + c * n);
      }
    }
  });
}

void conv_gemm(const ConvShape& s, const float* x, const float* packed, const float* bias, const float* residual,
               const UnarySpec& act, float* y) {
  const GemmKernels& kernels = gemm_kernels();
  const ConvKernels& conv = conv_kernels();
  const std::int64_t m = s.out_channels / s.groups;
  const std::int64_t channels = s.in_channels / s.groups;
  const std::int64_t k = channels * volume(s.kernel);
  const std::int64_t n = volume(s.out);
  const std::int64_t products = s.batch * s.groups;
  if (m <= 0 || n <= 0 || products <= 0) return;
  // Without input channels there is nothing to multiply: results are the bias.
  if (k > 0 && conv_is_narrow(s)) return conv_narrow(s, x, packed, bias, residual, act, y);
  if (k > 0 && n < kernels.nr && s.batch > 1 && s.groups == 1 && residual == nullptr)
    return conv_images(s, x, packed, bias, act, y);
  const bool direct = pointwise(s), shifted = k > 0 && conv_is_shifted(s);
  const TaskGrid grid = choose_grid(kernels, m, n, k, products, false);
  const Cuts tiles(m, kernels.mr);
  const std::int64_t panels = (n + kernels.nr - 1) / kernels.nr;
  const Cuts row_cuts(tiles.parts, (tiles.parts + grid.rows - 1) / grid.rows);
  const Cuts column_cuts(panels, (panels + grid.columns - 1) / grid.columns);
  const std::int64_t cells = row_cuts.parts * column_cuts.parts;
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / static_cast<double>(cells);
  const auto grain = static_cast<std::int64_t>(std::clamp(100000.0 / std::max(work, 1.0), 1.0, 1e6));
  parallel_for(products * cells, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t product = i / cells;
      const std::int64_t group = product % s.groups;
      const std::int64_t cell = i % cells;
      const std::int64_t r = cell / column_cuts.parts;
      const std::int64_t c = cell % column_cuts.parts;
      const float* image = x + product * channels * volume(s.in);
      GemmArgs g;
      g.m = m;
      g.n = n;
      g.k = k;
      g.packed_a = packed + group * m * k;
      g.b = image;
      g.ldb = n;
      g.c = y + product * m * n;
      g.ldc = n;
      g.epilogue.bias = bias != nullptr ? bias + group * m : nullptr;
      g.epilogue.bias_per_row = true;
      g.epilogue.residual = residual != nullptr ? residual + product * m * n : nullptr;
      g.epilogue.ld_residual = n;
      g.epilogue.act = act;
      const std::int64_t m0 = tiles.begin(row_cuts.begin(r)), m1 = tiles.begin(row_cuts.begin(r + 1));
      const std::int64_t n0 = column_cuts.begin(c) * kernels.nr, n1 = std::min(n, column_cuts.begin(c + 1) * kernels.nr);
      if (shifted) {
        shifted_block(kernels, s, image, g, m0, m1, n0, n1);
        continue;
      }
      const Patches patches{&conv, &s, image};
      const BPacker packer{&patches, pack_patches};
      gemm_block(kernels, g, direct ? nullptr : &packer, m0, m1, n0, n1);
    }
  });
}

// Each image's only pixel is a row of the left operand. A model run with larger images than it was compiled for
// also uses this: pixels are then rows of a transposed operand, and the products are stored by columns.
void conv_pixel(const ConvShape& s, const float* x, const float* packed, const float* bias, const float* residual,
                const UnarySpec& act, float* y) {
  const std::int64_t n = volume(s.out), k = s.in_channels, m = s.out_channels;
  GemmArgs g;
  g.n = m;
  g.k = k;
  g.packed_b = packed;
  g.epilogue.bias = bias;
  g.ldc = m;
  if (n == 1) {
    g.m = s.batch;
    g.a = x;
    g.lda = k;
    g.c = y;
    g.epilogue.residual = residual;
    g.epilogue.ld_residual = m;
    g.epilogue.act = act;
    return gemm_f32(g);
  }
  constexpr std::int64_t kPixels = 64;
  float* products = thread_scratch(3, static_cast<std::size_t>(kPixels * m));
  const ElementwiseKernels& elementwise = elementwise_kernels();
  for (std::int64_t image = 0; image < s.batch; ++image) {
    for (std::int64_t p = 0; p < n; p += kPixels) {
      g.m = std::min(kPixels, n - p);
      g.a = x + image * k * n + p;
      g.lda = n;
      g.trans_a = true;
      g.c = products;
      gemm_f32(g);
      for (std::int64_t c = 0; c < m; ++c) {
        float column[kPixels];
        for (std::int64_t i = 0; i < g.m; ++i) column[i] = products[i * m + c];
        const std::int64_t at = (image * m + c) * n + p;
        elementwise.bias_act(column, 0.0F, residual != nullptr ? residual + at : nullptr, act, y + at, g.m);
      }
    }
  }
}

// An image of one column is treated as a row, which has the same layout in memory: patches of rows are copied in runs, those of
// columns element by element. That was a quarter of the time of a text model whose exporter put its only axis first.
ConvShape columns_as_rows(ConvShape s) {
  const bool one_column = s.in[2] == 1 && s.out[2] == 1 && s.kernel[2] == 1 && s.pad[2] == 0;
  if (!one_column) return s;
  for (std::int64_t(*axes)[3] : {&s.in, &s.out, &s.kernel, &s.stride, &s.dilation, &s.pad}) std::swap((*axes)[1], (*axes)[2]);
  return s;
}

}  // namespace

bool conv_supports(ConvAlgorithm algorithm, const ConvShape& s) {
  switch (algorithm) {
    case ConvAlgorithm::gemm: return true;
    case ConvAlgorithm::depthwise: return s.in_channels == s.groups;
    case ConvAlgorithm::pixel: return s.groups == 1 && pointwise(s);
    case ConvAlgorithm::winograd2:
    case ConvAlgorithm::winograd4: return winograd_supports(s);
  }
  return false;
}

ConvAlgorithm conv_choose(const ConvShape& s, bool exact) {
  if (s.in_channels == 0) return ConvAlgorithm::gemm;
  // One input channel and few filters are a depthwise convolution too: gathering patches would cost as much as their products.
  const bool few = s.in_channels == 1 && s.out_channels <= 16 && volume(s.kernel) > 1;
  if ((s.groups > 1 || few) && conv_supports(ConvAlgorithm::depthwise, s)) return ConvAlgorithm::depthwise;
  if (volume(s.in) == 1 && conv_supports(ConvAlgorithm::pixel, s)) return ConvAlgorithm::pixel;
  // Below 16 channels the transforms, whose number does not depend on the other side's channels, outweigh the products saved.
  if (exact || !winograd_supports(s) || s.in_channels < 16 || s.out_channels < 16) return ConvAlgorithm::gemm;
  // Multiplications per pair of channels, counting whole panels; the transforms cost about as much as 16 (or 64) more channels.
  const auto nr = static_cast<double>(gemm_kernels().nr);
  const auto panels = [&](std::int64_t n) { return std::ceil(static_cast<double>(n) / nr) * nr; };
  const auto tiles = [&](std::int64_t t) { return ((s.out[1] + t - 1) / t) * ((s.out[2] + t - 1) / t); };
  const auto overhead = [&](double channels) {
    return 1.0 + channels / static_cast<double>(std::min(s.in_channels, s.out_channels));
  };
  const double plain = 9.0 * panels(volume(s.out));
  const double two = 16.0 * panels(tiles(2)) * overhead(16);
  const double four = 36.0 * panels(tiles(4)) * overhead(24);
  if (std::min(two, four) > 0.9 * plain) return ConvAlgorithm::gemm;
  return two < four ? ConvAlgorithm::winograd2 : ConvAlgorithm::winograd4;
}

std::size_t conv_packed_bytes(ConvAlgorithm algorithm, const ConvShape& s) {
  if (algorithm == ConvAlgorithm::winograd2) return winograd_packed_bytes(2, s);
  if (algorithm == ConvAlgorithm::winograd4) return winograd_packed_bytes(4, s);
  if (algorithm == ConvAlgorithm::pixel) return packed_b_bytes(s.in_channels, s.out_channels);
  return static_cast<std::size_t>(s.out_channels * (s.in_channels / s.groups) * volume(s.kernel)) * sizeof(float);
}

void conv_pack_f32(ConvAlgorithm algorithm, const ConvShape& s, const void* weights, float* packed) {
  if (algorithm == ConvAlgorithm::depthwise) {
    std::memcpy(packed, weights, conv_packed_bytes(algorithm, s));
    return;
  }
  if (algorithm == ConvAlgorithm::winograd2) return winograd_pack(2, s, weights, packed);
  if (algorithm == ConvAlgorithm::winograd4) return winograd_pack(4, s, weights, packed);
  if (algorithm == ConvAlgorithm::pixel) {
    return pack_b_f32(weights, s.in_channels, true, s.in_channels, s.out_channels, 1.0F, packed);
  }
  const std::int64_t m = s.out_channels / s.groups;
  const std::int64_t k = s.in_channels / s.groups * volume(s.kernel);
  for (std::int64_t g = 0; g < s.groups; ++g) {
    pack_a_f32(static_cast<const char*>(weights) + g * m * k * 4, k, false, m, k, 1.0F, packed + g * m * k);
  }
}

void conv_f32(ConvAlgorithm algorithm, const ConvShape& shape, const float* x, const float* packed, const float* bias,
              const float* residual, const UnarySpec& act, float* y) {
  switch (algorithm) {
    case ConvAlgorithm::depthwise: return conv_depthwise(shape, x, packed, bias, residual, act, y);
    case ConvAlgorithm::pixel: return conv_pixel(shape, x, packed, bias, residual, act, y);
    case ConvAlgorithm::winograd2: return conv_winograd(2, shape, x, packed, bias, residual, act, y);
    case ConvAlgorithm::winograd4: return conv_winograd(4, shape, x, packed, bias, residual, act, y);
    case ConvAlgorithm::gemm: return conv_gemm(columns_as_rows(shape), x, packed, bias, residual, act, y);
  }
}

}  // namespace sdx::cpu
