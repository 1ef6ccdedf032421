// Attention of ai.onnx 23 to 25 and of sdx in float32, without the matrix of scores.

#include "kernels/cpu/attention/attention.h"

#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/attention/attention_panels.h"
#include "kernels/cpu/attention/attention_steps.h"
#include "kernels/cpu/elements/functions.h"
#include "ops/attention/signatures.h"
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

using Extents = std::array<std::int64_t, 4>;  // of what broadcasts to [batch, heads, queries, keys]

// Returns a term whose last axis has every element, as kernels read it; the other axes broadcast.
template <class T>
ScoreTerm<T> term_of(const Extents& e, const T* data) {
  return {data, e[0] == 1 ? 0 : e[1] * e[2] * e[3], e[1] == 1 ? 0 : e[2] * e[3], e[2] == 1 ? 0 : e[3], e[3] == 1 ? 0 : 1};
}

struct AttentionState : KernelState {
  Heads q, k, v;
  std::int64_t batch = 0, past = 0, total = 0;
  Extents mask{1, 1, 1, 0}, see{1, 1, 1, 1}, hidden{1, 1, 1, 1};
  // The extents of the mask in its additive form, in which keys that `see` hides are -inf. `make_mask`: it is made at the
  // beginning of the workspace.
  Extents added{1, 1, 1, 0};
  bool make_mask = false;
  std::size_t odd_at = 0;                  // bytes in the workspace: AttentionArgs::odd
  std::size_t keys_at = 0, values_at = 0;  // where no output takes them
  std::size_t distances_at = 0;            // what distances subtract: [heads, queries + keys - 1]
};

class AttentionKernel : public Kernel {
 public:
  AttentionKernel(const LowerContext& c, const ops::AttentionAttrs& a)
      : q_heads_(a.q_num_heads),
        kv_heads_(a.kv_num_heads),
        causal_(a.causal),
        left_(a.left_window),
        right_(a.right_window),
        softcap_(a.softcap),
        boolean_(c.has_input(kMask) && c.dtype(kMask) == DataType::boolean),
        by_steps_(a.by_steps),
        zero_nan_(a.zero_nan),
        q_scale_(a.q_scale),
        k_scale_(a.k_scale),
        one_serves_all_(c.node().domain == "sdx" && !c.has_input(kPastKey) && !c.has_output(kK) && !c.has_output(kV)),
        scale_(a.scale),
        slopes_(a.slopes.begin(), a.slopes.end()) {}
  std::string_view name() const override { return "attention-f32"; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto s = std::make_unique<AttentionState>();
    s->q = heads_of(c.input_shape(kQ), q_heads_);
    s->k = heads_of(c.input_shape(kK), kv_heads_);
    s->v = heads_of(c.input_shape(kV), kv_heads_);
    const Heads &q = s->q, &k = s->k, &v = s->v;
    s->batch = !one_serves_all_ || q.batch != 1 ? q.batch : k.batch != 1 ? k.batch : v.batch;
    const auto serves = [&](const Heads& h) { return h.batch == s->batch || (one_serves_all_ && h.batch == 1); };
    if (!serves(q) || !serves(k) || !serves(v) || v.heads != k.heads || v.rows != k.rows || k.size != q.size || k.heads == 0 ||
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
    std::size_t bytes = resolve_masks(c, *s);
    s->odd_at = bytes;
    if (by_steps_) bytes += (byte_size(DataType::uint8, s->batch * q.heads * q.rows) + 63) / 64 * 64;
    // Caches that are no outputs lie in the workspace.
    const auto room = [&](std::size_t output, const Heads& h) {
      const std::size_t at = bytes;
      const bool wanted = output < c.outputs.size() && c.outputs[output] != nullptr;
      if (s->past > 0 && !wanted) bytes += (byte_size(DataType::float32, h.batch * h.heads * s->total * h.size) + 63) / 64 * 64;
      return at;
    };
    s->keys_at = room(kK, k);
    s->values_at = room(kV, v);
    s->distances_at = bytes;
    bytes += resolve_texts(c, *s);
    c.workspace_bytes = bytes;
    return s;
  }

  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const AttentionState*>(c.state);
    auto* workspace = static_cast<std::byte*>(c.workspace);
    AttentionArgs a;
    a.batch = s.batch, a.heads = s.q.heads, a.kv_heads = s.k.heads;
    a.queries = s.q.rows, a.keys = s.total, a.head_size = s.q.size, a.v_head_size = s.v.size;
    a.q = c.in<float>(kQ);
    a.q_batch = s.q.batch == s.batch ? s.q.batch_step() : 0, a.q_head = s.q.head_step(), a.q_row = s.q.row_step();
    const Cached k = cached(c, s, kK, s.k, workspace + s.keys_at), v = cached(c, s, kV, s.v, workspace + s.values_at);
    a.k = k.data(), a.k_batch = s.k.batch == s.batch ? k.batch : 0, a.k_head = k.head, a.k_row = k.row;
    a.v = v.data(), a.v_batch = s.v.batch == s.batch ? v.batch : 0, a.v_head = v.head, a.v_row = v.row;
    a.out = c.out<float>(0);
    const Heads out{s.batch, s.q.heads, s.q.rows, s.v.size, s.q.flat};
    a.out_batch = out.batch_step(), a.out_head = out.head_step(), a.out_row = out.row_step();
    a.scale = scale_.value_or(1.0F / std::sqrt(static_cast<float>(std::max<std::int64_t>(1, s.q.size))));
    a.softcap = softcap_;
    a.causal = causal_;
    a.causal_offset = s.past;
    a.window = left_ >= 0 && left_ < s.total + s.q.rows ? left_ + 1 : 0;
    a.right = right_ >= 0 && right_ < s.total + s.q.rows ? right_ : -1;
    std::vector<std::int32_t> lengths;
    if (c.has_input(kNonpad)) {
      const auto* given = c.in<std::int64_t>(kNonpad);
      for (std::int64_t b = 0; b < s.batch; ++b)
        lengths.push_back(static_cast<std::int32_t>(std::clamp<std::int64_t>(given[b], 0, s.total)));
      a.key_lengths = lengths.data();
    }
    // A mask beside is_causal hides the same keys by numbers below -1e9 (passes/fuse/attention_masks.cc). Keys after a query can
    // only be left out if they weigh nothing: if all scores are far smaller than that, and values are finite.
    if (by_steps_ && causal_ && c.has_input(kMask)) {
      constexpr float kTame = 1e3F;
      a.causal = within(c, kQ, kTame) && within(c, kK, kTame) && within(c, kV, std::numeric_limits<float>::max());
    }
    if (!(a.causal && by_steps_) && (c.has_input(kMask) || c.has_input(kSee))) {
      const ScoreTerm<float> m = term_of(s.added, s.make_mask ? additive_mask(c, s, workspace) : c.in<float>(kMask));
      a.mask = m.data, a.mask_batch = m.batch, a.mask_head = m.head, a.mask_row = m.row;
    }
    if (!slopes_.empty()) subtract_distances(s, reinterpret_cast<float*>(workspace + s.distances_at), a);
    if (c.output(0).size() == 0) a.queries = 0;
    if (by_steps_) {
      a.odd = reinterpret_cast<std::uint8_t*>(workspace + s.odd_at);
      a.odd_row = 1, a.odd_head = a.queries, a.odd_batch = a.heads * a.queries;
      std::fill_n(a.odd, a.batch * a.odd_batch, std::uint8_t{0});
      if (c.has_input(kSee)) a.least_score = kLeastScore;
    }
    attend(a, k, v);
    // What replaces hidden scores is arbitrary if another mask was added to it: then every row is computed step by step.
    if (c.has_input(kSee) && !lies_low(c.input(kHidden))) std::fill_n(a.odd, a.batch * a.odd_batch, std::uint8_t{1});
    if (by_steps_) attention_by_steps_f32(a, steps_of(c, s));
  }

 private:
  // Values of `hidden` lie below this (passes/fuse/attention_masks.cc): beside a larger score, keys that `see` hides weigh
  // nothing.
  static constexpr float kLeastScore = -1e28F;

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
    // Joins the rows of one head: number i, counted through all batch entries.
    void join(std::int64_t i) const {
      if (all == nullptr) return;
      const std::int64_t old = past_rows * from.size;
      float* to = all + i * head;
      if (old > 0) to = std::copy_n(past + i * old, old, to);
      const float* at = fresh + i / from.heads * from.batch_step() + i % from.heads * from.head_step();
      for (std::int64_t r = 0; r < from.rows; ++r) to = std::copy_n(at + r * from.row_step(), from.size, to);
    }
  };

  // Checks what texts of different lengths have, and returns the workspace for distances.
  std::size_t resolve_texts(ResolveContext& c, const AttentionState& s) const {
    constexpr std::int64_t kMostKeys = std::int64_t{1} << 31;
    if (c.has_input(kNonpad) && (element_count(c.input_shape(kNonpad)) != s.batch || s.total >= kMostKeys)) {
      fail(ErrorCode::runtime_failure, "nonpad_kv_seqlen is {} for {} texts of {} keys", to_string(c.input_shape(kNonpad)),
           s.batch, s.total);
    }
    if (slopes_.empty()) return 0;
    if (static_cast<std::int64_t>(slopes_.size()) != s.q.heads)
      fail(ErrorCode::runtime_failure, "{} slopes are given for {} heads", slopes_.size(), s.q.heads);
    return byte_size(DataType::float32, s.q.heads * (s.q.rows + s.total));
  }

  // A mask whose rows overlap: that of each query begins one element before that of the query before it.
  void subtract_distances(const AttentionState& s, float* to, AttentionArgs& a) const {
    const std::int64_t last = s.q.rows - 1, width = s.q.rows + s.total;
    for (std::size_t h = 0; h < slopes_.size(); ++h) {
      float* const row = to + static_cast<std::int64_t>(h) * width;
      for (std::int64_t d = 0; d < width; ++d) row[d] = -slopes_[h] * static_cast<float>(std::abs(s.past + last - d));
    }
    a.mask = to + std::max<std::int64_t>(0, last);
    a.mask_row = -1, a.mask_head = width, a.mask_batch = 0;
  }

  static void attend(const AttentionArgs& a, const Cached& k, const Cached& v) {
    if (!k.joins() && !v.joins()) return attention_f32(a);
    const auto join = [&](std::int64_t i) {
      k.join(i);
      v.join(i);
    };
    attend_joined(a, join, [&](std::int64_t) { return a.causal_offset; });
  }

  // Tells whether all replaced scores lie so far below kLeastScore that they weigh nothing beside a score above it.
  static bool lies_low(const Tensor& hidden) {
    const auto* const x = static_cast<const float*>(hidden.data());
    return std::all_of(x, x + hidden.size(), [](float v) { return v < 10 * kLeastScore; });
  }

  // Tells whether all magnitudes of an input, and of its cache, are at most `most`.
  static bool within(const KernelContext& c, std::size_t input, float most) {
    std::atomic<bool> all{true};
    const auto look = [&](const Tensor& t) {
      const auto* const x = static_cast<const float*>(t.data());
      parallel_for(t.size(), std::int64_t{1} << 16, [&](std::int64_t begin, std::int64_t end) {
        if (all.load(std::memory_order_relaxed) && !all_within(x + begin, end - begin, most)) all = false;
      });
    };
    look(c.input(input));
    const std::size_t past = input + kPastKey - kK;
    if (input != kQ && c.has_input(past)) look(c.input(past));
    return all;
  }

  AttentionSteps steps_of(const KernelContext& c, const AttentionState& s) const {
    AttentionSteps steps;
    steps.q_scale = q_scale_, steps.k_scale = k_scale_, steps.zero_nan = zero_nan_;
    if (c.has_input(kMask)) steps.add = term_of(s.mask, c.in<float>(kMask));
    if (!c.has_input(kSee)) return steps;
    steps.see = term_of(s.see, c.in<bool>(kSee));
    steps.hidden = term_of(s.hidden, c.in<float>(kHidden));
    return steps;
  }

  // Returns the extents of an input that broadcasts to the scores. With `shorter`, the last axis may be shorter than the number
  // of keys; otherwise it may be 1.
  Extents extents_of(ResolveContext& c, const AttentionState& s, std::size_t input, bool shorter) const {
    Shape m = c.input_shape(input);
    while (m.size() < 4) m.insert(m.begin(), 1);
    const bool fits = m.size() == 4 && (m[0] == 1 || m[0] == s.batch) && (m[1] == 1 || m[1] == s.q.heads) &&
                      (m[2] == 1 || m[2] == s.q.rows) && (shorter ? m[3] <= s.total : m[3] == 1 || m[3] == s.total);
    if (!fits) {
      fail(ErrorCode::runtime_failure, "{} {} does not broadcast to [{},{},{},{}]", input == kMask ? "attn_mask" : "a mask",
           to_string(m), s.batch, s.q.heads, s.q.rows, s.total);
    }
    return {m[0], m[1], m[2], m[3]};
  }

  // Sets the extents of all masks, and returns the size of the workspace that they need.
  std::size_t resolve_masks(ResolveContext& c, AttentionState& s) const {
    if (c.has_input(kMask)) s.mask = extents_of(c, s, kMask, !by_steps_);
    if (c.has_input(kSee)) {
      s.see = extents_of(c, s, kSee, false);
      s.hidden = extents_of(c, s, kHidden, false);
    }
    if (!c.has_input(kMask) && !c.has_input(kSee)) return 0;
    for (std::size_t i = 0; i < 3; ++i) s.added[i] = s.mask[i] == 1 ? s.see[i] : s.mask[i];
    s.added[3] = s.total;
    s.make_mask = boolean_ || c.has_input(kSee) || s.mask[3] < s.total;
    return s.make_mask ? (byte_size(DataType::float32, s.added[0] * s.added[1] * s.added[2] * s.total) + 63) / 64 * 64 : 0;
  }

  // Copies `from` where `see` holds, and writes -inf elsewhere. Steps are 0 or 1.
  static void keep_seen(const bool* see, std::int64_t see_step, const float* from, std::int64_t step, float* to, std::int64_t n) {
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    select_row(sizeof(float))(reinterpret_cast<const std::uint8_t*>(see), see_step, from, step, &kNever, 0, to, n);
  }

  // Returns the mask as numbers: true is 0, false -inf; keys beyond the mask's end and keys that `see` hides are -inf.
  const float* additive_mask(const KernelContext& c, const AttentionState& s, std::byte* workspace) const {
    auto* out = reinterpret_cast<float*>(workspace);
    const Extents& e = s.added;
    parallel_for(e[0] * e[1] * e[2], std::max<std::int64_t>(1, (std::int64_t{1} << 15) / std::max<std::int64_t>(1, s.total)),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     additive_row(c, s, i / e[2] / e[1], i / e[2] % e[1], i % e[2], out + i * s.total);
                   }
                 });
    return out;
  }

  void additive_row(const KernelContext& c, const AttentionState& s, std::int64_t b, std::int64_t h, std::int64_t i,
                    float* to) const {
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    const std::int64_t width = s.mask[3];
    if (!c.has_input(kMask)) {
      std::fill_n(to, s.total, 0.0F);
    } else if (boolean_) {
      constexpr float kZero = 0.0F;
      keep_seen(term_of(s.mask, c.in<bool>(kMask)).of(b, h, i), 1, &kZero, 0, to, width);
      std::fill(to + width, to + s.total, kNever);
    } else {
      const ScoreTerm<float> add = term_of(s.mask, c.in<float>(kMask));
      const bool one = by_steps_ && width == 1;  // for all keys
      if (one) std::fill_n(to, s.total, *add.of(b, h, i));
      if (!one) std::copy_n(add.of(b, h, i), width, to);
      if (!one) std::fill(to + width, to + s.total, kNever);
    }
    if (!c.has_input(kSee)) return;
    const ScoreTerm<bool> sees = term_of(s.see, c.in<bool>(kSee));
    keep_seen(sees.of(b, h, i), sees.key, to, 1, to, s.total);
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
  std::int64_t left_, right_;
  float softcap_;
  bool boolean_, by_steps_, zero_nan_;
  float q_scale_, k_scale_;
  bool one_serves_all_;  // along the batch
  std::optional<float> scale_;
  std::vector<float> slopes_;
};

std::unique_ptr<Kernel> make_attention(LowerContext& c) {
  const auto attr = ops::parse<ops::AttentionAttrs>(c);
  for (const std::size_t i : {kQ, kK, kV, kPastKey, kPastValue, kHidden}) {
    if (c.has_input(i) && c.dtype(i) != DataType::float32) return c.refuse("not float32");
  }
  if (c.has_input(kMask) && c.dtype(kMask) != DataType::float32 && c.dtype(kMask) != DataType::boolean) {
    return c.refuse("the mask is neither float32 nor bool");
  }
  if (c.has_input(kPastKey) != c.has_input(kPastValue)) return c.refuse("only one of the caches is given");
  if (c.has_input(kSee) != c.has_input(kHidden)) return c.refuse("only one of see and hidden is given");
  if (c.has_input(kSee) && !attr.by_steps) return c.refuse("keys are hidden, but not by steps");
  if (attr.by_steps && (attr.softcap > 0 || attr.left_window >= 0 || (attr.causal && !c.has_input(kMask)))) {
    return c.refuse("steps that single operators of attention do not have");
  }
  if (c.has_input(kMask) && attr.by_steps && c.dtype(kMask) == DataType::boolean) return c.refuse("a mask of bool by steps");
  if (c.has_output(3)) return c.refuse("the scores are requested");
  const bool limited = attr.causal || attr.left_window >= 0 || attr.right_window >= 0;
  if (c.has_input(kNonpad) && (attr.by_steps || c.has_input(kPastKey) || (limited && !attr.pads_behind)))
    return c.refuse("each batch entry has a length of its own");
  if (attr.by_steps && (attr.right_window >= 0 || !attr.slopes.empty())) return c.refuse("a window or distances by steps");
  if (!attr.slopes.empty() && c.has_input(kMask)) return c.refuse("a mask besides distances");
  if (attr.left_window < -1 || attr.right_window < -1) return c.refuse("a negative window");
  return std::make_unique<AttentionKernel>(c, attr);
}

}  // namespace

void register_kernels_attention(KernelTable& t) {
  t.add("", "Attention", "attention-f32", 10, make_attention);
  t.add("sdx", "Attention", "attention-f32", 10, make_attention);
}

}  // namespace sdx::cpu
