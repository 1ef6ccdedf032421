#include "quantize/weights/block_matrix.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/thread_pool.h"
#include "tensor/types.h"

namespace sdx::quantize {
namespace {

float as_stored(float scale, DataType type) {
  if (type == DataType::float16) return half_to_float(float_to_half(scale));
  if (type == DataType::bfloat16) return static_cast<float>(BFloat16(scale));
  return scale;
}

// Into [0, most], and rounded half to even: adding 1.5 * 2^23 leaves a float no fraction bits, and the compiler makes vector code
// of it. NaN becomes 0.
float to_code(float x, float most) {
  x = x > 0 ? x : 0.0F;
  x = x < most ? x : most;
  return (x + 12582912.0F) - 12582912.0F;
}

struct Range {
  float low = 0, high = 0;
};

// Always with 0 in it: that is what padding and pruned weights are.
Range range_of(std::span<const float> block) {
  Range r;
  for (const float w : block) {
    r.low = std::min(r.low, w);
    r.high = std::max(r.high, w);
  }
  return r;
}

// The larger end gets the code with the most room, -2^(bits - 1): scales may be negative.
BlockScale symmetric_scale(Range r, const BlockFormat& format) {
  const float end = -r.low > r.high ? r.low : r.high;
  return {as_stored(-end / static_cast<float>(format.middle()), format.scale_type), static_cast<float>(format.middle())};
}

BlockScale asymmetric_scale(Range r, const BlockFormat& format) {
  const auto most = static_cast<float>(format.most());
  const float scale = as_stored((r.high - r.low) / most, format.scale_type);
  if (scale == 0) return {0, static_cast<float>(format.middle())};
  return {scale, to_code(-r.low / scale, most)};
}

float code_of(float value, float inverse, float zero, float most) { return to_code(value * inverse + zero, most); }

float inverse_of(float scale) { return scale == 0 ? 0.0F : 1 / scale; }

double squared_error(std::span<const float> block, const BlockScale& s, const BlockFormat& format,
                     std::span<const float> importance) {
  const float inverse = inverse_of(s.scale);
  const auto most = static_cast<float>(format.most());
  double sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const float off = block[i] - (code_of(block[i], inverse, s.zero, most) - s.zero) * s.scale;
    sum += static_cast<double>(off) * off * (importance.empty() ? 1.0F : importance[i]);
  }
  return sum;
}

// The scale that fits the codes of `s` best.
BlockScale refitted(std::span<const float> block, const BlockScale& s, const BlockFormat& format,
                    std::span<const float> importance) {
  const float inverse = inverse_of(s.scale);
  double product = 0, square = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const float code = code_of(block[i], inverse, s.zero, static_cast<float>(format.most())) - s.zero;
    const float weight = importance.empty() ? 1.0F : importance[i];
    product += static_cast<double>(weight) * block[i] * code;
    square += static_cast<double>(weight) * code * code;
  }
  return square > 0 ? BlockScale{as_stored(static_cast<float>(product / square), format.scale_type), s.zero} : s;
}

struct Best {
  BlockScale scale;
  double error = 0;

  void offer(std::span<const float> block, const BlockScale& s, const BlockFormat& format, std::span<const float> importance) {
    if (s.scale == 0 || !std::isfinite(s.scale)) return;
    const double e = squared_error(block, s, format, importance);
    if (e < error) *this = {s, e};
  }
};

// Ranges narrowed at either end clip outliers and give everything else a finer step. With 8 bits there is little to gain.
BlockScale searched_scale(std::span<const float> block, const BlockFormat& format, std::span<const float> importance) {
  constexpr std::array<float, 9> kShrinks{1.0F, 0.95F, 0.9F, 0.85F, 0.8F, 0.75F, 0.7F, 0.6F, 0.5F};
  const Range r = range_of(block);
  const BlockScale start = format.symmetric ? symmetric_scale(r, format) : asymmetric_scale(r, format);
  Best best{start, squared_error(block, start, format, importance)};
  for (const float a : kShrinks) {
    if (format.symmetric) {
      const BlockScale s = symmetric_scale({r.low * a, r.high * a}, format);
      best.offer(block, s, format, importance);
      best.offer(block, {-s.scale, s.zero}, format, importance);
      continue;
    }
    for (const float b : kShrinks) best.offer(block, asymmetric_scale({r.low * a, r.high * b}, format), format, importance);
  }
  // Codes change with the step: twice is enough to settle.
  for (int i = 0; i < 2; ++i) best.offer(block, refitted(block, best.scale, format, importance), format, importance);
  return best.scale;
}

// Alternates between errors that may be large in a few places (the shrinkage of an l_p norm, p = 0.7) and the zero point that
// fits the rest. Errors are counted in steps, so that the constants hold for weights of any size.
BlockScale hqq_scale(std::span<const float> block, const BlockFormat& format) {
  constexpr float kNorm = 0.7F, kGrowth = 1.01F;
  constexpr int kRounds = 20;
  BlockScale s = asymmetric_scale(range_of(block), format);
  if (s.scale == 0) return s;
  const float inverse = 1 / s.scale;
  const auto most = static_cast<float>(format.most());
  float beta = 10, zero = s.zero;
  double best = squared_error(block, s, format, {});
  for (int round = 0; round < kRounds; ++round) {
    double sum = 0;
    for (const float w : block) {
      const float code = code_of(w, inverse, zero, most), x = w * inverse;
      const float off = x - (code - zero), size = std::fabs(off);
      const float kept = std::max(0.0F, size - std::pow(size + 1e-8F, kNorm - 1) / beta);
      sum += code - (x - std::copysign(kept, off));
    }
    zero = as_stored(static_cast<float>(sum / static_cast<double>(block.size())), format.scale_type);
    beta *= kGrowth;
    const double error = squared_error(block, {s.scale, zero}, format, {});
    if (error < best) {
      best = error;
      s.zero = zero;
    } else if (round > 0) {
      break;
    }
  }
  const BlockScale finer = refitted(block, s, format, {});
  return squared_error(block, finer, format, {}) < best ? finer : s;
}

}  // namespace

BlockMatrix::BlockMatrix(const BlockFormat& f, std::int64_t row_count, std::int64_t column_count)
    : format(f), rows(row_count), columns(column_count), blocks((column_count + f.block - 1) / f.block) {
  codes.assign(static_cast<std::size_t>(rows * width()), 0);
  scales.assign(static_cast<std::size_t>(rows * blocks), 0);
  zeros.assign(static_cast<std::size_t>(rows * blocks), static_cast<float>(f.middle()));
}

float BlockMatrix::at(std::int64_t row, std::int64_t column) const {
  const auto scale = static_cast<std::size_t>(row * blocks + column / format.block);
  return (static_cast<float>(codes[static_cast<std::size_t>(row * width() + column)]) - zeros[scale]) * scales[scale];
}

BlockScale choose_scale(std::span<const float> block, const BlockFormat& format, Rounding rounding,
                        std::span<const float> importance) {
  if (rounding == Rounding::hqq && !format.symmetric) return hqq_scale(block, format);
  if (rounding != Rounding::nearest) return searched_scale(block, format, importance);
  const Range r = range_of(block);
  return format.symmetric ? symmetric_scale(r, format) : asymmetric_scale(r, format);
}

std::uint8_t encode(float value, const BlockScale& scale, const BlockFormat& format) {
  return static_cast<std::uint8_t>(code_of(value, inverse_of(scale.scale), scale.zero, static_cast<float>(format.most())));
}

BlockMatrix quantize_blocks(std::span<const float> weights, std::int64_t rows, std::int64_t columns, const BlockFormat& format,
                            Rounding rounding, std::span<const float> importance) {
  BlockMatrix out(format, rows, columns);
  out.float_zeros = rounding == Rounding::hqq && !format.symmetric;
  current_pool().parallel_for(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t b = 0; b < out.blocks; ++b) {
        const std::int64_t first = b * format.block, count = std::min(format.block, columns - first);
        const auto block = weights.subspan(static_cast<std::size_t>(row * columns + first), static_cast<std::size_t>(count));
        const auto weighed = importance.empty()
                                 ? importance
                                 : importance.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
        const BlockScale s = choose_scale(block, format, rounding, weighed);
        out.scales[static_cast<std::size_t>(row * out.blocks + b)] = s.scale;
        out.zeros[static_cast<std::size_t>(row * out.blocks + b)] = s.zero;
        std::uint8_t* codes = out.codes.data() + row * out.width() + first;
        for (std::int64_t i = 0; i < count; ++i) codes[i] = encode(block[static_cast<std::size_t>(i)], s, format);
      }
    }
  });
  return out;
}

double relative_error(std::span<const float> weights, const BlockMatrix& matrix) {
  double error = 0, size = 0;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t c = 0; c < matrix.columns; ++c) {
      const double w = weights[static_cast<std::size_t>(row * matrix.columns + c)], off = w - matrix.at(row, c);
      error += off * off;
      size += w * w;
    }
  }
  return size > 0 ? std::sqrt(error / size) : 0;
}

std::vector<std::uint8_t> packed_rows(std::span<const std::uint8_t> codes, std::int64_t rows, std::int64_t per_row, int bits) {
  const std::int64_t each = 8 / bits, bytes = (per_row + each - 1) / each;
  std::vector<std::uint8_t> out(static_cast<std::size_t>(rows * bytes), 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::uint8_t* from = codes.data() + row * per_row;
    std::uint8_t* to = out.data() + row * bytes;
    for (std::int64_t i = 0; i < per_row; ++i)
      to[i / each] = static_cast<std::uint8_t>(to[i / each] | from[i] << (i % each * bits));
  }
  return out;
}

}  // namespace sdx::quantize
