#include "kernels/cpu/nbits/nbits.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "base/system/amx.h"
#include "base/thread_pool.h"
#include "kernels/cpu/gemm/gemm_args.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/gemm/gemm_simd.h"
#include "kernels/cpu/nbits/nbits_amx.h"
#include "kernels/cpu/nbits/nbits_digits.h"
#include "kernels/cpu/nbits/nbits_digits_simd.h"
#include "kernels/cpu/nbits/nbits_simd.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/cpu/simd/transpose_words.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kHeaderUnits = 16;  // one cache line; unit 0 tells which zero points are stored (NBitsZeros)
constexpr std::int64_t kDirectRows = 8;
// More rows than this are multiplied faster in float32 than in two or three digits.
constexpr std::int64_t kDigitRows = 16;
// Parts of a row that are cut into digits at once; 2048 activations take about 2 microseconds.
constexpr std::int64_t kPieceParts = 64;

NBitsLayout layout_of(std::int64_t k, int bits, std::int64_t block, NBitsZeros zeros, int nr) {
  NBitsLayout l{};
  l.block = block;
  l.blocks = (k + block - 1) / block;
  l.words = block * bits / 32;
  l.bits = bits;
  l.zeros = zeros;
  l.nr = nr;
  return l;
}

float read_f32(const void* p, std::int64_t i) {
  float v;
  std::memcpy(&v, static_cast<const char*>(p) + 4 * i, sizeof(v));
  return v;
}

float zero_of(const NBitsSource& s, const NBitsLayout& l, std::int64_t column, std::int64_t b) {
  if (s.zero_points_f32 != nullptr) return read_f32(s.zero_points_f32, column * l.blocks + b);
  const auto* z = static_cast<const std::uint8_t*>(s.zero_points);
  if (s.bits == 8) return z[column * l.blocks + b];
  const std::uint8_t pair = z[column * ((l.blocks + 1) / 2) + b / 2];
  return static_cast<float>(b % 2 == 0 ? pair & 15 : pair >> 4);
}

// Floats that are all integers are stored as integers. If all of them are the middle value, none are stored.
NBitsZeros zeros_of(const NBitsSource& s, const NBitsLayout& l) {
  if (s.zero_points == nullptr && s.zero_points_f32 == nullptr) return NBitsZeros::none;
  const float middle = static_cast<float>(1 << (s.bits - 1)), most = 2 * middle - 1;
  bool all_middle = true, all_integers = true;
  for (std::int64_t j = 0; j < s.n; ++j) {
    for (std::int64_t b = 0; b < l.blocks; ++b) {
      const float z = zero_of(s, l, j, b);
      all_middle = all_middle && z == middle;
      all_integers = all_integers && z >= 0.0F && z <= most && z == std::floor(z);
    }
    if (!all_integers) return NBitsZeros::floats;
  }
  return all_middle ? NBitsZeros::none : NBitsZeros::integers;
}

NBitsLayout layout_of(const NBitsSource& s) {
  NBitsLayout l = layout_of(s.k, s.bits, s.block, NBitsZeros::none, nbits_kernels().nr);
  l.zeros = zeros_of(s, l);
  return l;
}

struct Weights {
  const NBitsKernels* kernels;
  NBitsLayout layout;
  const std::uint32_t* panels;
};

void expand_panels(const void* context, std::int64_t k0, std::int64_t kc, std::int64_t n0, std::int64_t nb, float* out) {
  const auto& w = *static_cast<const Weights*>(context);
  const std::int64_t nr = w.layout.nr;
  for (std::int64_t j = 0; j < nb; j += nr) {
    w.kernels->expand(w.layout, w.panels + (n0 + j) / nr * w.layout.panel_units(), k0, kc, out + j * kc);
  }
}

// Divides x by the powers of two by which codes are scaled in their words, as the inner kernel expects; exact above 2^-102.
void place_codes(int bits, float* x, std::int64_t n) {
  const std::int64_t codes = 32 / bits;
  for (std::int64_t t = 1; t + 1 < codes; ++t) {
    const float factor = 1.0F / static_cast<float>(1U << (bits * t));
    for (std::int64_t i = t; i < n; i += codes) x[i] *= factor;
  }
}

// Multiplies activations by weights as floats.
void unpacked_rows(const NBitsArgs& a, const Weights& w) { gemm_unpacking(gemm_args_of(a), {&w, expand_panels}); }

// Row i is alone in this product.
NBitsArgs row_of(const NBitsArgs& a, std::int64_t i) {
  NBitsArgs row = a;
  row.m = 1;
  row.a = a.a + i * a.lda;
  row.c = a.c + i * a.ldc;
  return row;
}

void few_rows(const NBitsArgs& a, const Weights& w) {
  const GemmKernels& gemm = gemm_kernels();
  const GemmArgs g = gemm_args_of(a);
  const NBitsLayout& l = w.layout;
  const std::int64_t padded = l.blocks * l.block;
  // Rows padded to whole blocks, and the sums of their blocks; shared by all threads of this call.
  float* x = thread_scratch(3, static_cast<std::size_t>(a.m * (padded + l.blocks)));
  float* sums = x + a.m * padded;
  bool wild[kDirectRows] = {};  // see kNBitsMost
  for (std::int64_t i = 0; i < a.m; ++i) {
    std::memcpy(x + i * padded, a.a + i * a.lda, static_cast<std::size_t>(a.k) * sizeof(float));
    std::fill(x + i * padded + a.k, x + (i + 1) * padded, 0.0F);
    for (std::int64_t b = 0; b < l.blocks; ++b) {
      const float sum = w.kernels->sum(x + i * padded + b * l.block, l.block);
      sums[i * l.blocks + b] = sum;
      wild[i] = wild[i] || std::isnan(sum);
    }
    place_codes(l.bits, x + i * padded, padded);
  }
  const std::int64_t panels = (a.n + l.nr - 1) / l.nr;
  const std::int64_t grain = std::max<std::int64_t>(1, 100000 / std::max<std::int64_t>(1, padded * l.nr * a.m));
  parallel_for(panels, grain, [&](std::int64_t begin, std::int64_t end) {
    float out[4 * 64];
    for (std::int64_t p = begin; p < end; ++p) {
      for (std::int64_t i = 0; i < a.m; i += 4) {
        const std::int64_t rows = std::min<std::int64_t>(4, a.m - i);
        w.kernels->gemv(l, w.panels + p * l.panel_units(), x + i * padded, padded, sums + i * l.blocks, rows, out);
        gemm_finish(gemm, g, {i, rows, p * l.nr, std::min<std::int64_t>(l.nr, a.n - p * l.nr)}, out, l.nr);
      }
    }
  });
  for (std::int64_t i = 0; i < a.m; ++i) {
    if (wild[i]) unpacked_rows(row_of(a, i), w);
  }
}

// Panels times rows of digits with tiles; there are rows for at least one tile. Weights are unpacked once for all rows.
void by_tiles(const NBitsArgs& a, const Weights& w, const NBitsRowFormat& f, const std::byte* rows) {
  const NBitsTileKernels& kernels = *nbits_tile_kernels();
  const GemmKernels& gemm = gemm_kernels();
  const GemmArgs g = gemm_args_of(a);
  const NBitsLayout& l = w.layout;
  const std::int64_t panels = up_div(a.n, l.nr);
  parallel_for(panels, 1, [&](std::int64_t begin, std::int64_t end) {
    auto* tiles = reinterpret_cast<std::int8_t*>(thread_scratch(2, static_cast<std::size_t>(nbits_tile_bytes(l) / 4)));
    const TileScope scope(nbits_tile_config(f));
    alignas(64) float out[kNBitsTileRows * 32];
    for (std::int64_t p = begin; p < end; ++p) {
      const std::uint32_t* panel = w.panels + p * l.panel_units();
      kernels.expand(l, f, panel, tiles);
      for (std::int64_t i = 0; i < a.m; i += kNBitsTileRows) {
        // The last tile begins earlier: some of its rows are known already.
        const std::int64_t first = std::min(i, a.m - kNBitsTileRows), known = i - first;
        kernels.panel(l, f, panel, tiles, rows + first * f.row_bytes, out);
        gemm_finish(gemm, g, {i, kNBitsTileRows - known, p * l.nr, std::min<std::int64_t>(l.nr, a.n - p * l.nr)},
                    out + known * l.nr, l.nr);
      }
    }
  });
}

// Panels of packed weights times rows of digits. False, with nothing written, if the activations cannot be cut into digits.
bool in_digits(const NBitsArgs& a, const Weights& w) {
  const NBitsDigitKernels* kernels = nbits_digit_kernels();
  if (kernels == nullptr) return false;
  const NBitsLayout& l = w.layout;
  const NBitsDigits digits = a.accuracy == NBitsAccuracy::float32   ? NBitsDigits::exact
                             : a.accuracy == NBitsAccuracy::float16 ? NBitsDigits::half
                                                                    : NBitsDigits::coarse;
  const NBitsRowFormat f = nbits_row_format(l, digits, kernels->byte_digits);
  if (a.m > kDigitRows && f.digits > 1) return false;
  auto* rows = reinterpret_cast<std::byte*>(thread_scratch(3, static_cast<std::size_t>(a.m * f.row_bytes / 4)));
  std::atomic<bool> ok{true};
  const std::int64_t parts = l.blocks * f.parts, pieces = (parts + kPieceParts - 1) / kPieceParts;
  parallel_for(a.m * pieces, 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t i = t / pieces, first = t % pieces * kPieceParts;
      const std::int64_t count = std::min(kPieceParts, parts - first);
      if (!kernels->digitise(l, f, a.a + i * a.lda, a.k, first, count, rows + i * f.row_bytes)) ok = false;
    }
  });
  if (!ok) return false;
  if (a.m >= kNBitsTileRows && nbits_fits_tiles(l, f) && nbits_tile_kernels() != nullptr && use_amx()) {
    by_tiles(a, w, f, rows);
    return true;
  }
  const GemmKernels& gemm = gemm_kernels();
  const GemmArgs g = gemm_args_of(a);
  const std::int64_t panels = (a.n + l.nr - 1) / l.nr;
  const std::int64_t grain = std::max<std::int64_t>(1, 400000 / std::max<std::int64_t>(1, parts * f.part * l.nr * a.m));
  parallel_for(panels, grain, [&](std::int64_t begin, std::int64_t end) {
    float out[4 * 64];
    for (std::int64_t p = begin; p < end; ++p) {
      for (std::int64_t i = 0; i < a.m; i += 4) {
        const std::int64_t m = std::min<std::int64_t>(4, a.m - i);
        kernels->panel(l, f, w.panels + p * l.panel_units(), rows + i * f.row_bytes, m, out);
        gemm_finish(gemm, g, {i, m, p * l.nr, std::min<std::int64_t>(l.nr, a.n - p * l.nr)}, out, l.nr);
      }
    }
  });
  return true;
}

// Scales and zero points of a block of a panel.
void pack_scales(const NBitsSource& s, const NBitsLayout& l, std::int64_t panel, std::int64_t b, std::uint32_t* out) {
  for (std::int64_t j = 0; j < l.nr; ++j) {
    const std::int64_t column = panel * l.nr + j;
    const bool real = column < s.n;
    const float scale = real ? read_f32(s.scales, column * l.blocks + b) : 0.0F;
    std::memcpy(out + j, &scale, 4);
    if (l.zeros == NBitsZeros::none) continue;
    const float zero = real ? zero_of(s, l, column, b) : 0.0F;
    if (l.zeros == NBitsZeros::floats) std::memcpy(out + l.nr + j, &zero, 4);
    if (l.zeros == NBitsZeros::integers) reinterpret_cast<std::uint8_t*>(out + l.nr)[j] = static_cast<std::uint8_t>(zero);
  }
}

// Codes of a block of a panel. The low code of a byte is the earlier one, as in the source, so little-endian words are copied as
// they are.
void pack_codes(const NBitsSource& s, const NBitsLayout& l, std::int64_t panel, std::int64_t b, std::uint32_t* out) {
  const std::int64_t first = panel * l.nr, column_bytes = l.blocks * l.words * 4;
  const char* source = static_cast<const char*>(s.b) + first * column_bytes + b * l.words * 4;
  if (first + l.nr <= s.n && l.nr % 4 == 0 && l.words % 4 == 0) {
    for (std::int64_t j = 0; j < l.nr; j += 4) {
      for (std::int64_t w = 0; w < l.words; w += 4)
        transpose_four(source + j * column_bytes + w * 4, column_bytes, out + w * l.nr + j, l.nr);
    }
    return;
  }
  for (std::int64_t j = 0; j < l.nr; ++j) {
    for (std::int64_t w = 0; w < l.words; ++w) {
      std::uint32_t word = 0;
      if (first + j < s.n) std::memcpy(&word, source + j * column_bytes + w * 4, 4);
      out[w * l.nr + j] = word;
    }
  }
}

}  // namespace

std::size_t nbits_packed_bytes(const NBitsSource& s) {
  const NBitsLayout l = layout_of(s);
  return static_cast<std::size_t>(kHeaderUnits + (s.n + l.nr - 1) / l.nr * l.panel_units()) * 4;
}

void nbits_pack(const NBitsSource& s, void* packed) {
  const NBitsLayout l = layout_of(s);
  const std::int64_t nr = l.nr;
  auto* units = static_cast<std::uint32_t*>(packed);
  std::memset(units, 0, kHeaderUnits * 4);
  units[0] = static_cast<std::uint32_t>(l.zeros);
  const std::int64_t panels = (s.n + nr - 1) / nr;
  const auto pack = nbits_kernels().pack;
  const bool whole = pack != nullptr && l.words % 4 == 0 && l.zeros == NBitsZeros::none;
  parallel_for(panels, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      std::uint32_t* panel = units + kHeaderUnits + p * l.panel_units();
      if (whole && (p + 1) * nr <= s.n) {
        pack(l, static_cast<const char*>(s.b) + p * nr * l.blocks * l.words * 4,
             static_cast<const char*>(s.scales) + p * nr * l.blocks * 4, panel);
        continue;
      }
      for (std::int64_t b = 0; b < l.blocks; ++b) {
        std::uint32_t* out = panel + b * l.block_units();
        pack_scales(s, l, p, b, out);
        pack_codes(s, l, p, b, out + nr + l.zero_units());
      }
    }
  });
}

void nbits_gemm(const NBitsArgs& a) {
  if (a.m <= 0 || a.n <= 0) return;
  const auto* units = static_cast<const std::uint32_t*>(a.packed);
  Weights w{};
  w.kernels = &nbits_kernels();
  w.layout = layout_of(a.k, a.bits, a.block, static_cast<NBitsZeros>(units[0]), w.kernels->nr);
  w.panels = units + kHeaderUnits;
  if (in_digits(a, w)) return;
  if (a.m <= kDirectRows) {
    few_rows(a, w);
  } else {
    unpacked_rows(a, w);
  }
}

}  // namespace sdx::cpu
