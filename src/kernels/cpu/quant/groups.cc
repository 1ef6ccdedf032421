#include "kernels/cpu/quant/groups.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm/gemm.h"
#include "tensor/types.h"

namespace sdx::cpu {
namespace {

using Format = GroupFormat;

std::int64_t grain_for(std::int64_t bytes_per_group) { return std::max<std::int64_t>(1, 65536 / bytes_per_group); }

using Table = std::array<float, 256>;

const Table& e4m3_values() {
  static const Table table = [] {
    Table t;
    for (std::size_t i = 0; i < t.size(); ++i) t[i] = small_to_float(static_cast<std::uint8_t>(i), kE4M3FN);
    return t;
  }();
  return table;
}

constexpr float kE2M1[16] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6, -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};

// Ties are rounded towards zero, and there is no negative zero.
std::uint8_t to_e2m1(float v) {
  constexpr float kBounds[7] = {0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5};
  const float size = std::fabs(v);
  std::uint8_t code = 0;
  for (const float bound : kBounds) code = static_cast<std::uint8_t>(code + (size > bound ? 1 : 0));
  return static_cast<std::uint8_t>(code | (v < 0 && code != 0 ? 8 : 0));
}

float scale_value(GroupMode mode, std::uint8_t code) {
  return mode == GroupMode::nvfp4 ? e4m3_values()[code] : std::ldexp(1.0F, static_cast<int>(code) - 127);
}

// --- packing ---------------------------------------------------------------------------------------------------------------

// Codes follow each other from the lowest bit on.
void pack(const Format& f, const std::uint8_t* codes, std::uint8_t* to) {
  std::uint64_t held = 0;
  int count = 0;
  for (std::int64_t i = 0; i < f.group; ++i) {
    held |= std::uint64_t{codes[i]} << count;
    for (count += f.bits; count >= 8; count -= 8, held >>= 8) *to++ = static_cast<std::uint8_t>(held);
  }
}

// Eight codes take as many bytes as one has bits.
template <int kBits>
void unpack(std::int64_t count, const std::uint8_t* from, std::uint8_t* codes) {
  for (std::int64_t i = 0; i < count; i += 8, from += kBits) {
    std::uint64_t held = 0;
    std::memcpy(&held, from, kBits);
    for (int k = 0; k < 8; ++k) codes[i + k] = static_cast<std::uint8_t>(held >> (k * kBits) & ((1U << kBits) - 1));
  }
}

void unpack(const Format& f, const std::uint8_t* from, std::uint8_t* codes) {
  switch (f.bits) {
    case 1: return unpack<1>(f.group, from, codes);
    case 2: return unpack<2>(f.group, from, codes);
    case 3: return unpack<3>(f.group, from, codes);
    case 4: return unpack<4>(f.group, from, codes);
    case 5: return unpack<5>(f.group, from, codes);
    case 6: return unpack<6>(f.group, from, codes);
    default: std::copy_n(from, f.group, codes);
  }
}

// --- groups ----------------------------------------------------------------------------------------------------------------

// Rounds to the nearest, ties to even, for numbers below 2^22: without a call of the C library, so that loops vectorise.
float nearest(float v) {
  constexpr float kShift = 12582912;  // 1.5 * 2^23
  return (v + kShift) - kShift;
}

// MLX's choice: the end of the range that is farther from zero is met exactly.
void encode_affine(const Format& f, const float* w, std::uint8_t* codes, float& scale, float& bias) {
  const auto [low, high] = std::minmax_element(w, w + f.group);
  const auto most = static_cast<float>((1 << f.bits) - 1);
  // With one bit, both ends are met.
  const bool below = f.bits == 1 || std::fabs(*low) > std::fabs(*high);
  scale = std::max((*high - *low) / most, 1e-7F);
  if (!below) scale = -scale;
  const float edge = below ? *low : *high, steps = std::rint(edge / scale);
  bias = f.bits == 1 ? *low : 0;
  if (f.bits != 1 && steps != 0) {
    scale = edge / steps;
    bias = edge;
  }
  for (std::int64_t i = 0; i < f.group; ++i) {
    const float code = (w[i] - bias) / scale;
    codes[i] = static_cast<std::uint8_t>(nearest(code > 0 ? std::min(code, most) : 0.0F));
  }
}

std::uint8_t encode_small(const Format& f, const float* w, std::uint8_t* codes) {
  float most = 0;
  for (std::int64_t i = 0; i < f.group; ++i) most = std::max(most, std::fabs(w[i]));
  const float wanted = most / (f.bits == 4 ? 6.0F : 448.0F);
  std::uint8_t scale = 127;
  if (f.mode == GroupMode::nvfp4) {
    scale = float_to_small(wanted, kE4M3FN);
  } else if (wanted > 0) {
    int exponent = 0;  // the power of two that is not below
    const float fraction = std::frexp(wanted, &exponent);
    scale = static_cast<std::uint8_t>(std::clamp((fraction == 0.5F ? exponent - 1 : exponent) + 127, 0, 254));
  }
  const float by = scale_value(f.mode, scale);
  for (std::int64_t i = 0; i < f.group; ++i) {
    const float v = by == 0 ? 0.0F : w[i] / by;
    codes[i] = f.bits == 4 ? to_e2m1(v) : float_to_small(v, kE4M3FN);
  }
  return scale;
}

// Decodes group number g to floats.
void decode(const GroupedCodes& q, std::int64_t g, float* to) {
  if (q.format.mode == GroupMode::affine && q.format.bits == 4) {
    const float scale = q.scales[g], bias = q.biases[g];
    const std::uint8_t* from = q.codes + g * q.format.bytes();
    for (std::int64_t i = 0; i < q.format.group / 2; ++i) {
      to[2 * i] = static_cast<float>(from[i] & 15) * scale + bias;
      to[2 * i + 1] = static_cast<float>(from[i] >> 4) * scale + bias;
    }
    return;
  }
  std::array<std::uint8_t, 128> codes;
  unpack(q.format, q.codes + g * q.format.bytes(), codes.data());
  if (q.format.mode == GroupMode::affine) {
    const float scale = q.scales[g], bias = q.biases[g];
    for (std::int64_t i = 0; i < q.format.group; ++i)
      to[i] = static_cast<float>(codes[static_cast<std::size_t>(i)]) * scale + bias;
    return;
  }
  const float scale = scale_value(q.format.mode, q.small_scales[g]);
  const float* table = q.format.bits == 4 ? kE2M1 : e4m3_values().data();
  for (std::int64_t i = 0; i < q.format.group; ++i) to[i] = table[codes[static_cast<std::size_t>(i)]] * scale;
}

// Computes y[m, columns] for a block of w's rows (x @ w.T) or columns (x @ w), which are decoded first.
void multiply_block(const GroupedCodes& q, std::int64_t matrix, const GroupProducts& z, const float* x, std::int64_t begin,
                    std::int64_t end, float* y, std::vector<float>& block) {
  const std::int64_t width = end - begin, row = z.transpose ? z.k : z.n, rows = z.transpose ? z.n : z.k;
  const std::int64_t per_row = row / q.format.group, base = matrix * rows * per_row;
  block.resize(static_cast<std::size_t>(width * z.k));
  if (z.transpose) {
    for (std::int64_t g = 0; g < width * per_row; ++g) decode(q, base + begin * per_row + g, block.data() + g * q.format.group);
  } else {
    for (std::int64_t r = 0; r < z.k; ++r) {
      for (std::int64_t g = 0; g < width / q.format.group; ++g) {
        decode(q, base + r * per_row + begin / q.format.group + g, block.data() + r * width + g * q.format.group);
      }
    }
  }
  GemmArgs a;
  a.m = z.m, a.n = width, a.k = z.k;
  a.a = x, a.lda = z.k;
  a.b = block.data(), a.ldb = z.transpose ? z.k : width, a.trans_b = z.transpose;
  a.c = y + begin, a.ldc = z.n;
  gemm_f32(a);
}

}  // namespace

void quantize_groups(const GroupFormat& f, const float* w, std::int64_t count, std::uint8_t* codes, float* scales, float* biases,
                     std::uint8_t* small_scales) {
  parallel_for(count, grain_for(f.group * 64), [&](std::int64_t begin, std::int64_t end) {
    std::array<std::uint8_t, 128> group;
    for (std::int64_t g = begin; g < end; ++g) {
      if (f.mode == GroupMode::affine) {
        encode_affine(f, w + g * f.group, group.data(), scales[g], biases[g]);
      } else {
        small_scales[g] = encode_small(f, w + g * f.group, group.data());
      }
      pack(f, group.data(), codes + g * f.bytes());
    }
  });
}

void dequantize_groups(const GroupedCodes& q, std::int64_t count, float* y) {
  parallel_for(count, grain_for(q.format.group * 4), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t g = begin; g < end; ++g) decode(q, g, y + g * q.format.group);
  });
}

void matmul_groups(const GroupedCodes& q, const GroupProducts& z, const float* x, float* y) {
  // The size of blocks: some 256 KB when decoded, whole groups of columns.
  const std::int64_t unit = z.transpose ? 8 : q.format.group;
  const std::int64_t width = std::max<std::int64_t>(unit, 65536 / std::max<std::int64_t>(1, z.k) / unit * unit);
  const std::int64_t blocks = (z.n + width - 1) / width;
  parallel_for(z.count * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> block;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t product = i / blocks, from = i % blocks * width;
      multiply_block(q, z.of_w[product], z, x + z.of_x[product] * z.m * z.k, from, std::min(z.n, from + width),
                     y + product * z.m * z.n, block);
    }
  });
}

}  // namespace sdx::cpu
