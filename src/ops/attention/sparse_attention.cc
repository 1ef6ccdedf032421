// com.microsoft SparseAttention 1: causal attention with a cache, in which a head sees only some blocks of keys. Source: Phi-3,
// arXiv:2404.14219, section on blocksparse attention.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/attention/attention_core.h"
#include "ops/attention/grouped_query.h"
#include "ops/context.h"
#include "ops/control/subgraphs.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct SparseAttentionAttrs {
  std::int64_t num_heads;
  std::int64_t kv_num_heads;
  std::int64_t sparse_block_size = 0;
  bool do_rotary = false;
  bool rotary_interleaved = false;
  float scale = 0.0F;

  void fields(auto& f) {
    f.required("num_heads", num_heads);
    f.required("kv_num_heads", kv_num_heads);
    f.required("sparse_block_size", sparse_block_size);
    f("do_rotary", do_rotary);
    f("rotary_interleaved", rotary_interleaved);
    f("scale", scale);
  }
};

enum In : std::size_t { kQuery, kKey, kValue, kPastKey, kPastValue, kRows, kColumns, kTotal, kLengths, kCos, kSin };

struct Heads : HeadCounts {
  std::int64_t block = 0;
};

Heads heads_of(const Attributes& attrs) {
  const Heads h{head_counts(attrs), parse<SparseAttentionAttrs>(attrs).sparse_block_size};
  if (h.block < 1 || h.block > (1 << 30)) fail(ErrorCode::invalid_model, "sparse_block_size is {}; it must be positive", h.block);
  return h;
}

void infer_sparse(InferContext& c) {
  const Heads h = heads_of(c.attrs());
  const SymShape* q = c.shape(kQuery);
  if (q != nullptr && q->size() != 3) c.fail("query must have 3 axes, received {}", to_string(*q));
  Dim batch, length, width;
  if (q != nullptr) {
    batch = (*q)[0], length = (*q)[1];
    width = c.has_input(kKey) ? (*q)[2] : floor_div((*q)[2], Dim(h.q + 2 * h.kv)) * Dim(h.q);
  }
  c.output(0, c.dtype(kQuery), {batch, length, width});
  for (const std::size_t i : {kPastKey, kPastValue}) {
    if (c.shape(i) != nullptr) {
      c.output(i - kPastKey + 1, c.dtype(kQuery), *c.shape(i));
    } else {
      c.output(i - kPastKey + 1, c.dtype(kQuery));
    }
  }
}

// The blocks of keys that a block of queries sees: compressed rows, one table for each layout; heads take the layouts in turn.
class BlockMask {
 public:
  explicit BlockMask(OpContext& c) {
    const Tensor &rows = c.input(kRows), &columns = c.input(kColumns);
    if (rows.rank() != 2 || columns.rank() != 2 || rows.dim(0) != columns.dim(0) || rows.dim(0) < 1 || rows.dim(1) < 2 ||
        rows.dtype() != DataType::int32 || columns.dtype() != DataType::int32) {
      c.fail(
          "block_row_indices and block_col_indices must be int32[layouts,blocks + 1] and int32[layouts,entries], received {} and "
          "{}",
          rows.type_string(), columns.type_string());
    }
    layouts_ = rows.dim(0), blocks_ = rows.dim(1) - 1;
    const auto *row = static_cast<const std::int32_t*>(rows.data()), *column = static_cast<const std::int32_t*>(columns.data());
    seen_.resize(static_cast<std::size_t>(element_count(Shape{layouts_, blocks_, blocks_})));
    for (std::int64_t l = 0; l < layouts_; ++l) {
      for (std::int64_t b = 0; b < blocks_; ++b) {
        const std::int64_t first = row[l * (blocks_ + 1) + b], last = row[l * (blocks_ + 1) + b + 1];
        if (first < 0 || first > last || last > columns.dim(1))
          c.fail("block_row_indices go from {} to {}: out of range", first, last);
        for (std::int64_t i = first; i < last; ++i) {
          const std::int64_t key = column[l * columns.dim(1) + i];
          if (key < 0 || key >= blocks_) c.fail("block_col_indices hold {}; there are {} blocks", key, blocks_);
          seen_[static_cast<std::size_t>((l * blocks_ + b) * blocks_ + key)] = true;
        }
      }
    }
  }
  std::int64_t blocks() const { return blocks_; }
  std::int64_t layouts() const { return layouts_; }
  bool sees(std::int64_t head, std::int64_t query, std::int64_t key) const {
    return seen_[static_cast<std::size_t>((head % layouts_ * blocks_ + query) * blocks_ + key)];
  }

 private:
  std::int64_t layouts_ = 0, blocks_ = 0;
  std::vector<bool> seen_;
};

struct Problem {
  Heads heads{};
  std::int64_t batch = 0, length = 0, size = 0, capacity = 0;
  std::vector<std::int64_t> total, past;  // of each batch entry
  GroupedQuery rows;                      // of the new tokens
  Tensor past_key, past_value;            // float32
};

void read_lengths(OpContext& c, Problem& p, const BlockMask& mask) {
  const std::int64_t total = single_int(c.input(kTotal), "total_sequence_length");
  if (total < p.length || total > p.capacity || total > mask.blocks() * p.heads.block) {
    c.fail("total_sequence_length is {}, which does not fit {} new tokens, {} cached rows and {} blocks of {}", total, p.length,
           p.capacity, mask.blocks(), p.heads.block);
  }
  const Tensor& lengths = c.input(kLengths);
  if (lengths.dtype() != DataType::int32 || lengths.size() != p.batch) {
    c.fail("key_total_sequence_lengths must be int32[{}], received {}", p.batch, lengths.type_string());
  }
  const bool prompt = total == p.length;
  for (const std::int32_t n : lengths.values<std::int32_t>()) {
    if (n < 1 || n > total || (!prompt && n < p.length))
      c.fail("key_total_sequence_lengths hold {}; the maximum is {}", n, total);
    p.total.push_back(n);
    p.past.push_back(prompt ? 0 : n - p.length);
  }
}

Problem problem_of(OpContext& c, const BlockMask& mask) {
  Problem p;
  p.heads = heads_of(c.attrs());
  if (p.heads.q % mask.layouts() != 0) c.fail("{} heads are not a multiple of {} layouts", p.heads.q, mask.layouts());
  const Tensor& query = c.input(kQuery);
  const bool packed = !c.has_input(kKey);
  const std::int64_t parts = packed ? p.heads.q + 2 * p.heads.kv : p.heads.q;
  if (query.rank() != 3 || query.dim(2) % parts != 0 || query.dim(2) == 0) {
    c.fail("query must have 3 axes and features for {} heads, received {}", parts, query.type_string());
  }
  p.batch = query.dim(0), p.length = query.dim(1), p.size = query.dim(2) / parts;
  p.rows = grouped_query(c, p.heads, p.size);
  const Tensor& past = c.input(kPastKey);
  p.capacity = past.rank() == 4 ? past.dim(2) : 0;
  const Shape expected{p.batch, p.heads.kv, p.capacity, p.size};
  if (past.shape() != expected || c.input(kPastValue).shape() != expected) {
    c.fail("past_key and past_value must be [{},{},rows,{}], received {} and {}", p.batch, p.heads.kv, p.size, past.type_string(),
           c.input(kPastValue).type_string());
  }
  p.past_key = converted(past, DataType::float32);
  p.past_value = converted(c.input(kPastValue), DataType::float32);
  read_lengths(c, p, mask);
  return p;
}

// The new rows as [batch, heads, length, size], turned by their positions where do_rotary asks for it.
Tensor turned(OpContext& c, const Problem& p, const HeadView<float>& in, std::int64_t heads) {
  const auto attr = parse<SparseAttentionAttrs>(c);
  Tensor out(DataType::float32, {p.batch, heads, p.length, p.size});
  auto* to = static_cast<float*>(out.mutable_data());
  Tensor cos, sin;
  const bool rotary = attr.do_rotary;
  if (rotary) {
    cos = converted(c.input(kCos), DataType::float32), sin = converted(c.input(kSin), DataType::float32);
    if (cos.rank() != 2 || cos.shape() != sin.shape() || cos.dim(1) * 2 > p.size) {
      c.fail("cos_cache and sin_cache must be [positions, up to {}], received {} and {}", p.size / 2, cos.type_string(),
             sin.type_string());
    }
  }
  const bool interleaved = attr.rotary_interleaved;
  for (std::int64_t i = 0; i < p.batch * heads * p.length; ++i, to += p.size) {
    const std::int64_t b = i / (heads * p.length), s = i % p.length;
    std::copy_n(in.at(b, i / p.length % heads, s), p.size, to);
    if (!rotary) continue;
    const std::int64_t at = p.past[static_cast<std::size_t>(b)] + s, half = cos.dim(1);
    if (at >= cos.dim(0)) c.fail("position {} is outside cos_cache, which has {} rows", at, cos.dim(0));
    rotate(to, to, 2 * half, static_cast<const float*>(cos.data()) + at * half, static_cast<const float*>(sin.data()) + at * half,
           interleaved);
  }
  return out;
}

// The cache with the new rows in it.
Tensor updated(const Problem& p, const Tensor& past, const HeadView<float>& fresh) {
  Tensor out = past.clone();
  auto* to = static_cast<float*>(out.mutable_data());
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.heads.kv; ++h) {
      for (std::int64_t s = 0; s < p.length; ++s) {
        const std::int64_t row = p.past[static_cast<std::size_t>(b)] + s;
        std::copy_n(fresh.at(b, h, s), p.size, to + ((b * p.heads.kv + h) * p.capacity + row) * p.size);
      }
    }
  }
  return out;
}

void run_sparse(OpContext& c) {
  const BlockMask mask(c);
  const Problem p = problem_of(c, mask);
  const Tensor q = turned(c, p, p.rows.q, p.heads.q);
  const Tensor fresh = turned(c, p, p.rows.k, p.heads.kv);
  const Tensor keys = updated(p, p.past_key, view_bnsh(static_cast<const float*>(fresh.data()), p.heads.kv, p.length, p.size));
  const Tensor values = updated(p, p.past_value, p.rows.v);
  AttentionProblem<float> a;
  a.batch = p.batch, a.heads = p.heads.q, a.kv_heads = p.heads.kv;
  a.q_len = p.length, a.kv_len = p.capacity, a.size = a.v_size = p.size;
  a.q = view_bnsh(static_cast<const float*>(q.data()), p.heads.q, p.length, p.size);
  a.k = view_bnsh(static_cast<const float*>(keys.data()), p.heads.kv, p.capacity, p.size);
  a.v = view_bnsh(static_cast<const float*>(values.data()), p.heads.kv, p.capacity, p.size);
  const std::int64_t width = p.heads.q * p.size;
  Tensor y(DataType::float32, {p.batch, p.length, width});
  a.out = static_cast<float*>(y.mutable_data());
  a.out_batch = p.length * width, a.out_head = p.size, a.out_row = width;
  const float scale = parse<SparseAttentionAttrs>(c).scale;
  a.scale = scale != 0.0F ? scale : 1.0F / std::sqrt(static_cast<float>(p.size));
  a.stop = &c.stop();
  a.visible = [&p](std::int64_t b, std::int64_t i) {
    return std::pair<std::int64_t, std::int64_t>(0, p.past[static_cast<std::size_t>(b)] + i + 1);
  };
  a.add_bias = [&](std::int64_t b, std::int64_t h, std::int64_t i, float* row) {
    const std::int64_t at = p.past[static_cast<std::size_t>(b)] + i;
    for (std::int64_t j = 0; j <= at; ++j) {
      if (!mask.sees(h, at / p.heads.block, j / p.heads.block)) row[j] = -std::numeric_limits<float>::infinity();
    }
  };
  attend(a);
  const DataType elem = c.input(kQuery).dtype();
  convert_into(c.output(0, elem, y.shape()), y);
  convert_into(c.output(1, elem, keys.shape()), keys);
  convert_into(c.output(2, elem, values.shape()), values);
}

}  // namespace

void register_sparse_attention(OpTable& t) {
  constexpr TypeSet kFloat = set_of(DataType::float32, DataType::float16, DataType::bfloat16);
  constexpr TypeSet kInt = bit(DataType::int32);
  OpDef d("com.microsoft", "SparseAttention", 1);
  d.in("query", "T", kFloat).in("key value", "T", kFloat, Arity::optional);
  d.in("past_key past_value", "T", kFloat);
  d.in("block_row_indices block_col_indices total_sequence_length key_total_sequence_lengths", "M", kInt);
  d.in("cos_cache sin_cache", "T", kFloat, Arity::optional);
  d.out("output present_key present_value", "T", kFloat);
  d.attrs<SparseAttentionAttrs>();
  t.add(std::move(d).infer_with(infer_sparse).run_with(run_sparse));
}

}  // namespace sdx::ops
