#include "kernels/cpu/attention/attention_steps.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/attention/attention_simd.h"
#include "kernels/cpu/attention/attention_tiles_simd.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kKeysTogether = 16;

struct Row {
  std::int64_t batch, head, query;
};

void score_keys(const AttentionArgs& a, const AttentionSteps& s, const Row& r, const float* keys, float* spare, float* scores) {
  const AttentionKernels& kernels = attention_kernels();
  const auto dots = attention_tile_kernels().floats.dots;
  float* const q = spare;
  float* const scaled = spare + a.head_size;
  kernels.scale(a.q + r.batch * a.q_batch + r.head * a.q_head + r.query * a.q_row, s.q_scale, q, a.head_size);
  if (s.k_scale == 1.0F) {
    dots(q, a.head_size, 1, keys, a.k_row, a.keys, a.head_size, scores, a.keys, nullptr);
  } else {
    for (std::int64_t j = 0; j < a.keys; j += kKeysTogether) {
      const std::int64_t n = std::min(kKeysTogether, a.keys - j);
      for (std::int64_t i = 0; i < n; ++i) {
        kernels.scale(keys + (j + i) * a.k_row, s.k_scale, scaled + i * a.head_size, a.head_size);
      }
      dots(q, a.head_size, 1, scaled, a.head_size, n, a.head_size, scores + j, n, nullptr);
    }
  }
  kernels.scale(scores, a.scale / (s.q_scale * s.k_scale), scores, a.keys);
}

void hide_keys(const AttentionArgs& a, const AttentionSteps& s, const Row& r, float* scores) {
  if (s.add.data != nullptr) {
    const float* const add = s.add.of(r.batch, r.head, r.query);
    for (std::int64_t j = 0; j < a.keys; ++j) scores[j] += add[j * s.add.key];
  }
  if (s.see.data == nullptr) return;
  const bool* const see = s.see.of(r.batch, r.head, r.query);
  const float* const hidden = s.hidden.of(r.batch, r.head, r.query);
  for (std::int64_t j = 0; j < a.keys; ++j) {
    if (!see[j * s.see.key]) scores[j] = hidden[j * s.hidden.key];
  }
}

// If the largest score is not finite, infinity minus infinity or a NaN makes all weights NaN.
void weigh_keys(const AttentionArgs& a, const AttentionSteps& s, float* scores) {
  float most = -std::numeric_limits<float>::infinity(), total = 0.0F;
  for (std::int64_t j = 0; j < a.keys; ++j) most = scores[j] > most || std::isnan(scores[j]) ? scores[j] : most;
  if (!std::isfinite(most)) {
    std::fill_n(scores, a.keys, s.zero_nan ? 0.0F : std::numeric_limits<float>::quiet_NaN());
    return;
  }
  attention_kernels().online_softmax(scores, a.keys, &most, &total);
  attention_kernels().scale(scores, 1.0F / total, scores, a.keys);
}

void attend(const AttentionArgs& a, const AttentionSteps& s, const Row& r) {
  const std::int64_t kv = r.head / (a.heads / a.kv_heads);
  float* const scores = thread_scratch(2, static_cast<std::size_t>(a.keys + (kKeysTogether + 1) * a.head_size));
  score_keys(a, s, r, a.k + r.batch * a.k_batch + kv * a.k_head, scores + a.keys, scores);
  hide_keys(a, s, r, scores);
  weigh_keys(a, s, scores);
  float* const out = a.out + r.batch * a.out_batch + r.head * a.out_head + r.query * a.out_row;
  std::fill_n(out, a.v_head_size, 0.0F);
  const float* const values = a.v + r.batch * a.v_batch + kv * a.v_head;
  attention_tile_kernels().floats.mix(scores, a.keys, 1, values, a.v_row, a.keys, a.v_head_size, out, a.v_head_size, nullptr);
}

}  // namespace

void attention_by_steps_f32(const AttentionArgs& a, const AttentionSteps& s) {
  std::vector<Row> rows;
  for (std::int64_t b = 0; b < a.batch; ++b) {
    for (std::int64_t h = 0; h < a.heads; ++h) {
      const std::uint8_t* const odd = a.odd + b * a.odd_batch + h * a.odd_head;
      if (a.odd_row == 1 && std::memchr(odd, 1, static_cast<std::size_t>(a.queries)) == nullptr) continue;
      for (std::int64_t i = 0; i < a.queries; ++i) {
        if (odd[i * a.odd_row] != 0) rows.push_back({b, h, i});
      }
    }
  }
  const std::int64_t work = std::max<std::int64_t>(1, a.keys * (a.head_size + a.v_head_size));
  parallel_for(static_cast<std::int64_t>(rows.size()), std::max<std::int64_t>(1, 100000 / work),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) attend(a, s, rows[static_cast<std::size_t>(i)]);
               });
}

}  // namespace sdx::cpu
