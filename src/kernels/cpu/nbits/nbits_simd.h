#pragma once
// Per-target inner loops of weight-only products; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

// Larger activations are multiplied by weights, not by codes: codes may be larger than the product, and a zero point's share is
// subtracted, which makes NaN of infinities.
inline constexpr float kNBitsMost = 0x1p100F, kNBitsFactor = 0x1p28F;  // their product is 2^128

enum class NBitsZeros : std::uint32_t { none, integers, floats };

// A panel of nr = 2 lanes columns: per block of K, nr scales, nr zero points (bytes, or floats), then words of 32 / bits codes
// of one column, [word][nr]. Without zero points they are 2^(bits-1). All in 4-byte units.
struct NBitsLayout {
  std::int64_t blocks;
  std::int64_t block;
  std::int64_t words;  // per block and column
  int bits;
  NBitsZeros zeros;
  int nr;
  std::int64_t zero_units() const {
    if (zeros == NBitsZeros::none) return 0;
    return zeros == NBitsZeros::integers ? (nr + 3) / 4 : nr;
  }
  std::int64_t block_units() const { return nr * (words + 1) + zero_units(); }
  std::int64_t panel_units() const { return blocks * block_units(); }
};

struct NBitsKernels {
  int nr;
  // Packs a panel from the codes and scales of its nr columns as MatMulNBits stores them, if words are a multiple of 4 and there
  // are no zero points. If null, words are moved one by one, or four by four.
  void (*pack)(const NBitsLayout& layout, const char* codes, const char* scales, std::uint32_t* panel);
  // out[i * nr + j] for m <= 4 rows: x is [m][ldx], zero-padded to blocks * block; for all but the last code of a word it is
  // divided by 2^(bits * place), so that codes need not be shifted down; sums[i * blocks + b] is the sum of x's block before
  // that.
  void (*gemv)(const NBitsLayout& layout, const std::uint32_t* panel, const float* x, std::int64_t ldx, const float* sums,
               std::int64_t m, float* out);
  // Rows [k0, k0 + kc) of a panel as floats [kc][nr].
  void (*expand)(const NBitsLayout& layout, const std::uint32_t* panel, std::int64_t k0, std::int64_t kc, float* out);
  // The sum of a block's elements; NaN if one of them is NaN or at least kNBitsMost.
  float (*sum)(const float* x, std::int64_t n);
};

const NBitsKernels& nbits_kernels();

}  // namespace sdx::cpu
