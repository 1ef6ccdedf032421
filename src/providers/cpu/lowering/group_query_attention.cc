// com.microsoft GroupQueryAttention in float32: rotation of new queries and keys, the cache, attention.

#include <cmath>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/attention/paged.h"
#include "ops/attention/grouped_query.h"
#include "ops/attention/signatures.h"
#include "providers/cpu/attention_cache.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

using enum ops::GroupQueryIn::Slot;

struct GqaState : KernelState {
  std::int64_t batch = 0, length = 0, size = 0, past_capacity = 0, capacity = 0;
  std::int64_t angles = 0, positions = 0;  // columns and rows of cos_cache
  Shape bias;
};

// What only a run knows: the position that each batch entry has reached, and the rows of cos_cache for its tokens.
struct Progress {
  std::int64_t total = 0;
  std::vector<std::int64_t> past;
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> angles;
};

class GqaKernel : public Kernel {
 public:
  GqaKernel(const LowerContext& c, const ops::GroupQueryAttrs& a)
      : heads_(ops::head_counts(c.attrs())),
        packed_(!c.has_input(kKey)),
        rotary_(a.do_rotary),
        interleaved_(a.rotary_interleaved),
        causal_(a.causal),
        smooth_(a.smooth_softmax > 0),
        window_(std::max<std::int64_t>(0, a.local_window_size)),
        scale_(a.scale),
        softcap_(a.softcap),
        epsilon_(a.qk_norm_epsilon) {
    if (smooth_) zeros_.assign(static_cast<std::size_t>(heads_.q), 0.0F);
  }
  std::string_view name() const override { return "group-query-attention-f32"; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto s = std::make_unique<GqaState>();
    const Shape q = c.input_shape(kQuery);
    const std::int64_t parts = packed_ ? heads_.q + 2 * heads_.kv : heads_.q;
    if (q.size() != 3 || q[2] < parts || q[2] % parts != 0) {
      fail(ErrorCode::runtime_failure, "query is {}: its features do not divide into {} heads", to_string(q), parts);
    }
    s->batch = q[0], s->length = q[1], s->size = q[2] / parts;
    if (!packed_) {
      const Shape expected{s->batch, s->length, heads_.kv * s->size};
      if (c.input_shape(kKey) != expected || c.input_shape(kValue) != expected) {
        fail(ErrorCode::runtime_failure, "key and value must be {}, received {} and {}", to_string(expected),
             to_string(c.input_shape(kKey)), to_string(c.input_shape(kValue)));
      }
    }
    if (c.has_input(kPastKey)) {
      const Shape past = c.input_shape(kPastKey);
      s->past_capacity = past.size() == 4 ? past[2] : 0;
      const Shape expected{s->batch, heads_.kv, s->past_capacity, s->size};
      if (past != expected || c.input_shape(kPastValue) != expected) {
        fail(ErrorCode::runtime_failure, "past_key and past_value must be [{},{},past,{}], received {} and {}", s->batch,
             heads_.kv, s->size, to_string(past), to_string(c.input_shape(kPastValue)));
      }
    }
    s->capacity = c.output_shape(1)[2];
    if (rotary_) {
      const Shape cos = c.input_shape(kCos);
      if (cos.size() != 2 || cos != c.input_shape(kSin) || cos[1] * 2 > s->size) {
        fail(ErrorCode::runtime_failure, "cos_cache and sin_cache must be [positions, up to {}], received {} and {}", s->size / 2,
             to_string(cos), to_string(c.input_shape(kSin)));
      }
      s->positions = cos[0], s->angles = cos[1];
    }
    for (const std::size_t i : {kQNorm, kKNorm}) {
      if (c.has_input(i) && element_count(c.input_shape(i)) != s->size)
        fail(ErrorCode::runtime_failure, "q_norm_weight and k_norm_weight must have {} elements, received {}", s->size,
             to_string(c.input_shape(i)));
    }
    if (c.has_input(kSink) && element_count(c.input_shape(kSink)) != heads_.q)
      fail(ErrorCode::runtime_failure, "head_sink must have {} elements, received {}", heads_.q, to_string(c.input_shape(kSink)));
    if (c.has_input(kBias)) s->bias = c.input_shape(kBias);
    if (rotary_ || c.has_input(kQNorm))
      c.workspace_bytes = byte_size(DataType::float32, s->batch * s->length * heads_.q * s->size);
    return s;
  }

  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const GqaState*>(c.state);
    const Progress p = progress(c, s);
    if (c.output(0).size() == 0 && c.output(1).size() == 0) return;
    const std::int64_t row = packed_ ? (heads_.q + 2 * heads_.kv) * s.size : heads_.q * s.size;
    const Rows query{c.in<float>(kQuery), s.length * row, s.size, row};
    const std::int64_t kv_row = packed_ ? row : heads_.kv * s.size;
    const Rows key{packed_ ? query.data + heads_.q * s.size : c.in<float>(kKey), s.length * kv_row, s.size, kv_row};
    const Rows value{packed_ ? key.data + heads_.kv * s.size : c.in<float>(kValue), s.length * kv_row, s.size, kv_row};
    AttentionArgs a;
    a.batch = s.batch, a.heads = heads_.q, a.kv_heads = heads_.kv, a.queries = s.length, a.keys = s.capacity;
    a.head_size = a.v_head_size = s.size;
    a.q = query.data, a.q_batch = query.batch, a.q_head = query.head, a.q_row = query.row;
    if (rotary_ || c.has_input(kQNorm)) {
      a.q = static_cast<float*>(c.workspace);
      a.q_row = heads_.q * s.size, a.q_batch = s.length * a.q_row;
      prepare_queries(c, s, p, query, static_cast<float*>(c.workspace));
    }
    float *keys = c.out<float>(1), *values = c.out<float>(2);
    a.k = keys, a.v = values;
    a.k_row = a.v_row = s.size, a.k_head = a.v_head = s.capacity * s.size, a.k_batch = a.v_batch = heads_.kv * a.k_head;
    a.out = c.out<float>(0);
    a.out_head = s.size, a.out_row = heads_.q * s.size, a.out_batch = s.length * a.out_row;
    a.scale = scale_ != 0.0F ? scale_ : 1.0F / std::sqrt(static_cast<float>(s.size));
    a.softcap = softcap_;
    a.causal = causal_;
    a.window = window_;
    a.key_lengths = p.lengths.data();
    if (c.has_input(kBias)) {
      const Shape& m = s.bias;
      if (m.size() != 4 || (m[0] != 1 && m[0] != s.batch) || (m[1] != 1 && m[1] != heads_.q) || m[2] != s.length ||
          m[3] < p.total) {
        fail(ErrorCode::runtime_failure, "attention_bias must be [1 or {},1 or {},{},{}], received {}", s.batch, heads_.q,
             s.length, p.total, to_string(m));
      }
      a.mask = c.in<float>(kBias);
      a.mask_row = m[3], a.mask_head = m[1] == 1 ? 0 : m[2] * m[3], a.mask_batch = m[0] == 1 ? 0 : m[1] * m[2] * m[3];
    }
    if (c.has_input(kSink)) {
      a.sink = c.in<float>(kSink);
    } else if (smooth_) {
      a.sink = zeros_.data();
    }
    const auto join = [&](std::int64_t i) {
      join_head(c, s, p, kPastKey, key, true, i, keys);
      join_head(c, s, p, kPastValue, value, false, i, values);
    };
    if (grows_in_place(c, s, p)) return attend_in_place(s, p, a, keys, values, join);
    attend_joined(a, join, [&](std::int64_t b) { return p.past[static_cast<std::size_t>(b)]; });
  }

 private:
  // The new rows of one input, of `size` elements each: [batch][head][row].
  struct Rows {
    const float* data;
    std::int64_t batch, head, row;
    const float* at(std::int64_t b, std::int64_t h, std::int64_t r) const { return data + b * batch + h * head + r * row; }
  };

  // Tells whether each batch entry has a few new tokens that belong behind the rows in its own buffers.
  bool grows_in_place(const KernelContext& c, const GqaState& s, const Progress& p) const {
    constexpr std::int64_t kFewTokens = 8;
    if (s.length > kFewTokens || !causal_ || c.has_input(kBias) || !c.has_input(kPastKey)) return false;
    if (c.in<float>(kPastKey) != c.out<float>(1) || c.in<float>(kPastValue) != c.out<float>(2)) return false;
    for (std::size_t b = 0; b < p.past.size(); ++b) {
      if (p.past[b] + s.length != p.lengths[b]) return false;
    }
    return true;
  }

  // Reads the cache as blocks, one for each batch entry, because this kernel splits long pasts between threads, whatever the
  // number of heads.
  template <class Join>
  void attend_in_place(const GqaState& s, const Progress& p, const AttentionArgs& from, float* keys, float* values,
                       const Join& join) const {
    parallel_for(s.batch * heads_.kv, std::max<std::int64_t>(1, 16384 / (s.length * s.size)),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) join(i);
                 });
    std::vector<std::int64_t> starts;
    std::vector<std::int32_t> table;
    for (std::int64_t b = 0; b <= s.batch; ++b) {
      starts.push_back(b * s.length);
      table.push_back(static_cast<std::int32_t>(b));
    }
    PagedArgs a;
    a.heads = heads_.q, a.kv_heads = heads_.kv, a.head_size = s.size, a.block_size = s.capacity;
    a.keys.data = keys, a.values.data = values;
    a.texts = s.batch, a.starts = starts.data(), a.past = p.past.data(), a.table = table.data(), a.table_width = 1;
    a.q = from.q, a.q_row = from.q_row, a.out = from.out;
    a.scale = from.scale, a.softcap = from.softcap, a.window = from.window, a.sink = from.sink;
    paged_attention_f32(a);
  }

  Progress progress(const KernelContext& c, const GqaState& s) const {
    Progress p;
    const Tensor &seqlens = c.input(kSeqlens), &total = c.input(kTotal);
    if (seqlens.size() != s.batch || total.size() != 1)
      fail(ErrorCode::runtime_failure, "seqlens_k must be int32[{}] and total_sequence_length one number, received {} and {}",
           s.batch, seqlens.type_string(), total.type_string());
    p.total = *c.in<std::int32_t>(kTotal);
    if (p.total < s.length || std::max(p.total, s.past_capacity) != s.capacity) {
      fail(ErrorCode::runtime_failure, "total_sequence_length is {}, which does not fit {} new tokens and a cache for {}",
           p.total, s.length, s.capacity);
    }
    const bool prompt = s.length == p.total;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      const std::int64_t length = std::int64_t{c.in<std::int32_t>(kSeqlens)[b]} + 1, past = prompt ? 0 : length - s.length;
      if (length < 1 || length > p.total || past < 0 || past > s.past_capacity) {
        fail(ErrorCode::runtime_failure, "seqlens_k holds {}, which does not fit {} new tokens, a total of {} and {} cached rows",
             length - 1, s.length, p.total, s.past_capacity);
      }
      p.past.push_back(past);
      p.lengths.push_back(static_cast<std::int32_t>(length));
    }
    if (rotary_) find_angles(c, s, prompt, p);
    return p;
  }

  static void find_angles(const KernelContext& c, const GqaState& s, bool prompt, Progress& p) {
    const std::int64_t* ids = nullptr;
    if (c.has_input(kPositions)) {
      if (c.input(kPositions).size() < (prompt ? 1 : s.batch * s.length))
        fail(ErrorCode::runtime_failure, "position_ids must be int64[{},{}], received {}", s.batch, s.length,
             c.input(kPositions).type_string());
      ids = c.in<std::int64_t>(kPositions);
    }
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t i = 0; i < s.length; ++i) {
        std::int64_t at = p.past[static_cast<std::size_t>(b)] + i;
        // The first prompt takes only its starting position from position_ids; later steps take the position of every token.
        if (ids != nullptr) at = prompt ? ids[0] + i : ids[b * s.length + i];
        if (at < 0 || at >= s.positions)
          fail(ErrorCode::runtime_failure, "position {} is outside cos_cache, which has {} rows", at, s.positions);
        p.angles.push_back(at * s.angles);
      }
    }
  }

  // Normalises and rotates one new row of queries or keys, as far as the node asks for it.
  void prepare(const KernelContext& c, const GqaState& s, const Progress& p, const float* from, std::size_t norm,
               std::int64_t token, float* to) const {
    if (c.has_input(norm)) {
      double square = 0;
      for (std::int64_t d = 0; d < s.size; ++d) square += static_cast<double>(from[d]) * static_cast<double>(from[d]);
      const float factor = 1.0F / std::sqrt(static_cast<float>(square / static_cast<double>(s.size)) + epsilon_);
      const float* weight = c.in<float>(norm);
      for (std::int64_t d = 0; d < s.size; ++d) to[d] = from[d] * factor * weight[d];
      from = to;
    }
    if (rotary_) {
      const std::int64_t row = p.angles[static_cast<std::size_t>(token)];
      rotate_f32(from, s.size, 2 * s.angles, c.in<float>(kCos) + row, c.in<float>(kSin) + row, interleaved_, to);
    } else if (from != to) {
      std::copy_n(from, s.size, to);
    }
  }

  void prepare_queries(const KernelContext& c, const GqaState& s, const Progress& p, const Rows& query, float* to) const {
    const std::int64_t tokens = s.batch * s.length;
    parallel_for(tokens, std::max<std::int64_t>(1, 16384 / (heads_.q * s.size)), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        for (std::int64_t h = 0; h < heads_.q; ++h) {
          prepare(c, s, p, query.at(t / s.length, h, t % s.length), kQNorm, t, to + (t * heads_.q + h) * s.size);
        }
      }
    });
  }

  // Writes one key head: cached rows, new rows, zeros. Heads are numbered through all batch entries.
  void join_head(const KernelContext& c, const GqaState& s, const Progress& p, std::size_t past_input, const Rows& fresh,
                 bool is_key, std::int64_t i, float* all) const {
    const std::int64_t b = i / heads_.kv, past = p.past[static_cast<std::size_t>(b)];
    float* head = all + i * s.capacity * s.size;
    bool same = false;  // a caller may have bound both to one buffer: then what lies behind the tokens stays as it is
    if (c.has_input(past_input)) {
      const float* old = c.in<float>(past_input) + i * s.past_capacity * s.size;
      same = old == head;
      if (!same) std::copy_n(old, past * s.size, head);
    }
    float* to = head + past * s.size;
    for (std::int64_t r = 0; r < s.length; ++r, to += s.size) {
      const float* from = fresh.at(b, i % heads_.kv, r);
      if (is_key) {
        prepare(c, s, p, from, kKNorm, b * s.length + r, to);
      } else {
        std::copy_n(from, s.size, to);
      }
    }
    if (!same) std::fill(to, head + s.capacity * s.size, 0.0F);
  }

  ops::HeadCounts heads_;
  bool packed_, rotary_, interleaved_, causal_, smooth_;
  std::int64_t window_;
  float scale_, softcap_, epsilon_;
  std::vector<float> zeros_;  // the sinks of smooth softmax
};

std::unique_ptr<Kernel> make_gqa(LowerContext& c) {
  const auto attr = ops::parse<ops::GroupQueryAttrs>(c);
  for (const std::size_t i : {kQuery, kKey, kValue, kPastKey, kPastValue, kCos, kSin, kBias, kSink, kQNorm, kKNorm}) {
    if (c.has_input(i) && c.dtype(i) != DataType::float32) return c.refuse("not float32");
  }
  if (c.has_input(kKey) != c.has_input(kValue) || c.has_input(kPastKey) != c.has_input(kPastValue))
    return c.refuse("only one of key and value is given");
  if (!c.has_output(1) || !c.has_output(2)) return c.refuse("the caches are not requested");
  if (c.has_output(3)) return c.refuse("the scores are requested");
  if (attr.quantised()) return c.refuse("the cache is quantised");
  if (attr.sliding_window_cache) return c.refuse("the cache is a window");
  if (attr.local_window_size == 0) return c.refuse("an empty window");
  if (c.dtype(kSeqlens) != DataType::int32 || c.dtype(kTotal) != DataType::int32) return c.refuse("lengths are not int32");
  if (c.has_input(kPositions) && c.dtype(kPositions) != DataType::int64) return c.refuse("positions are not int64");
  if (attr.do_rotary && (!c.has_input(kCos) || !c.has_input(kSin)))
    return c.refuse("the caches of cosines and sines are missing");
  return std::make_unique<GqaKernel>(c, attr);
}

}  // namespace

void register_kernels_group_query_attention(KernelTable& t) {
  t.add("com.microsoft", "GroupQueryAttention", "group-query-attention-f32", 10, make_gqa);
}

}  // namespace sdx::cpu
