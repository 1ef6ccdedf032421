// Threading of softmax, norms and reductions over the row primitives.

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "kernels/cpu/elementwise_kernels.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/row_kernels.h"
#include "kernels/cpu/softmax.h"

namespace sdx::cpu {
namespace {

// Items of `work` elements each so that a task has about `elements` of them.
std::int64_t grain(std::int64_t work, std::int64_t elements) {
  return std::max<std::int64_t>(1, elements / std::max<std::int64_t>(1, work));
}

// Columns handled together: whole vectors, and enough for runs of 256 bytes and more.
constexpr std::int64_t kColumns = 64;

// fn(outer index, first column, end column) over [outer, inner].
template <class F>
void over_columns(std::int64_t outer, std::int64_t axis, std::int64_t inner, std::int64_t elements, F&& fn) {
  const std::int64_t blocks = (inner + kColumns - 1) / kColumns;
  parallel_for(outer * blocks, grain(axis * std::min(inner, kColumns), elements), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end;) {
      // Neighbouring blocks of one slice go in one call.
      const std::int64_t slice = i / blocks;
      const std::int64_t stop = std::min(end, (slice + 1) * blocks);
      fn(slice, (i - slice * blocks) * kColumns, std::min(inner, (stop - slice * blocks) * kColumns));
      i = stop;
    }
  });
}

void any_softmax(const float* x, float* y, std::int64_t outer, std::int64_t axis, std::int64_t inner, bool log) {
  if (outer <= 0 || axis <= 0 || inner <= 0) return;
  const RowKernels& k = row_kernels();
  if (inner == 1) {
    parallel_for(outer, grain(axis, 8192), [&](std::int64_t b, std::int64_t e) {
      for (std::int64_t i = b; i < e; ++i) k.softmax(x + i * axis, y + i * axis, axis, log);
    });
    return;
  }
  over_columns(outer, axis, inner, 8192, [&](std::int64_t i, std::int64_t b, std::int64_t e) {
    k.softmax_columns(x + i * axis * inner, y + i * axis * inner, axis, inner, b, e, log);
  });
}

}  // namespace

void softmax_f32(const float* x, float* y, std::int64_t outer, std::int64_t axis, std::int64_t inner) {
  any_softmax(x, y, outer, axis, inner, false);
}

void log_softmax_f32(const float* x, float* y, std::int64_t outer, std::int64_t axis, std::int64_t inner) {
  any_softmax(x, y, outer, axis, inner, true);
}

void layer_norm_f32(const LayerNormArgs& args, std::int64_t rows, std::int64_t n) {
  if (n <= 0) return;
  const RowKernels& k = row_kernels();
  parallel_for(rows, grain(n, 16384), [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t i = b; i < e; ++i) k.layer_norm(args, i, n);
  });
}

void channel_affine_f32(const float* x, const float* scale, const float* shift, const UnarySpec& act, float* y,
                        std::int64_t batch, std::int64_t channels, std::int64_t inner) {
  if (inner <= 0) return;
  const RowKernels& k = row_kernels();
  const ElementwiseKernels& elementwise = elementwise_kernels();
  parallel_for(batch * channels, grain(inner, 32768), [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t i = b; i < e; ++i) {
      float* out = y + i * inner;
      k.affine(x + i * inner, scale[i % channels], shift[i % channels], out, inner);
      if (act.op != Unary::none) elementwise.unary(act, out, out, inner);
    }
  });
}

void group_norm_f32(const float* x, const float* scale, const float* bias, float epsilon, float* y, std::int64_t batch,
                    std::int64_t channels, std::int64_t groups, std::int64_t inner) {
  if (inner <= 0 || channels <= 0 || groups <= 0) return;
  const RowKernels& k = row_kernels();
  const std::int64_t per_group = channels / groups;
  const std::int64_t n = per_group * inner;
  parallel_for(batch * groups, grain(n, 16384), [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t i = b; i < e; ++i) {
      float mean = 0.0F;
      float variance = 0.0F;
      k.moments(x + i * n, n, &mean, &variance);
      const float inv = 1.0F / std::sqrt(variance + epsilon);
      for (std::int64_t j = 0; j < per_group; ++j) {
        const std::int64_t c = i % groups * per_group + j;
        const float s = scale != nullptr ? scale[c] * inv : inv;
        const float t = (bias != nullptr ? bias[c] : 0.0F) - mean * s;
        k.affine(x + i * n + j * inner, s, t, y + i * n + j * inner, inner);
      }
    }
  });
}

void lrn_f32(const float* x, float* y, std::int64_t batch, std::int64_t channels, std::int64_t inner, std::int64_t size,
             float alpha, float beta, float bias) {
  if (batch <= 0 || channels <= 0 || inner <= 0) return;
  const RowKernels& k = row_kernels();
  over_columns(batch, channels * 2, inner, 16384, [&](std::int64_t i, std::int64_t b, std::int64_t e) {
    const std::int64_t at = i * channels * inner;
    k.lrn(x + at, y + at, channels, inner, b, e, size, alpha, beta, bias);
  });
}

void reduce_f32(Reduce op, const float* x, float* y, std::int64_t outer, std::int64_t axis, std::int64_t inner) {
  if (outer <= 0 || axis <= 0 || inner <= 0) return;
  const RowKernels& k = row_kernels();
  if (inner == 1) {
    parallel_for(outer, grain(axis, 32768), [&](std::int64_t b, std::int64_t e) {
      for (std::int64_t i = b; i < e; ++i) y[i] = k.reduce(op, x + i * axis, axis);
    });
    return;
  }
  over_columns(outer, axis, inner, 32768, [&](std::int64_t i, std::int64_t b, std::int64_t e) {
    k.reduce_columns(op, x + i * axis * inner, y + i * inner, axis, inner, b, e);
  });
}

}  // namespace sdx::cpu
