// Attention of ai.onnx 23 to 25 and of sdx in float32, without the matrix of scores.

#include "kernels/cpu/attention/attention.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "ops/attention/signatures.h"
#include "ops/tensor/axes.h"
#include "providers/cpu/attention_cache.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

using enum ops::AttentionIn::Slot;

Heads heads_of(const Shape& s, std::int64_t count) {
  if (s.size() == 4) return {s[0], s[1], s[2], s[3], false};
  if (s.size() != 3 || count < 1 || s[2] % count != 0) {
    fail(ErrorCode::runtime_failure, "{} cannot be split into {} heads", to_string(s), count);
  }
  return {s[0], count, s[1], s[2] / count, true};
}

struct AttentionState : KernelState {
  Heads q, k, v;
  std::int64_t past = 0, total = 0;
  // The mask's extents, four of them, and where in the workspace it goes in its additive form.
  std::int64_t mask[4] = {1, 1, 1, 0};
  bool convert_mask = false;
  std::size_t keys_at = 0, values_at = 0;  // bytes in the workspace, where no output takes them
};

class AttentionKernel : public Kernel {
 public:
  AttentionKernel(const LowerContext& c, const ops::AttentionAttrs& a)
      : q_heads_(a.q_num_heads),
        kv_heads_(a.kv_num_heads),
        causal_(a.causal),
        left_(a.left_window),
        softcap_(a.softcap),
        boolean_(c.has_input(kMask) && c.dtype(kMask) == DataType::boolean),
        scale_(a.scale) {}
  std::string_view name() const override { return "attention-f32"; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto s = std::make_unique<AttentionState>();
    s->q = heads_of(c.input_shape(kQ), q_heads_);
    s->k = heads_of(c.input_shape(kK), kv_heads_);
    s->v = heads_of(c.input_shape(kV), kv_heads_);
    const Heads &q = s->q, &k = s->k, &v = s->v;
    if (k.batch != q.batch || v.batch != q.batch || v.heads != k.heads || v.rows != k.rows || k.size != q.size || k.heads == 0 ||
        q.heads % k.heads != 0) {
      fail(ErrorCode::runtime_failure, "Q {}, K {} and V {} do not fit together", to_string(c.input_shape(kQ)),
           to_string(c.input_shape(kK)), to_string(c.input_shape(kV)));
    }
    if (c.has_input(kPastKey)) {
      const Shape pk = c.input_shape(kPastKey), pv = c.input_shape(kPastValue);
      if (pk.size() != 4 || pk != Shape{k.batch, k.heads, pk[2], k.size} || pv != Shape{v.batch, v.heads, pk[2], v.size}) {
        fail(ErrorCode::runtime_failure, "the caches {} and {} do not fit K and V", to_string(pk), to_string(pv));
      }
      s->past = pk[2];
    }
    s->total = s->past + k.rows;
    std::size_t bytes = 0;
    if (c.has_input(kMask)) bytes = resolve_mask(c, *s);
    // Caches that are not requested.
    const auto room = [&](std::size_t output, const Heads& h) {
      const std::size_t at = bytes;
      const bool wanted = output < c.outputs.size() && c.outputs[output] != nullptr;
      if (s->past > 0 && !wanted) bytes += (byte_size(DataType::float32, h.batch * h.heads * s->total * h.size) + 63) / 64 * 64;
      return at;
    };
    s->keys_at = room(kK, k);
    s->values_at = room(kV, v);
    c.workspace_bytes = bytes;
    return s;
  }

  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const AttentionState*>(c.state);
    auto* workspace = static_cast<std::byte*>(c.workspace);
    AttentionArgs a;
    a.batch = s.q.batch, a.heads = s.q.heads, a.kv_heads = s.k.heads;
    a.queries = s.q.rows, a.keys = s.total, a.head_size = s.q.size, a.v_head_size = s.v.size;
    a.q = c.in<float>(kQ);
    a.q_batch = s.q.batch_step(), a.q_head = s.q.head_step(), a.q_row = s.q.row_step();
    const Cached k = cached(c, s, kK, s.k, workspace + s.keys_at), v = cached(c, s, kV, s.v, workspace + s.values_at);
    a.k = k.data(), a.k_batch = k.batch, a.k_head = k.head, a.k_row = k.row;
    a.v = v.data(), a.v_batch = v.batch, a.v_head = v.head, a.v_row = v.row;
    a.out = c.out<float>(0);
    const Heads out{s.q.batch, s.q.heads, s.q.rows, s.v.size, s.q.flat};
    a.out_batch = out.batch_step(), a.out_head = out.head_step(), a.out_row = out.row_step();
    a.scale = scale_.value_or(1.0F / std::sqrt(static_cast<float>(std::max<std::int64_t>(1, s.q.size))));
    a.softcap = softcap_;
    a.causal = causal_;
    a.causal_offset = s.past;
    a.window = left_ >= 0 && left_ < s.total + s.q.rows ? left_ + 1 : 0;
    if (c.has_input(kMask)) {
      a.mask = s.convert_mask ? additive_mask(c, s, workspace) : c.in<float>(kMask);
      const std::int64_t *m = s.mask, width = s.total;
      a.mask_row = m[2] == 1 ? 0 : width;
      a.mask_head = m[1] == 1 ? 0 : m[2] * width;
      a.mask_batch = m[0] == 1 ? 0 : m[1] * m[2] * width;
    }
    if (c.output(0).size() == 0) a.queries = 0;
    if (!k.joins() && !v.joins()) return attention_f32(a);
    const auto join = [&](std::int64_t i) {
      k.join(i);
      v.join(i);
    };
    attend_joined(a, join, [&](std::int64_t) { return a.causal_offset; });
  }

 private:
  // Keys or values as attention reads them: the input itself, or `all`, which join() makes of cache and input.
  struct Cached {
    const float* fresh = nullptr;
    const float* past = nullptr;
    float* all = nullptr;
    Heads from;
    std::int64_t past_rows = 0;
    std::int64_t batch = 0, head = 0, row = 0;

    bool joins() const { return all != nullptr; }
    const float* data() const { return all != nullptr ? all : fresh; }
    // Of batch entry and head number i.
    void join(std::int64_t i) const {
      if (all == nullptr) return;
      const std::int64_t old = past_rows * from.size;
      float* to = all + i * head;
      if (old > 0) to = std::copy_n(past + i * old, old, to);
      const float* at = fresh + i / from.heads * from.batch_step() + i % from.heads * from.head_step();
      for (std::int64_t r = 0; r < from.rows; ++r) to = std::copy_n(at + r * from.row_step(), from.size, to);
    }
  };

  std::size_t resolve_mask(ResolveContext& c, AttentionState& s) const {
    Shape m = c.input_shape(kMask);
    while (m.size() < 4) m.insert(m.begin(), 1);
    const bool fits = m.size() == 4 && (m[0] == 1 || m[0] == s.q.batch) && (m[1] == 1 || m[1] == s.q.heads) &&
                      (m[2] == 1 || m[2] == s.q.rows) && m[3] <= s.total;
    if (!fits) {
      fail(ErrorCode::runtime_failure, "attn_mask {} does not broadcast to [{},{},{},{}]", to_string(m), s.q.batch, s.q.heads,
           s.q.rows, s.total);
    }
    std::copy(m.begin(), m.end(), s.mask);
    s.convert_mask = boolean_ || m[3] < s.total;
    return s.convert_mask ? (byte_size(DataType::float32, m[0] * m[1] * m[2] * s.total) + 63) / 64 * 64 : 0;
  }

  // Booleans as 0 and -inf; keys beyond the mask's end are ignored.
  const float* additive_mask(const KernelContext& c, const AttentionState& s, std::byte* workspace) const {
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    auto* out = reinterpret_cast<float*>(workspace);
    const std::int64_t rows = s.mask[0] * s.mask[1] * s.mask[2], width = s.mask[3];
    for (std::int64_t i = 0; i < rows; ++i) {
      float* to = out + i * s.total;
      if (boolean_) {
        const bool* see = c.in<bool>(kMask) + i * width;
        for (std::int64_t j = 0; j < width; ++j) to[j] = see[j] ? 0.0F : kNever;
      } else {
        std::copy_n(c.in<float>(kMask) + i * width, width, to);
      }
      std::fill(to + width, to + s.total, kNever);
    }
    return out;
  }

  static Cached cached(const KernelContext& c, const AttentionState& s, std::size_t index, const Heads& h, std::byte* spare) {
    Cached out;
    out.fresh = c.in<float>(index);
    out.from = h;
    out.batch = h.batch_step(), out.head = h.head_step(), out.row = h.row_step();
    const bool wanted = c.has_output(index);
    if (!wanted && s.past == 0) return out;
    out.all = wanted ? c.out<float>(index) : reinterpret_cast<float*>(spare);
    out.past = s.past > 0 ? c.in<float>(index + kPastKey - kK) : nullptr;
    out.past_rows = s.past;
    out.row = h.size, out.head = s.total * h.size, out.batch = h.heads * out.head;
    return out;
  }

  std::int64_t q_heads_, kv_heads_;
  bool causal_;
  std::int64_t left_;
  float softcap_;
  bool boolean_;
  std::optional<float> scale_;
};

std::unique_ptr<Kernel> make_attention(LowerContext& c) {
  const auto attr = ops::parse<ops::AttentionAttrs>(c);
  for (const std::size_t i : {kQ, kK, kV, kPastKey, kPastValue}) {
    if (c.has_input(i) && c.dtype(i) != DataType::float32) return c.refuse("not float32");
  }
  if (c.has_input(kMask) && c.dtype(kMask) != DataType::float32 && c.dtype(kMask) != DataType::boolean) {
    return c.refuse("the mask is neither float32 nor bool");
  }
  if (c.has_input(kPastKey) != c.has_input(kPastValue)) return c.refuse("only one of the caches is given");
  if (c.has_output(3)) return c.refuse("the scores are requested");
  if (c.has_input(kNonpad)) return c.refuse("each batch entry has a length of its own");
  if (attr.right_window != -1) return c.refuse("a window to the right");
  if (attr.left_window < -1) return c.refuse("a negative window");
  return std::make_unique<AttentionKernel>(c, attr);
}

}  // namespace

void register_kernels_attention(KernelTable& t) {
  t.add("", "Attention", "attention-f32", 10, make_attention);
  t.add("sdx", "Attention", "attention-f32", 10, make_attention);
}

}  // namespace sdx::cpu
