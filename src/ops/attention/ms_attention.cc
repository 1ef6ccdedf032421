#include "ops/attention/ms_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sdx::ops {
namespace {

using RowHook = AttentionProblem<float>::RowHook;

// Masks are additive, as in ONNX Runtime's kernels: a masked key gets `filter` (-10000), so that a row with nothing but masked
// keys still is a softmax over all of them.
RowHook mask_hook(OpContext& c, const MsAttention& a) {
  if (a.mask == nullptr) return {};
  const Shape& s = a.mask->shape();
  if (a.mask->dtype() != DataType::int32) c.fail("the mask must be int32, received {}", a.mask->type_string());
  const auto* data = static_cast<const std::int32_t*>(a.mask->data());
  const std::int64_t keys = a.kv_len, batch = a.batch;
  const float filter = a.filter;
  if (s.size() == 1 && (s[0] == batch || s[0] == 2 * batch || s[0] == 3 * batch + 2)) {
    const bool starts = s[0] == 2 * batch;
    return [=](std::int64_t b, std::int64_t, std::int64_t, float* row) {
      const std::int64_t end = std::clamp<std::int64_t>(data[b], 0, keys);
      const std::int64_t start = starts ? std::clamp<std::int64_t>(data[b + batch], 0, keys) : 0;
      for (std::int64_t j = end; j < keys; ++j) row[j] += filter;
      for (std::int64_t j = 0; j < std::min(start, end); ++j) row[j] += filter;
    };
  }
  // [1,1] and [B,1] mean "no mask": older GPT-2 exports have to pass something.
  if (s.size() == 2 && s[1] == 1 && (s[0] == batch || s[0] == 1)) return {};
  std::int64_t per_batch = 0, per_query = 0, first_query = 0;
  if (s.size() == 2 && s[0] == batch && s[1] == keys) {
    per_batch = keys;
  } else if (s.size() == 3 && s[0] == batch && s[1] == a.q_len && s[2] == keys) {
    per_batch = a.q_len * keys, per_query = keys;
  } else if (s.size() == 4 && s[0] == batch && s[1] == 1 && s[2] == s[3] && s[2] >= keys) {
    per_batch = s[2] * s[3], per_query = s[3], first_query = keys - a.q_len;
    if (first_query < 0) c.fail("a mask with 4 axes needs at least as many keys as queries");
  } else {
    c.fail("the mask has shape {}; with batch {}, {} queries and {} keys it may be [{}], [{}], [{},{}] or [{},{},{}]",
           to_string(s), batch, a.q_len, keys, batch, 2 * batch, batch, keys, batch, a.q_len, keys);
  }
  return [=](std::int64_t b, std::int64_t, std::int64_t i, float* row) {
    const std::int32_t* keep = data + b * per_batch + (first_query + i) * per_query;
    for (std::int64_t j = 0; j < keys; ++j) row[j] += keep[j] > 0 ? 0.0F : filter;
  };
}

RowHook bias_hook(OpContext& c, const MsAttention& a, Tensor& held) {
  if (a.bias == nullptr) return {};
  const Shape& s = a.bias->shape();
  if (s.size() != 4 || (s[0] != 1 && s[0] != a.batch) || (s[1] != 1 && s[1] != a.heads) || s[2] != a.q_len || s[3] < a.kv_len) {
    c.fail("attention_bias must be [1 or {},1 or {},{},{}], received {}", a.batch, a.heads, a.q_len, a.kv_len,
           a.bias->type_string());
  }
  held = converted(*a.bias, DataType::float32);
  const HeadView<float> view{static_cast<const float*>(held.data()), s[0] == 1 ? 0 : s[1] * s[2] * s[3],
                             s[1] == 1 ? 0 : s[2] * s[3], s[3]};
  return [view, keys = a.kv_len](std::int64_t b, std::int64_t h, std::int64_t i, float* row) {
    const float* add = view.at(b, h, i);
    for (std::int64_t j = 0; j < keys; ++j) row[j] += add[j];
  };
}

}  // namespace

Tensor run_ms_attention(OpContext& c, const MsAttention& a, Tensor* scores) {
  const std::int64_t width = element_count(Shape{a.heads, a.v_size});
  Tensor y(DataType::float32, {a.batch, a.q_len, width});
  AttentionProblem<float> p;
  p.batch = a.batch, p.heads = p.kv_heads = a.heads;
  p.q_len = a.q_len, p.kv_len = a.kv_len, p.size = a.size, p.v_size = a.v_size;
  p.q = a.q, p.k = a.k, p.v = a.v;
  p.out = static_cast<float*>(y.mutable_data());
  p.out_batch = element_count(Shape{a.q_len, width}), p.out_head = a.v_size, p.out_row = width;
  p.scale = a.scale != 0.0F ? a.scale : 1.0F / std::sqrt(static_cast<float>(std::max<std::int64_t>(1, a.size)));
  p.stop = &c.stop();
  if (a.causal) {
    p.visible = [past = a.past_len](std::int64_t, std::int64_t i) {
      return std::pair<std::int64_t, std::int64_t>(0, past + i + 1);
    };
  }
  Tensor held;
  const RowHook mask = mask_hook(c, a);
  const RowHook bias = bias_hook(c, a, held);
  if (mask || bias) {
    p.add_bias = [&](std::int64_t b, std::int64_t h, std::int64_t i, float* row) {
      if (mask) mask(b, h, i, row);
      if (bias) bias(b, h, i, row);
    };
  }
  if (scores != nullptr) {
    *scores = Tensor(DataType::float32, {a.batch, a.heads, a.q_len, a.kv_len});
    auto* to = static_cast<float*>(scores->mutable_data());
    p.see_masked = [to, &a](std::int64_t b, std::int64_t h, std::int64_t i, const float* row) {
      float* at = to + ((b * a.heads + h) * a.q_len + i) * a.kv_len;
      // A key in the future counts as the lowest finite number, not as -infinity: the scores stay finite.
      for (std::int64_t j = 0; j < a.kv_len; ++j) at[j] = std::max(row[j], std::numeric_limits<float>::lowest());
    };
  }
  attend(p);
  return y;
}

}  // namespace sdx::ops
