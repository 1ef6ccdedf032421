// com.microsoft MultiHeadAttention, Attention and their Decoder variants in float32: projection, biases, the cache, masks,
// attention.

#include <cmath>
#include <cstring>
#include <optional>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm/gemm.h"
#include "ops/attention/signatures.h"
#include "providers/cpu/attention_cache.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/late_packed.h"

namespace sdx::cpu {
namespace {

using enum ops::MultiHeadIn::Slot;

bool is_projected(const Node& node) { return node.op_type == "Attention" || node.op_type == "DecoderMaskedSelfAttention"; }

// Attention's weights [features, q + q + v].
struct Projection {
  LateMatrix weights;
  std::int64_t features = 0, q = 0, v = 0;
  std::int64_t columns() const { return 2 * q + v; }
};

// Rows of `size` elements somewhere in an input: element [b][h][r] begins at offset + b * batch + h * head + r * row.
struct Rows {
  std::int64_t offset = 0, batch = 0, head = 0, row = 0;
  std::int64_t at(std::int64_t b, std::int64_t h, std::int64_t r) const { return offset + b * batch + h * head + r * row; }
};

// Describes rows that follow each other. Extents of empty inputs may be anything, so element_count() refuses products that do not
// fit.
Rows flat_rows(std::int64_t rows, std::int64_t heads, std::int64_t size) {
  return {0, element_count(Shape{rows, heads, size}), size, element_count(Shape{heads, size})};
}
Rows stacked_rows(std::int64_t rows, std::int64_t heads, std::int64_t size) {
  return {0, element_count(Shape{heads, rows, size}), element_count(Shape{rows, size}), size};
}
// Describes the rows of part number `index` of [batch, rows, heads, parts, size].
Rows packed_rows(std::int64_t rows, std::int64_t heads, std::int64_t size, std::int64_t parts, std::int64_t index) {
  return {index * size, element_count(Shape{rows, heads, parts, size}), parts * size, element_count(Shape{heads, parts, size})};
}

struct MhaState : KernelState {
  std::int64_t batch = 0, queries = 0, size = 0, v_size = 0;
  std::int64_t fresh = 0;      // new keys
  std::int64_t past_rows = 0;  // of the cache that comes in
  std::int64_t capacity = 0;   // of the one that goes out
  bool cross = false;          // keys and values come as a whole cache
  std::size_t key_input = kQuery, value_input = kQuery;
  Rows q, k, v;
  Shape mask, attention_bias;
  std::size_t query_at = 0, keys_at = 0, values_at = 0, projected_at = 0;  // bytes in the workspace; the mask comes first
};

// Returns the bytes that a float32 tensor of this shape takes in the workspace.
std::size_t floats(const Shape& shape) { return (byte_size(DataType::float32, element_count(shape)) + 63) / 64 * 64; }

class MhaKernel : public Kernel {
 public:
  MhaKernel(const LowerContext& c, const ops::MultiHeadAttrs& a, std::optional<Projection> projection)
      : slots_(ops::MultiHeadIn::of(c.node().op_type)),
        projection_(std::move(projection)),
        heads_(a.num_heads),
        causal_(a.unidirectional),
        shared_(projection_ ? a.past_present_share_buffer : c.has_input(slots_.past_length)),
        scale_(a.scale),
        filter_(a.mask_filter_value) {}
  std::string_view name() const override { return projection_ ? "projected-attention-f32" : "multi-head-attention-f32"; }
  bool uses_input(std::size_t i) const override { return !projection_ || i != 1; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto s = std::make_unique<MhaState>();
    if (projection_) {
      resolve_projected(c, *s);
    } else {
      resolve_query(c, *s);
      if (c.has_input(kKey)) resolve_keys(c, *s);
    }
    s->capacity = s->fresh;
    if (projection_ && c.has_input(slots_.past_key)) {
      const Shape past = c.input_shape(slots_.past_key);
      s->past_rows = past.size() == 5 ? past[3] : 0;
      if (past != Shape{2, s->batch, heads_, s->past_rows, s->size} || s->size != s->v_size) {
        fail(ErrorCode::runtime_failure, "past must be [2,{},{},past,{}] with keys and values of one width, received {}",
             s->batch, heads_, s->size, to_string(past));
      }
      s->capacity = shared_ ? s->past_rows : s->past_rows + s->fresh;
    } else if (c.has_input(slots_.past_key) && !s->cross) {
      const Shape k = c.input_shape(slots_.past_key), v = c.input_shape(slots_.past_value);
      s->past_rows = k.size() == 4 ? k[2] : 0;
      if (k != Shape{s->batch, heads_, s->past_rows, s->size} || v != Shape{s->batch, heads_, s->past_rows, s->v_size}) {
        fail(ErrorCode::runtime_failure,
             "past_key and past_value must be [{0},{1},past,{2}] and [{0},{1},past,{3}], received {4} and {5}", s->batch, heads_,
             s->size, s->v_size, to_string(k), to_string(v));
      }
      s->capacity = shared_ ? s->past_rows : s->past_rows + s->fresh;
    }
    if (c.has_input(slots_.bias) && element_count(c.input_shape(slots_.bias)) != heads_ * (2 * s->size + s->v_size)) {
      fail(ErrorCode::runtime_failure, "bias must have {} elements, received {}", heads_ * (2 * s->size + s->v_size),
           to_string(c.input_shape(slots_.bias)));
    }
    if (c.has_input(slots_.attention_bias)) s->attention_bias = c.input_shape(slots_.attention_bias);
    std::size_t bytes = 0;
    if (c.has_input(slots_.mask)) {
      s->mask = c.input_shape(slots_.mask);
      const bool each_query = s->mask.size() > 2 || c.has_input(slots_.attention_bias);
      const std::int64_t heads = s->attention_bias.size() == 4 ? s->attention_bias[1] : 1;
      bytes = floats({s->batch, heads, each_query ? s->queries : 1, s->capacity});
    }
    s->query_at = bytes;
    if (c.has_input(slots_.bias)) bytes += floats({s->batch, s->queries, heads_, s->size});
    const auto room = [&](std::size_t output, std::int64_t size) {
      const std::size_t at = bytes;
      // Attention has one output for both caches.
      const std::size_t given = projection_ ? 1 : output;
      const bool wanted = given < c.outputs.size() && c.outputs[given] != nullptr;
      const bool joins = c.has_input(slots_.past_key) || c.has_input(slots_.bias);
      if (joins && !s->cross && !wanted) bytes += floats({s->batch, heads_, s->capacity, size});
      return at;
    };
    s->keys_at = room(1, s->size);
    s->values_at = room(2, s->v_size);
    s->projected_at = bytes;
    if (projection_) bytes += floats({s->batch, s->queries, projection_->columns()});
    c.workspace_bytes = bytes;
    return s;
  }

  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const MhaState*>(c.state);
    auto* workspace = static_cast<std::byte*>(c.workspace);
    const std::int64_t past = past_length(c, s), keys = past + s.fresh;
    AttentionArgs a;
    a.batch = s.batch, a.heads = a.kv_heads = heads_, a.queries = s.queries, a.keys = keys;
    a.head_size = s.size, a.v_head_size = s.v_size;
    const float* projected = nullptr;
    if (projection_) projected = project(c, s, reinterpret_cast<float*>(workspace + s.projected_at));
    a.q = (projected != nullptr ? projected : c.in<float>(kQuery)) + s.q.offset;
    a.q_batch = s.q.batch, a.q_head = s.q.head, a.q_row = s.q.row;
    const float* bias = c.has_input(slots_.bias) ? c.in<float>(slots_.bias) : nullptr;
    if (bias != nullptr) {
      auto* to = reinterpret_cast<float*>(workspace + s.query_at);
      const Rows rows = flat_rows(s.queries, heads_, s.size);
      add_to_queries(c, s, bias, to);
      a.q = to, a.q_batch = rows.batch, a.q_head = rows.head, a.q_row = rows.row;
    }
    const float* keys_bias = bias == nullptr || s.cross ? nullptr : bias + heads_ * s.size;
    const float* values_bias = keys_bias == nullptr ? nullptr : keys_bias + heads_ * s.size;
    Cache k, v;
    k.from = s.k, k.size = s.size, k.bias = keys_bias;
    v.from = s.v, v.size = s.v_size, v.bias = values_bias;
    k.fresh = projected != nullptr ? projected : c.in<float>(s.key_input);
    v.fresh = projected != nullptr ? projected : c.in<float>(s.value_input);
    k.past_length = v.past_length = past;
    place_caches(c, s, workspace, k, v);
    const Rows in_cache_k = k.all != nullptr ? stacked_rows(s.capacity, heads_, s.size) : s.k;
    const Rows in_cache_v = v.all != nullptr ? stacked_rows(s.capacity, heads_, s.v_size) : s.v;
    a.k = k.all != nullptr ? k.all : k.fresh + s.k.offset;
    a.k_batch = in_cache_k.batch, a.k_head = in_cache_k.head, a.k_row = in_cache_k.row;
    a.v = v.all != nullptr ? v.all : v.fresh + s.v.offset;
    a.v_batch = in_cache_v.batch, a.v_head = in_cache_v.head, a.v_row = in_cache_v.row;
    a.out = c.out<float>(0);
    a.out_head = s.v_size, a.out_row = heads_ * s.v_size, a.out_batch = s.queries * a.out_row;
    a.scale = scale_ != 0.0F ? scale_ : 1.0F / std::sqrt(static_cast<float>(s.size));
    a.causal = causal_;
    a.causal_offset = past;
    set_mask(c, s, keys, reinterpret_cast<float*>(workspace), a);
    if (c.output(0).size() == 0) a.queries = 0;
    if (k.all == nullptr && v.all == nullptr) return attention_f32(a);
    const auto join = [&](std::int64_t i) {
      k.join(s, heads_, i);
      v.join(s, heads_, i);
    };
    attend_joined(a, join, [&](std::int64_t) { return past; });
  }

 private:
  // Keys or values as attention reads them: the input itself, or `all`, where join() puts cached rows, new rows and their bias.
  struct Cache {
    const float* fresh = nullptr;
    const float* past = nullptr;
    float* all = nullptr;
    const float* bias = nullptr;
    Rows from;
    std::int64_t size = 0, past_length = 0;

    // Joins the rows of one head: number i, counted through all batch entries. Rows behind the new ones stay those of the
    // incoming cache.
    void join(const MhaState& s, std::int64_t heads, std::int64_t i) const {
      if (all == nullptr) return;
      float* to = all + i * s.capacity * size;
      const float* old = past != nullptr ? past + i * s.past_rows * size : nullptr;
      const bool copies = old != nullptr && old != to;  // a caller may have bound both to one buffer
      if (copies) std::memcpy(to, old, static_cast<std::size_t>(past_length * size) * sizeof(float));
      const std::int64_t b = i / heads, h = i % heads, end = past_length + s.fresh;
      for (std::int64_t r = 0; r < s.fresh; ++r) {
        const float* row = fresh + from.at(b, h, r);
        float* at = to + (past_length + r) * size;
        if (bias == nullptr) {
          std::copy_n(row, size, at);
        } else {
          for (std::int64_t d = 0; d < size; ++d) at[d] = row[d] + bias[h * size + d];
        }
      }
      if (copies) std::copy(old + end * size, old + std::max(end, s.capacity) * size, to + end * size);
    }
  };

  void resolve_query(ResolveContext& c, MhaState& s) const {
    const Shape q = c.input_shape(kQuery);
    const bool alone = !c.has_input(kKey), packed = q.size() == 5;
    const std::int64_t parts = alone && !packed ? 3 : 1;
    if (q.size() == 3 || packed) {
      s.batch = q[0], s.queries = q[1];
      s.size = s.v_size = packed ? q[4] : q[2] / (heads_ * parts);
    }
    const Shape expected =
        packed ? Shape{s.batch, s.queries, heads_, 3, s.size} : Shape{s.batch, s.queries, heads_ * parts * s.size};
    constexpr std::int64_t kWidest = std::int64_t{1} << 31;
    if (s.size < 1 || s.size > kWidest || q != expected || (packed && !alone)) {
      fail(ErrorCode::runtime_failure,
           "query must be [batch,tokens,{0}] or, with keys and values in it, [batch,tokens,3 x {0}] or "
           "[batch,tokens,{1},3,size], received {2}",
           heads_ * std::max<std::int64_t>(1, s.size), heads_, to_string(q));
    }
    s.fresh = s.queries;
    if (packed) {
      s.q = packed_rows(s.queries, heads_, s.size, 3, 0);
      s.k = packed_rows(s.queries, heads_, s.size, 3, 1);
      s.v = packed_rows(s.queries, heads_, s.size, 3, 2);
      return;
    }
    const std::int64_t width = heads_ * s.size;
    s.q = s.k = s.v = {0, element_count(Shape{s.queries, parts, width}), s.size, parts * width};
    s.k.offset = width, s.v.offset = 2 * width;
  }

  void resolve_keys(ResolveContext& c, MhaState& s) const {
    const Shape k = c.input_shape(kKey), v = c.has_input(kValue) ? c.input_shape(kValue) : Shape{};
    s.key_input = kKey, s.value_input = c.has_input(kValue) ? kValue : kKey;
    Shape expected_k, expected_v;
    if (k.size() == 5) {
      s.fresh = k[1], s.v_size = s.size;
      expected_k = {s.batch, s.fresh, heads_, 2, s.size};
      s.k = packed_rows(s.fresh, heads_, s.size, 2, 0);
      s.v = packed_rows(s.fresh, heads_, s.size, 2, 1);
    } else if (k.size() == 4) {
      s.cross = true;
      s.fresh = k[2], s.v_size = v.size() == 4 ? v[3] : 0;
      expected_k = {s.batch, heads_, s.fresh, s.size};
      expected_v = {s.batch, heads_, s.fresh, s.v_size};
      s.k = stacked_rows(s.fresh, heads_, s.size);
      s.v = stacked_rows(s.fresh, heads_, s.v_size);
    } else {
      s.fresh = k.size() == 3 ? k[1] : 0, s.v_size = v.size() == 3 ? v[2] / heads_ : 0;
      expected_k = {s.batch, s.fresh, heads_ * s.size};
      expected_v = {s.batch, s.fresh, heads_ * s.v_size};
      s.k = flat_rows(s.fresh, heads_, s.size);
      s.v = flat_rows(s.fresh, heads_, s.v_size);
    }
    if (k != expected_k || v != expected_v) {
      fail(ErrorCode::runtime_failure, "key and value must be {} and {}, received {} and {}", to_string(expected_k),
           expected_v.empty() ? "left out" : to_string(expected_v), to_string(k), v.empty() ? "none" : to_string(v));
    }
  }

  std::int64_t past_length(const KernelContext& c, const MhaState& s) const {
    if (s.past_rows == 0 || s.cross || !shared_) return s.past_rows;
    if (c.input(slots_.past_length).size() != 1) {
      fail(ErrorCode::runtime_failure, "past_sequence_length must be one number, received {}",
           c.input(slots_.past_length).type_string());
    }
    const std::int64_t past = *c.in<std::int32_t>(slots_.past_length);
    if (past < 0 || past > s.past_rows || s.fresh > s.past_rows - past) {
      fail(ErrorCode::runtime_failure, "past_sequence_length is {}: with {} new tokens it exceeds the cache's {} rows", past,
           s.fresh, s.past_rows);
    }
    return past;
  }

  // Sets where cached rows come from and where all rows go.
  void place_caches(const KernelContext& c, const MhaState& s, std::byte* workspace, Cache& k, Cache& v) const {
    if (c.has_input(slots_.past_key) && !s.cross) {
      k.past = c.in<float>(slots_.past_key);
      v.past = projection_ ? k.past + s.batch * heads_ * s.past_rows * s.size : c.in<float>(slots_.past_value);
    }
    if (projection_ && c.has_output(1)) {
      k.all = c.out<float>(1);
      v.all = k.all + s.batch * heads_ * s.capacity * s.size;
      return;
    }
    if (c.has_output(1)) k.all = c.out<float>(1);
    if (c.has_output(2)) v.all = c.out<float>(2);
    if (k.all == nullptr && (k.past != nullptr || k.bias != nullptr)) k.all = reinterpret_cast<float*>(workspace + s.keys_at);
    if (v.all == nullptr && (v.past != nullptr || v.bias != nullptr)) v.all = reinterpret_cast<float*>(workspace + s.values_at);
  }

  void resolve_projected(ResolveContext& c, MhaState& s) const {
    const Shape x = c.input_shape(kQuery);
    if (x.size() != 3 || x[2] != projection_->features) {
      fail(ErrorCode::runtime_failure, "input must be [batch,tokens,{}], received {}", projection_->features, to_string(x));
    }
    s.batch = x[0], s.queries = s.fresh = x[1];
    s.size = projection_->q / heads_, s.v_size = projection_->v / heads_;
    const std::int64_t columns = projection_->columns();
    s.q = s.k = s.v = {0, element_count(Shape{s.queries, columns}), s.size, columns};
    s.k.offset = projection_->q, s.v.offset = 2 * projection_->q;
    s.v.head = s.v_size;
  }

  const float* project(const KernelContext& c, const MhaState& s, float* to) const {
    GemmArgs g;
    g.m = s.batch * s.queries;
    g.n = g.ldc = projection_->columns();
    g.k = g.lda = projection_->features;
    g.a = c.in<float>(kQuery);
    g.c = to;
    if (c.has_input(2)) g.epilogue.bias = c.in<float>(2);
    projection_->weights.multiply(g, [&g] { gemm_f32(g); });
    return to;
  }

  void add_to_queries(const KernelContext& c, const MhaState& s, const float* bias, float* to) const {
    const float* q = c.in<float>(kQuery);
    const std::int64_t width = heads_ * s.size;
    parallel_for(s.batch * s.queries, std::max<std::int64_t>(1, 16384 / width), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        float* row = to + t * width;
        for (std::int64_t h = 0; h < heads_; ++h) {
          const float* from = q + s.q.at(t / s.queries, h, t % s.queries);
          for (std::int64_t d = 0; d < s.size; ++d) row[h * s.size + d] = from[d] + bias[h * s.size + d];
        }
      }
    });
  }

  // Adds key_padding_mask to a row. Its forms: ends [B], ends and starts [2B], lengths first [3B+2], [B,keys], [B,queries,keys],
  // [B,1,max,max]. As in ONNX Runtime, a masked key has the filter value added: a row in which all keys are masked is a softmax
  // over all of them.
  void mask_row(const KernelContext& c, const MhaState& s, std::int64_t keys, std::int64_t b, std::int64_t i, float* row) const {
    const auto* data = c.in<std::int32_t>(slots_.mask);
    if (s.mask.size() == 1) {
      const std::int64_t last = std::clamp<std::int64_t>(data[b], 0, keys);
      const std::int64_t first = s.mask[0] == 2 * s.batch ? std::clamp<std::int64_t>(data[b + s.batch], 0, keys) : 0;
      for (std::int64_t j = last; j < keys; ++j) row[j] += filter_;
      for (std::int64_t j = 0; j < std::min(first, last); ++j) row[j] += filter_;
      return;
    }
    const std::int32_t* keep = data + b * keys;
    if (s.mask.size() == 3) keep = data + (b * s.queries + i) * keys;
    if (s.mask.size() == 4) keep = data + (b * s.mask[2] + keys - s.queries + i) * s.mask[3];
    for (std::int64_t j = 0; j < keys; ++j) row[j] += keep[j] > 0 ? 0.0F : filter_;
  }

  bool masks(const MhaState& s, std::int64_t keys) const {
    const Shape& m = s.mask;
    if (m.size() == 2 && m[1] == 1 && (m[0] == s.batch || m[0] == 1)) return false;  // older GPT-2 exports have to pass something
    const bool fits = (m.size() == 1 && (m[0] == s.batch || m[0] == 2 * s.batch || m[0] == 3 * s.batch + 2)) ||
                      m == Shape{s.batch, keys} || m == Shape{s.batch, s.queries, keys} ||
                      (m.size() == 4 && m[0] == s.batch && m[1] == 1 && m[2] == m[3] && m[2] >= keys && keys >= s.queries);
    if (!fits) {
      fail(ErrorCode::runtime_failure,
           "the mask has shape {0}; with batch {1}, {2} queries and {3} keys it may be [{1}], [{4}], [{1},{3}] or [{1},{2},{3}]",
           to_string(m), s.batch, s.queries, keys, 2 * s.batch);
    }
    return true;
  }

  void set_mask(const KernelContext& c, const MhaState& s, std::int64_t keys, float* workspace, AttentionArgs& a) const {
    const Shape& bias = s.attention_bias;
    std::int64_t heads = 1;
    if (c.has_input(slots_.attention_bias)) {
      if (bias.size() != 4 || (bias[0] != 1 && bias[0] != s.batch) || (bias[1] != 1 && bias[1] != heads_) ||
          bias[2] != s.queries || bias[3] < keys) {
        fail(ErrorCode::runtime_failure, "attention_bias must be [1 or {},1 or {},{},{}], received {}", s.batch, heads_,
             s.queries, keys, to_string(bias));
      }
      a.mask = c.in<float>(slots_.attention_bias);
      a.mask_row = bias[3];
      a.mask_head = bias[1] == 1 ? 0 : bias[2] * bias[3];
      a.mask_batch = bias[0] == 1 ? 0 : bias[1] * bias[2] * bias[3];
      heads = bias[1];
    }
    if (!c.has_input(slots_.mask) || !masks(s, keys)) return;
    const AttentionArgs add = a;
    const std::int64_t rows = add.mask != nullptr || s.mask.size() > 2 ? s.queries : 1;
    parallel_for(s.batch * heads * rows, std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, keys)),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t t = begin; t < end; ++t) {
                     const std::int64_t b = t / (heads * rows), h = t / rows % heads, i = t % rows;
                     float* row = workspace + t * keys;
                     std::fill_n(row, keys, 0.0F);
                     mask_row(c, s, keys, b, i, row);
                     if (add.mask == nullptr) continue;
                     const float* more = add.mask + b * add.mask_batch + h * add.mask_head + i * add.mask_row;
                     for (std::int64_t j = 0; j < keys; ++j) row[j] += more[j];
                   }
                 });
    a.mask = workspace;
    a.mask_row = rows == 1 ? 0 : keys;
    a.mask_head = heads == 1 ? 0 : rows * keys;
    a.mask_batch = heads * rows * keys;
  }

  ops::MultiHeadIn slots_;
  std::optional<Projection> projection_;
  std::int64_t heads_;
  bool causal_;
  bool shared_;  // the cache has room for more rows than past_length says
  float scale_, filter_;
};

std::unique_ptr<Kernel> make_mha(LowerContext& c) {
  const auto slots = ops::MultiHeadIn::of(c.node().op_type);
  const bool projected = is_projected(c.node());
  for (const std::size_t i : {std::size_t{kQuery}, std::size_t{kKey}, std::size_t{kValue}, slots.bias, slots.attention_bias,
                              slots.past_key, slots.past_value}) {
    if (c.has_input(i) && c.dtype(i) != DataType::float32) return c.refuse("not float32");
  }
  for (const std::size_t i : {slots.mask, slots.past_length}) {
    if (c.has_input(i) && c.dtype(i) != DataType::int32) return c.refuse("the mask or the past's length is not int32");
  }
  if (c.has_input(slots.past_key) != c.has_input(slots.past_value)) return c.refuse("only one of the caches is given");
  if (c.has_input(slots.indirection)) return c.refuse("beams share rows of the cache");
  if (!projected && c.has_output(3)) return c.refuse("the scores are requested");
  const auto attr = ops::parse<ops::MultiHeadAttrs>(c);
  const std::int64_t heads = attr.num_heads;
  if (heads < 1 || heads > (1 << 20)) return c.refuse("no usable number of heads");
  if (!projected) return std::make_unique<MhaKernel>(c, attr, std::nullopt);

  if (attr.do_rotary) return c.refuse("queries and keys are rotated");
  if (attr.past_present_share_buffer && !c.has_input(slots.past_length)) return c.refuse("the past's length is missing");
  const Tensor* w = c.constant(1);
  if (w == nullptr || w->rank() != 2 || w->size() == 0) return c.refuse("the weights are not a constant matrix");
  Projection p;
  p.features = w->dim(0);
  const ops::IntList widths = attr.qkv_hidden_sizes;
  p.q = widths.size() == 3 ? widths[0] : w->dim(1) / 3;
  p.v = widths.size() == 3 ? widths[2] : w->dim(1) / 3;
  const bool usable = p.q > 0 && p.v > 0 && p.q <= w->dim(1) && p.v <= w->dim(1) && p.columns() == w->dim(1) &&
                      p.q % heads == 0 && p.v % heads == 0 && (widths.empty() || (widths.size() == 3 && widths[0] == widths[1]));
  if (!usable) return c.refuse("the weights' columns do not split into queries, keys and values of whole heads");
  if (p.q != p.v && (c.has_output(1) || c.has_input(slots.past_key))) return c.refuse("a cache of two widths");
  const SymShape* bias = c.shape(2);
  if (c.has_input(2) && (bias == nullptr || !all_const(*bias) || element_count(to_shape(*bias)) != p.columns())) {
    return c.refuse("the bias is not known to have as many elements as the weights have columns");
  }
  p.weights = LateMatrix(c, *w, p.features, p.columns(), false);
  return std::make_unique<MhaKernel>(c, attr, std::move(p));
}

}  // namespace

void register_kernels_multi_head_attention(KernelTable& t) {
  for (const char* op : {"MultiHeadAttention", "DecoderMaskedMultiHeadAttention"}) {
    t.add("com.microsoft", op, "multi-head-attention-f32", 10, make_mha);
  }
  for (const char* op : {"Attention", "DecoderMaskedSelfAttention"}) {
    t.add("com.microsoft", op, "projected-attention-f32", 10, make_mha);
  }
}

}  // namespace sdx::cpu
