#include "kernels/cpu/attention/linear_state.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/attention/linear_state_simd.h"

namespace sdx::cpu {
namespace {

LinearHead head_of(const LinearStateArgs& a, const StateText& text, std::int64_t h) {
  const std::int64_t key = a.tiled ? h % a.key_heads : h / (a.heads / a.key_heads), size = a.rows * a.columns;
  LinearHead x{};
  x.tokens = text.end - text.begin, x.rows = a.rows, x.columns = a.columns, x.corrects = a.corrects;
  x.q = a.q + text.begin * a.key_row + key * a.rows, x.k = a.k + text.begin * a.key_row + key * a.rows;
  x.v = a.v + text.begin * a.value_row + h * a.columns;
  x.key_row = a.key_row, x.value_row = a.value_row;
  x.decay = a.decay + text.begin * a.heads + h, x.rate = a.rate + text.begin * a.heads + h, x.gate_row = a.heads;
  x.skip = a.skip != nullptr ? a.skip[h] : 0.0F;
  x.out = a.out + (text.begin * a.heads + h) * a.columns, x.out_row = a.heads * a.columns;
  x.from = text.from != nullptr ? text.from + h * size : nullptr;
  x.to = text.to + h * size;
  return x;
}

}  // namespace

void linear_state_f32(const LinearStateArgs& a) {
  const LinearStateKernels& k = linear_state_kernels();
  const std::int64_t wide = k.columns(), parts = (a.columns + wide - 1) / wide;
  // Texts change fastest: those with many tokens are shared out among threads, too.
  const auto texts = static_cast<std::int64_t>(a.texts.size());
  parallel_for(a.heads * parts * texts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const StateText& text = a.texts[static_cast<std::size_t>(i % texts)];
      const std::int64_t part = i / texts % parts, h = i / texts / parts;
      if (text.begin < text.end) k.head(head_of(a, text, h), part * wide, std::min(a.columns, (part + 1) * wide));
    }
  });
}

void state_convolution_f32(const StateConvolutionArgs& a) {
  const LinearStateKernels& k = linear_state_kernels();
  const std::int64_t before = a.taps - 1, n = a.channels;
  const std::vector<float> zeros(static_cast<std::size_t>(n), 0.0F);
  for (const StateText& text : a.texts) {
    // The row of token t, which may lie in the state.
    const auto row = [&](std::int64_t t) -> const float* {
      if (t >= text.begin) return a.x + t * n;
      return text.from != nullptr ? text.from + (t - text.begin + before) * n : zeros.data();
    };
    const std::int64_t grain = std::max<std::int64_t>(1, 65536 / (n * a.taps));
    parallel_for(text.end - text.begin, grain, [&](std::int64_t begin, std::int64_t end) {
      std::vector<const float*> rows(static_cast<std::size_t>(a.taps));
      for (std::int64_t t = text.begin + begin; t < text.begin + end; ++t) {
        for (std::int64_t i = 0; i < a.taps; ++i) rows[static_cast<std::size_t>(i)] = row(t - before + i);
        k.convolve(rows.data(), a.taps, a.weights, a.bias, n, a.out + t * n);
      }
    });
    if (text.begin == text.end) continue;
    // In order, so that a state that is written in place is read first.
    for (std::int64_t i = 0; i < before; ++i)
      std::memmove(text.to + i * n, row(text.end - before + i), static_cast<std::size_t>(n) * sizeof(float));
  }
}

}  // namespace sdx::cpu
