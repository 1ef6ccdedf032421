#include "ops/attention/attention_core.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/thread_pool.h"
#include "tensor/dispatch.h"

namespace sdx::ops {
namespace {

// 16 partial sums let the compiler vectorise a sum whose order it may not change itself.
template <class T>
T dot_of(const T* a, const T* b, std::int64_t count) {
  constexpr std::int64_t kLanes = 16;
  T lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t j = 0; j < kLanes; ++j) lanes[j] += a[i + j] * b[i + j];
  }
  T sum = 0;
  for (const T lane : lanes) sum += lane;
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

template <class T>
void add_scaled(T* out, const T* in, T factor, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] += factor * in[i];
}

// Turns row[begin, end) into probabilities; everything else into zeros.
template <class T>
void softmax_row(T* row, std::int64_t count, std::int64_t begin, std::int64_t end, const T* sink) {
  constexpr T kLow = -std::numeric_limits<T>::infinity();
  T top = sink != nullptr ? *sink : kLow;
  for (std::int64_t j = begin; j < end; ++j) top = std::max(top, row[j]);
  std::fill(row, row + begin, T(0));
  std::fill(row + end, row + count, T(0));
  if (top == kLow) {
    for (std::int64_t j = begin; j < end; ++j) row[j] = std::isnan(row[j]) ? row[j] : T(0);
    return;
  }
  double sum = sink != nullptr ? std::exp(static_cast<double>(*sink) - static_cast<double>(top)) : 0.0;
  for (std::int64_t j = begin; j < end; ++j) {
    row[j] = std::exp(row[j] - top);
    sum += static_cast<double>(row[j]);
  }
  const T factor = static_cast<T>(1.0 / sum);
  for (std::int64_t j = begin; j < end; ++j) row[j] *= factor;
}

// exp(row - max) / sum with NaN as it comes: infinity less infinity.
template <class T>
void softmax_by_steps(T* row, std::int64_t count, bool zero_nan) {
  T top = -std::numeric_limits<T>::infinity();
  for (std::int64_t j = 0; j < count; ++j) top = row[j] > top || std::isnan(row[j]) ? row[j] : top;
  double sum = 0.0;
  for (std::int64_t j = 0; j < count; ++j) {
    row[j] = std::exp(row[j] - top);
    sum += static_cast<double>(row[j]);
  }
  const T factor = static_cast<T>(1.0 / sum);
  for (std::int64_t j = 0; j < count; ++j) {
    row[j] *= factor;
    if (zero_nan && std::isnan(row[j])) row[j] = T(0);
  }
}

template <class T>
void attend_row_by_steps(const AttentionProblem<T>& p, std::int64_t b, std::int64_t h, std::int64_t i, T* row) {
  const std::int64_t kv = h / (p.heads / p.kv_heads);
  const T *q = p.q.at(b, h, i), rest = p.scale / (p.q_scale * p.k_scale);
  for (std::int64_t j = 0; j < p.kv_len; ++j) {
    const T* k = p.k.at(b, kv, j);
    T sum = 0;
    for (std::int64_t c = 0; c < p.size; ++c) sum += (q[c] * p.q_scale) * (k[c] * p.k_scale);
    row[j] = sum * rest;
  }
  if (p.see_scores) p.see_scores(b, h, i, row);
  if (p.see_capped) p.see_capped(b, h, i, row);
  if (p.add_bias) p.add_bias(b, h, i, row);
  if (p.see_masked) p.see_masked(b, h, i, row);
  softmax_by_steps(row, p.kv_len, p.zero_nan);
  if (p.see_probabilities) p.see_probabilities(b, h, i, row);
  T* out = p.out + b * p.out_batch + h * p.out_head + i * p.out_row;
  std::fill(out, out + p.v_size, T(0));
  for (std::int64_t j = 0; j < p.kv_len; ++j) add_scaled(out, p.v.at(b, kv, j), row[j], p.v_size);
}

template <class T>
void attend_row(const AttentionProblem<T>& p, std::int64_t b, std::int64_t h, std::int64_t i, T* row) {
  if (p.stop != nullptr) p.stop->check();
  if (p.by_steps) return attend_row_by_steps(p, b, h, i, row);
  const std::int64_t kv = h / (p.heads / p.kv_heads);
  std::int64_t begin = 0, end = p.kv_len;
  if (p.visible) {
    std::tie(begin, end) = p.visible(b, i);
    begin = std::clamp<std::int64_t>(begin, 0, p.kv_len);
    end = std::clamp<std::int64_t>(end, begin, p.kv_len);
  }
  const bool all = p.see_scores || p.see_capped;
  const std::int64_t from = all ? 0 : begin, to = all ? p.kv_len : end;
  const T* q = p.q.at(b, h, i);
  for (std::int64_t j = from; j < to; ++j) row[j] = p.scale * dot_of(q, p.k.at(b, kv, j), p.size);
  if (p.see_scores) p.see_scores(b, h, i, row);
  if (p.softcap > 0) {
    for (std::int64_t j = from; j < to; ++j) row[j] = p.softcap * std::tanh(row[j] / p.softcap);
  }
  if (p.see_capped) p.see_capped(b, h, i, row);
  std::fill(row, row + begin, -std::numeric_limits<T>::infinity());
  std::fill(row + end, row + p.kv_len, -std::numeric_limits<T>::infinity());
  if (p.add_bias) p.add_bias(b, h, i, row);
  if (p.see_masked) p.see_masked(b, h, i, row);
  softmax_row(row, p.kv_len, begin, end, p.sink != nullptr ? p.sink + h : nullptr);
  if (p.see_probabilities) p.see_probabilities(b, h, i, row);
  T* out = p.out + b * p.out_batch + h * p.out_head + i * p.out_row;
  std::fill(out, out + p.v_size, T(0));
  for (std::int64_t j = begin; j < end; ++j) {
    if (row[j] != T(0)) add_scaled(out, p.v.at(b, kv, j), row[j], p.v_size);
  }
}

// About 2^16 multiplications are worth a task of their own.
std::int64_t grain_for(std::int64_t work_per_item) {
  return std::max<std::int64_t>(1, (std::int64_t{1} << 16) / std::max<std::int64_t>(1, work_per_item));
}

template <class T>
void attend_all(const AttentionProblem<T>& p) {
  if (p.kv_heads <= 0 || p.heads % p.kv_heads != 0) {
    fail(ErrorCode::runtime_failure, "{} query heads cannot share {} key heads", p.heads, p.kv_heads);
  }
  const bool watched = p.see_scores || p.see_capped || p.see_masked || p.see_probabilities;
  if (p.v_size == 0 && (p.kv_len == 0 || !watched)) return;
  const std::int64_t rows = element_count(Shape{p.batch, p.heads, p.q_len});
  const auto work = static_cast<double>(p.kv_len) * static_cast<double>(p.size + p.v_size + 4);
  parallel_for(rows, grain_for(static_cast<std::int64_t>(std::min(work, 1e9))), [&](std::int64_t first, std::int64_t last) {
    Tensor scratch(DataTypeOf<T>::value, {p.kv_len});
    auto* row = static_cast<T*>(scratch.mutable_data());
    for (std::int64_t r = first; r < last; ++r) {
      attend_row(p, r / p.q_len / p.heads, r / p.q_len % p.heads, r % p.q_len, row);
    }
  });
}

template <class T>
Tensor gather(const CacheParts<T>& p) {
  Tensor out(DataTypeOf<T>::value, {p.batch, p.heads, p.capacity, p.size});
  if (out.size() == 0) return out;
  auto* to = static_cast<T*>(out.mutable_data());
  parallel_for(p.batch * p.heads, grain_for(p.capacity * p.size), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t b = i / p.heads, h = i % p.heads;
      T* at = to + i * p.capacity * p.size;
      for (std::int64_t r = 0; r < p.past_len; ++r, at += p.size) {
        std::int64_t source = b;
        if (p.indirection.data != nullptr) {
          const std::int32_t beam = p.indirection.data[b * p.indirection.max_len + r];
          if (beam < 0 || beam >= p.indirection.beams) {
            fail(ErrorCode::runtime_failure, "cache_indirection names beam {}; there are {}", beam, p.indirection.beams);
          }
          source = b / p.indirection.beams * p.indirection.beams + beam;
        }
        std::copy_n(p.past + ((source * p.heads + h) * p.past_capacity + r) * p.size, p.size, at);
      }
      for (std::int64_t r = 0; r < p.len; ++r, at += p.size) {
        std::copy_n(p.fresh.at(b, h, r), p.size, at);
        if (p.bias != nullptr) add_scaled(at, p.bias + h * p.size, T(1), p.size);
      }
      // Rows beyond the valid ones keep the contents of a shared cache.
      const std::int64_t used = p.past_len + p.len;
      const std::int64_t kept =
          p.past == nullptr || !p.shared ? 0 : std::max<std::int64_t>(0, std::min(p.capacity, p.past_capacity) - used);
      if (kept > 0) std::copy_n(p.past + ((b * p.heads + h) * p.past_capacity + used) * p.size, kept * p.size, at);
      std::fill_n(at + kept * p.size, (p.capacity - used - kept) * p.size, T(0));
    }
  });
  return out;
}

}  // namespace

std::int64_t checked_heads(std::int64_t num_heads) {
  if (num_heads < 1 || num_heads > (1 << 20)) {
    fail(ErrorCode::invalid_model, "num_heads must be positive, received {}", num_heads);
  }
  return num_heads;
}

void attend(const AttentionProblem<float>& problem) { attend_all(problem); }
void attend(const AttentionProblem<double>& problem) { attend_all(problem); }

std::int64_t total_rows(std::int64_t past, std::int64_t fresh) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (past < 0 || fresh < 0 || past > kMost || fresh > kMost) {
    fail(ErrorCode::runtime_failure, "{} cached and {} new rows are too many", past, fresh);
  }
  return past + fresh;
}

Tensor gather_rows(const CacheParts<float>& parts) { return gather(parts); }
Tensor gather_rows(const CacheParts<double>& parts) { return gather(parts); }

float dot(const float* a, const float* b, std::int64_t count) { return dot_of(a, b, count); }
double dot(const double* a, const double* b, std::int64_t count) { return dot_of(a, b, count); }

void convert_into(Tensor& to, const Tensor& from) {
  SDX_ASSERT(to.size() == from.size());
  dispatch(from.dtype(), FloatTypes{}, "attention", [&](auto in_tag) {
    using In = typename decltype(in_tag)::type;
    dispatch(to.dtype(), FloatTypes{}, "attention", [&](auto out_tag) {
      using Out = typename decltype(out_tag)::type;
      const auto* in = static_cast<const In*>(from.data());
      auto* out = static_cast<Out*>(to.mutable_data());
      for (std::int64_t i = 0; i < from.size(); ++i) {
        out[i] = Out(static_cast<ComputeType<Out>>(static_cast<ComputeType<In>>(in[i])));
      }
    });
  });
}

void dense(const float* x, const float* w, const float* bias, float* out, std::int64_t rows, std::int64_t inner,
           std::int64_t cols) {
  parallel_for(rows, grain_for(inner * cols), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r) {
      float* y = out + r * cols;
      if (bias != nullptr) {
        std::copy_n(bias, cols, y);
      } else {
        std::fill_n(y, cols, 0.0F);
      }
      for (std::int64_t k = 0; k < inner; ++k) add_scaled(y, w + k * cols, x[r * inner + k], cols);
    }
  });
}

}  // namespace sdx::ops
