#include "kernels/cpu/attention.h"

#include <algorithm>
#include <limits>

#include "base/thread_pool.h"
#include "kernels/cpu/attention_kernels.h"
#include "kernels/cpu/elementwise_kernels.h"
#include "kernels/cpu/gemm_kernels.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kQueryBlock = 48;  // a multiple of the register tile's 6 and 12 rows
constexpr std::int64_t kKeyBlock = 128;
// Up to this many rows the products go row by row: packing keys for them would cost more than the arithmetic.
constexpr std::int64_t kFewRows = 3;

struct Kernels {
  const GemmKernels& gemm;
  const AttentionKernels& rows;
  const ElementwiseKernels& elementwise;
};

// scores[rows, nk] = scale * q k^T
void score_block(const Kernels& k, const AttentionArgs& a, const float* q, const float* keys, std::int64_t rows, std::int64_t nk,
                 float* scores) {
  if (rows <= kFewRows) {
    for (std::int64_t i = 0; i < rows; ++i) {
      k.gemm.gemv_dots(q + i * a.q_row, keys, a.k_row, a.head_size, nk, scores + i * kKeyBlock, 1);
      k.rows.scale(scores + i * kKeyBlock, a.scale, scores + i * kKeyBlock, nk);
    }
    return;
  }
  GemmArgs g;
  g.m = rows;
  g.n = nk;
  g.k = a.head_size;
  g.a = q;
  g.lda = a.q_row;
  g.b = keys;
  g.ldb = a.k_row;
  g.trans_b = true;
  g.c = scores;
  g.ldc = kKeyBlock;
  g.alpha = a.scale;
  gemm_block(k.gemm, g, nullptr, 0, rows, 0, nk);
}

// sums[rows, v_head_size] += p v
void value_block(const Kernels& k, const AttentionArgs& a, const float* p, const float* values, std::int64_t rows,
                 std::int64_t nk, float* sums, float* scratch) {
  if (rows <= kFewRows) {
    for (std::int64_t i = 0; i < rows; ++i) {
      float* row = sums + i * a.v_head_size;
      k.gemm.gemv_rows(p + i * kKeyBlock, values, a.v_row, nk, a.v_head_size, scratch);
      k.elementwise.binary(Binary::add, row, scratch, row, a.v_head_size);
    }
    return;
  }
  GemmArgs g;
  g.m = rows;
  g.n = a.v_head_size;
  g.k = nk;
  g.a = p;
  g.lda = kKeyBlock;
  g.b = values;
  g.ldb = a.v_row;
  g.c = sums;
  g.ldc = a.v_head_size;
  g.epilogue.residual = sums;
  g.epilogue.ld_residual = a.v_head_size;
  gemm_block(k.gemm, g, nullptr, 0, rows, 0, a.v_head_size);
}

// Keys [first, last) that query i may see.
struct Visible {
  std::int64_t first;
  std::int64_t last;
};
Visible visible(const AttentionArgs& a, std::int64_t i, std::int64_t valid) {
  Visible v{0, valid};
  if (a.causal) v.last = std::clamp<std::int64_t>(i + a.causal_offset + 1, 0, valid);
  if (a.window > 0) v.first = std::clamp<std::int64_t>(i + a.causal_offset - a.window + 1, 0, v.last);
  return v;
}

void query_block(const Kernels& k, const AttentionArgs& a, std::int64_t b, std::int64_t h, std::int64_t q0, std::int64_t rows) {
  const std::int64_t kv = h / (a.heads / a.kv_heads);
  const float* q = a.q + b * a.q_batch + h * a.q_head + q0 * a.q_row;
  const float* keys = a.k + b * a.k_batch + kv * a.k_head;
  const float* values = a.v + b * a.v_batch + kv * a.v_head;
  const float* mask = a.mask != nullptr ? a.mask + b * a.mask_batch + h * a.mask_head + q0 * a.mask_row : nullptr;
  float* out = a.out + b * a.out_batch + h * a.out_head + q0 * a.out_row;
  const std::int64_t valid = a.key_lengths != nullptr ? std::clamp<std::int64_t>(a.key_lengths[b], 0, a.keys) : a.keys;
  float* scores = thread_scratch(2, static_cast<std::size_t>(kQueryBlock * kKeyBlock + (kQueryBlock + 1) * a.v_head_size));
  float* sums = scores + kQueryBlock * kKeyBlock;
  float* spare = sums + kQueryBlock * a.v_head_size;
  float max[kQueryBlock];
  float total[kQueryBlock];
  std::fill_n(max, rows, -std::numeric_limits<float>::infinity());
  std::fill_n(total, rows, 0.0F);
  std::fill_n(sums, rows * a.v_head_size, 0.0F);
  const std::int64_t begin = visible(a, q0, valid).first;
  const std::int64_t end = visible(a, q0 + rows - 1, valid).last;
  for (std::int64_t j0 = begin; j0 < end; j0 += kKeyBlock) {
    const std::int64_t nk = std::min(kKeyBlock, end - j0);
    score_block(k, a, q, keys + j0 * a.k_row, rows, nk, scores);
    for (std::int64_t i = 0; i < rows; ++i) {
      float* s = scores + i * kKeyBlock;
      if (a.softcap > 0.0F) {
        k.rows.scale(s, 1.0F / a.softcap, s, nk);
        k.elementwise.unary({Unary::tanh}, s, s, nk);
        k.rows.scale(s, a.softcap, s, nk);
      }
      if (mask != nullptr) k.elementwise.binary(Binary::add, s, mask + i * a.mask_row + j0, s, nk);
      const Visible v = visible(a, q0 + i, valid);
      const std::int64_t from = std::clamp<std::int64_t>(v.first - j0, 0, nk);
      const std::int64_t to = std::clamp<std::int64_t>(v.last - j0, from, nk);
      std::fill(s, s + from, -std::numeric_limits<float>::infinity());
      std::fill(s + to, s + nk, -std::numeric_limits<float>::infinity());
      const float factor = k.rows.online_softmax(s, nk, &max[i], &total[i]);
      if (factor != 1.0F) k.rows.scale(sums + i * a.v_head_size, factor, sums + i * a.v_head_size, a.v_head_size);
    }
    value_block(k, a, scores, values + j0 * a.v_row, rows, nk, sums, spare);
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    k.rows.scale(sums + i * a.v_head_size, total[i] == 0.0F ? 0.0F : 1.0F / total[i], out + i * a.out_row, a.v_head_size);
  }
}

}  // namespace

void attention_f32(const AttentionArgs& a) {
  if (a.batch <= 0 || a.heads <= 0 || a.queries <= 0 || a.v_head_size <= 0) return;
  const Kernels k{gemm_kernels(), attention_kernels(), elementwise_kernels()};
  const std::int64_t blocks = (a.queries + kQueryBlock - 1) / kQueryBlock;
  const std::int64_t work = std::max<std::int64_t>(1, std::min(a.queries, kQueryBlock) * a.keys * (a.head_size + a.v_head_size));
  parallel_for(a.batch * a.heads * blocks, std::max<std::int64_t>(1, 100000 / work), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t q0 = t % blocks * kQueryBlock;
      query_block(k, a, t / blocks / a.heads, t / blocks % a.heads, q0, std::min(kQueryBlock, a.queries - q0));
    }
  });
}

}  // namespace sdx::cpu
