#include "kernels/cpu/ggml/ggml_bytes.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm/gemm_args.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/ggml/ggml_bytes_simd.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/cpu/simd/transpose_words.h"

namespace sdx::cpu {
namespace {

// Tasks have at least so many multiply-adds: 5 to 10 microseconds.
constexpr std::int64_t kTaskWork = 400000;

// Parts of a row, in blocks of 32: each is whole blocks of the format, and at most kBytePart weights.
std::int64_t part_blocks(const GgmlArgs& a) {
  const std::int64_t unit = std::max(a.format->block, kByteBlock), parts = up_div(a.k, kBytePart);
  return up_div(a.k / unit, parts) * unit / kByteBlock;
}

struct ByteProduct {
  const GgmlArgs* args;
  const ByteCodes* codes;
  ByteRows rows;
  std::int64_t columns;    // of a unit of work
  std::int64_t row_parts;  // into which rows are cut if there are few columns

  std::int64_t units() const { return up_div(args->n, columns) * row_parts; }
  std::int64_t grain() const {
    return std::max<std::int64_t>(1, kTaskWork / std::max<std::int64_t>(1, args->k * columns * args->m / row_parts));
  }
};

ByteProduct product_of(const ByteKernels& kernels, const GgmlArgs& a) {
  ByteProduct p{&a, byte_codes(a.format->type), {}, kernels.columns, 1};
  // Taking a panel apart again takes about as long as multiplying it by 8 rows.
  constexpr std::int64_t kLeastRows = 64, kTurns = 4;
  const std::int64_t wanted = up_div(kTurns * current_pool().threads(), up_div(a.n, p.columns));
  p.row_parts = std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, a.m / kLeastRows));
  return p;
}

// Floats that a product's rows take.
std::int64_t room_of(const ByteProduct& p) {
  const std::int64_t m = p.args->m, k = p.args->k;
  return round_up(m * k / 4 + m * (k / kByteBlock) + m * (k / p.codes->group), 16);
}

void lay_out(ByteProduct& p, float* room) {
  const std::int64_t m = p.args->m, k = p.args->k;
  ByteRows& r = p.rows;
  r.blocks = k / kByteBlock;
  r.group = p.codes->group;
  r.codes = reinterpret_cast<std::int8_t*>(room);
  r.scales = room + m * k / 4;
  float* sums = r.scales + m * r.blocks;
  if (p.codes->minimum) {
    r.sums = sums;
  } else {
    r.starts = reinterpret_cast<std::int32_t*>(sums);
  }
}

// Rounds the activations; false if there is one that is not finite.
bool round_rows(const ByteKernels& kernels, const ByteProduct& p) {
  const GgmlArgs& a = *p.args;
  const std::int64_t blocks = p.rows.blocks, most = kBytePart / kByteBlock, pieces = up_div(blocks, most);
  const std::int32_t zero = p.codes->bits == 8 && kernels.unsigned_bytes ? 128 : p.codes->zero;
  std::atomic<bool> ok{true};
  parallel_for(a.m * pieces, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t i = t / pieces, first = t % pieces * most;
      const float* x = a.a + i * a.lda + first * kByteBlock;
      if (!kernels.round(x, p.rows.from(i, first), std::min(most, blocks - first), -zero)) ok = false;
    }
  });
  return ok;
}

// A panel of some rows of weights, in this thread's scratch memory.
class Panel {
 public:
  Panel(const ByteKernels& kernels, const ByteProduct& p)
      : kernels_(kernels), p_(p), columns_(kernels.columns), of_block_(kByteBlock / p.codes->group) {
    const std::int64_t groups = columns_ * kBytePart / p.codes->group;
    scales_ = thread_scratch(2, static_cast<std::size_t>(2 * groups + columns_ * kBytePart / 4 + kColumns * kBytePart / 4));
    minimums_ = scales_ + groups;
    codes_ = reinterpret_cast<std::uint32_t*>(minimums_ + groups);
    rows_ = reinterpret_cast<std::uint8_t*>(codes_ + columns_ * kBytePart / 4);
  }

  // Blocks [block, block + blocks) of the rows from `first` on; those beyond the last are zeros.
  BytePanel take(std::int64_t first, std::int64_t block, std::int64_t blocks) {
    for (std::int64_t j = 0; j < columns_; j += kColumns) {
      for (std::int64_t c = j; c < j + kColumns; ++c) take_row(first + c, c, block, blocks);
      for (std::int64_t at = 0; at < blocks * kByteBlock; at += 16)
        transpose_four(reinterpret_cast<const char*>(rows_) + at, kBytePart, codes_ + at / 4 * columns_ + j, columns_);
    }
    return {blocks, reinterpret_cast<const std::uint8_t*>(codes_), scales_, minimums_};
  }

 private:
  static constexpr std::int64_t kColumns = 4;  // taken apart at a time

  void take_row(std::int64_t row, std::int64_t column, std::int64_t block, std::int64_t blocks) {
    const GgmlArgs& a = *p_.args;
    std::uint8_t* to = rows_ + column % kColumns * kBytePart;
    float scales[kByteGroups], minimums[kByteGroups];
    if (row < a.n) {
      const char* weights = static_cast<const char*>(a.weights) + row * a.format->row_bytes(a.k);
      kernels_.unpack(a.format->type, weights + a.format->row_bytes(block * kByteBlock), blocks, to, scales, minimums);
    } else {
      std::memset(to, 0, static_cast<std::size_t>(blocks * kByteBlock));
      std::fill_n(scales, blocks * of_block_, 0.0F);
      std::fill_n(minimums, blocks * of_block_, 0.0F);
    }
    if (kernels_.unsigned_bytes && p_.codes->bits == 8) {
      for (std::int64_t i = 0; i < blocks * kByteBlock; ++i) to[i] ^= 128;
    }
    for (std::int64_t g = 0; g < blocks * of_block_; ++g) scales_[g * columns_ + column] = scales[g];
    if (!p_.codes->minimum) return;
    for (std::int64_t g = 0; g < blocks * of_block_; ++g) minimums_[g * columns_ + column] = minimums[g];
  }

  const ByteKernels& kernels_;
  const ByteProduct& p_;
  std::int64_t columns_, of_block_;
  float *scales_, *minimums_;
  std::uint32_t* codes_;
  std::uint8_t* rows_;
};

// The products of a unit's rows and columns.
void multiply(const ByteKernels& kernels, const ByteProduct& p, std::int64_t unit) {
  const GgmlArgs& a = *p.args;
  const GemmKernels& gemm = gemm_kernels();
  const GemmArgs g = gemm_args_of(a);
  const std::int64_t first = unit / p.row_parts * p.columns, columns = std::min(p.columns, a.n - first);
  const Cuts rows(up_div(a.m, kernels.rows), up_div(up_div(a.m, kernels.rows), p.row_parts));
  const std::int64_t part = part_blocks(a), row_part = unit % p.row_parts;
  if (row_part >= rows.parts) return;
  const std::int64_t begin = rows.begin(row_part) * kernels.rows, end = std::min(a.m, begin + rows.size(row_part) * kernels.rows);
  alignas(64) float out[8 * 32];
  Panel panel(kernels, p);
  for (std::int64_t b = 0; b < p.rows.blocks; b += part) {
    const std::int64_t blocks = std::min(part, p.rows.blocks - b);
    const BytePanel weights = panel.take(first, b, blocks);
    for (std::int64_t i = begin, m = 0; i < end; i += m) {
      m = end - i >= 8 && kernels.rows == 8 ? 8 : std::min<std::int64_t>(4, end - i);
      kernels.tile(*p.codes, weights, p.rows.from(i, b), m, out);
      gemm_finish(gemm, g, {i, m, first, columns, b == 0, b + blocks == p.rows.blocks}, out, p.columns);
    }
  }
}

}  // namespace

bool ggml_multiplies_bytes(const GgmlFormat& format) { return byte_kernels() != nullptr && byte_codes(format.type) != nullptr; }

std::vector<std::size_t> ggml_gemms_of_bytes(std::span<const GgmlArgs> all) {
  std::vector<std::size_t> left;
  std::vector<ByteProduct> products;
  const ByteKernels* kernels = byte_kernels();
  std::int64_t room = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const GgmlArgs& a = all[i];
    if (a.accuracy == GgmlAccuracy::int8 && a.m >= kGgmlRoundedRows && a.n > 0 && a.k > 0 && ggml_multiplies_bytes(*a.format)) {
      products.push_back(product_of(*kernels, a));
      room += room_of(products.back());
    } else {
      left.push_back(i);
    }
  }
  if (products.empty()) return left;
  float* at = thread_scratch(3, static_cast<std::size_t>(room));
  for (ByteProduct& p : products) {
    lay_out(p, at);
    at += room_of(p);
  }
  std::erase_if(products, [&](const ByteProduct& p) {
    if (round_rows(*kernels, p)) return false;
    left.push_back(static_cast<std::size_t>(p.args - all.data()));
    return true;
  });
  std::int64_t units = 0, grain = std::numeric_limits<std::int64_t>::max();
  for (const ByteProduct& p : products) {
    units += p.units();
    grain = std::min(grain, p.grain());
  }
  parallel_for(units, grain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t before = 0;
    for (const ByteProduct& p : products) {
      const std::int64_t last = std::min(end - before, p.units());
      for (std::int64_t unit = std::max<std::int64_t>(0, begin - before); unit < last; ++unit) multiply(*kernels, p, unit);
      before += p.units();
    }
  });
  return left;
}

}  // namespace sdx::cpu
