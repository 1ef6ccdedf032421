// Attention: ai.onnx 23, 24 (nonpad_kv_seqlen, short masks), 25 (windows); sdx 1, what passes/fuse/attention.cc makes of the
// single operations.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "ops/attention/attention_core.h"
#include "ops/attention/signatures.h"
#include "ops/context.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

using enum AttentionIn::Slot;

// Numbers of heads for an input with 3 axes: Q's, or those of K and V.
std::int64_t head_count(const Node& node, bool query) {
  const auto attr = parse<AttentionAttrs>(node);
  const std::int64_t n = query ? attr.q_num_heads : attr.kv_num_heads;
  if (n < 1 || n > (1 << 20)) {
    fail(ErrorCode::invalid_model, "inputs with 3 axes need a positive {}, received {}", query ? "q_num_heads" : "kv_num_heads",
         n);
  }
  return n;
}

// --- inference -----------------------------------------------------------------------------------------------------------

struct SymHeads {
  Dim batch, heads, rows, size;
  bool flat = false;  // 3 axes
};

// Q, K or V as [batch, heads, rows, size]; nothing when its rank is unknown.
std::optional<SymHeads> sym_heads(InferContext& c, std::size_t input) {
  const SymShape* s = c.shape(input);
  if (s == nullptr) return std::nullopt;
  if (s->size() == 4) return SymHeads{(*s)[0], (*s)[1], (*s)[2], (*s)[3], false};
  if (s->size() != 3) c.fail("Q, K and V must have 3 or 4 axes, received {}", to_string(*s));
  const Dim heads = head_count(c.node(), input == kQ);
  return SymHeads{(*s)[0], heads, (*s)[1], floor_div((*s)[2], heads), true};
}

// sdx: one entry of Q, K or V may serve the whole batch.
bool shares_batch(const Node& node) { return node.domain == "sdx"; }

Dim joint_batch(const Node& node, const SymHeads& q, const SymHeads& k, const SymHeads& v) {
  if (!shares_batch(node)) return q.batch;
  for (const Dim& d : {q.batch, k.batch, v.batch}) {
    if (!(d.is_const() && d.value() == 1)) return d;
  }
  return q.batch;
}

void infer_attention(InferContext& c) {
  const DataType elem = c.dtype(kQ);
  const DataType elem_v = c.dtype(kV);
  const auto q = sym_heads(c, kQ);
  const auto k = sym_heads(c, kK);
  const auto v = sym_heads(c, kV);
  for (std::size_t i = 0; i < 4; ++i) c.output(i, i == 2 ? elem_v : elem);
  if (!q || !k || !v) return;
  const Dim batch = joint_batch(c.node(), *q, *k, *v);
  if (q->flat) {
    c.output(0, elem, {batch, q->rows, q->heads * v->size});
  } else {
    c.output(0, elem, {batch, q->heads, q->rows, v->size});
  }
  Dim total = k->rows;
  if (c.has_input(kPastKey)) {
    const SymShape* past = c.shape(kPastKey);
    if (past != nullptr && past->size() != 4) c.fail("past_key must have 4 axes, received {}", to_string(*past));
    total = past != nullptr ? (*past)[2] + k->rows : Dim();
  }
  c.output(1, elem, {k->batch, k->heads, total, k->size});
  c.output(2, elem_v, {v->batch, v->heads, total, v->size});
  c.output(3, elem, {batch, q->heads, q->rows, total});
}

// --- execution -----------------------------------------------------------------------------------------------------------

template <class T>
struct Heads {
  Tensor held;
  std::int64_t batch = 0, heads = 0, rows = 0, size = 0;
  bool flat = false;
  HeadView<T> view;
};

template <class T>
Heads<T> heads_of(OpContext& c, std::size_t input) {
  const Tensor& t = c.input(input);
  Heads<T> h;
  h.held = converted(t, DataTypeOf<T>::value);
  const auto* data = static_cast<const T*>(h.held.data());
  const Shape& s = t.shape();
  if (s.size() == 4) {
    h.batch = s[0], h.heads = s[1], h.rows = s[2], h.size = s[3];
    h.view = view_bnsh(data, h.heads, h.rows, h.size);
    return h;
  }
  if (s.size() != 3) c.fail("Q, K and V must have 3 or 4 axes, received {}", t.type_string());
  h.flat = true;
  h.heads = head_count(c.node(), input == kQ);
  h.batch = s[0], h.rows = s[1], h.size = s[2] / h.heads;
  if (h.size * h.heads != s[2]) c.fail("{} features cannot be split into {} heads", s[2], h.heads);
  h.view = view_bsd(data, h.heads, h.rows, h.size);
  return h;
}

// Keys or values with the cached rows before them; `total` rows.
template <class T>
Tensor with_past(OpContext& c, const Heads<T>& fresh, std::size_t past_input, std::int64_t past_len) {
  Tensor past;
  if (const Tensor* t = c.optional_input(past_input)) {
    if (t->shape() != Shape{fresh.batch, fresh.heads, past_len, fresh.size}) {
      c.fail("the cache must be [{},{},{},{}], received {}", fresh.batch, fresh.heads, past_len, fresh.size, t->type_string());
    }
    past = converted(*t, DataTypeOf<T>::value);
  }
  CacheParts<T> parts{fresh.batch, fresh.heads, fresh.size, nullptr, past_len,
                      past_len,    fresh.view,  fresh.rows, nullptr, total_rows(past_len, fresh.rows),
                      {}};
  if (past.defined()) parts.past = static_cast<const T*>(past.data());
  return gather_rows(parts);
}

template <class T>
using RowHook = typename AttentionProblem<T>::RowHook;

// attn_mask, broadcast from the right to [batch, heads, queries, keys]. A last axis that is too short is extended with hidden
// keys.
template <class T>
RowHook<T> mask_hook(OpContext& c, const AttentionProblem<T>& p, Tensor& held) {
  const Tensor* mask = c.optional_input(kMask);
  if (mask == nullptr) return {};
  Shape s = mask->shape();
  if (s.size() > 4) c.fail("attn_mask has more than 4 axes: {}", mask->type_string());
  while (s.size() < 4) s.insert(s.begin(), 1);
  if ((s[0] != 1 && s[0] != p.batch) || (s[1] != 1 && s[1] != p.heads) || (s[2] != 1 && s[2] != p.q_len) || s[3] > p.kv_len) {
    c.fail("attn_mask {} does not broadcast to [{},{},{},{}]", mask->type_string(), p.batch, p.heads, p.q_len, p.kv_len);
  }
  const std::int64_t row = s[2] == 1 ? 0 : s[3], head = s[1] == 1 ? 0 : s[2] * s[3], batch = s[0] == 1 ? 0 : s[1] * s[2] * s[3];
  constexpr T kNever = -std::numeric_limits<T>::infinity();
  const std::int64_t width = s[3], keys = p.kv_len;
  if (mask->dtype() == DataType::boolean) {
    const auto* see = static_cast<const bool*>(mask->data());
    return [=](std::int64_t b, std::int64_t h, std::int64_t i, T* scores) {
      const bool* at = see + b * batch + h * head + i * row;
      for (std::int64_t j = 0; j < width; ++j) {
        if (!at[j]) scores[j] = kNever;
      }
      std::fill(scores + width, scores + keys, kNever);
    };
  }
  held = converted(*mask, DataTypeOf<T>::value);
  const auto* add = static_cast<const T*>(held.data());
  return [=](std::int64_t b, std::int64_t h, std::int64_t i, T* scores) {
    const T* at = add + b * batch + h * head + i * row;
    for (std::int64_t j = 0; j < width; ++j) scores[j] += at[j];
    std::fill(scores + width, scores + keys, kNever);
  };
}

template <class T>
struct Broadcast {
  const T* data = nullptr;
  std::int64_t batch = 0, head = 0, row = 0, key = 0;
  const T& at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    return data[b * batch + h * head + i * row + j * key];
  }
};

template <class T, class Problem>
Broadcast<T> broadcast_scores(OpContext& c, const Tensor& t, const Problem& p, const T* data) {
  Shape s = t.shape();
  while (s.size() < 4) s.insert(s.begin(), 1);
  const std::int64_t wanted[] = {p.batch, p.heads, p.q_len, p.kv_len};
  for (std::size_t i = 0; i < 4; ++i) {
    if (s.size() != 4 || (s[i] != 1 && s[i] != wanted[i])) {
      c.fail("{} does not broadcast to the scores, [{},{},{},{}]", t.type_string(), p.batch, p.heads, p.q_len, p.kv_len);
    }
  }
  return {data, s[0] == 1 ? 0 : s[1] * s[2] * s[3], s[1] == 1 ? 0 : s[2] * s[3], s[2] == 1 ? 0 : s[3], s[3] == 1 ? 0 : 1};
}

// Applies `add`, then `see` and `hidden`.
template <class T>
RowHook<T> hidden_hook(OpContext& c, const AttentionProblem<T>& p, RowHook<T> add, Tensor& held) {
  const Tensor *see = c.optional_input(kSee), *hidden = c.optional_input(kHidden);
  if (see == nullptr && hidden == nullptr) return add;
  if (see == nullptr || hidden == nullptr) c.fail("see and hidden go together");
  held = converted(*hidden, DataTypeOf<T>::value);
  const auto sees = broadcast_scores(c, *see, p, static_cast<const bool*>(see->data()));
  const auto others = broadcast_scores(c, *hidden, p, static_cast<const T*>(held.data()));
  return [=, keys = p.kv_len](std::int64_t b, std::int64_t h, std::int64_t i, T* scores) {
    if (add) add(b, h, i, scores);
    for (std::int64_t j = 0; j < keys; ++j) {
      if (!sees.at(b, h, i, j)) scores[j] = others.at(b, h, i, j);
    }
  };
}

// Also subtracts the distances between query and keys.
template <class T>
RowHook<T> distance_hook(OpContext& c, const AttentionProblem<T>& p, std::int64_t past_len, RowHook<T> add) {
  const FloatList slopes = parse<AttentionAttrs>(c).slopes;
  if (slopes.empty()) return add;
  if (static_cast<std::int64_t>(slopes.size()) != p.heads) c.fail("{} slopes are given for {} heads", slopes.size(), p.heads);
  return [=, keys = p.kv_len](std::int64_t b, std::int64_t h, std::int64_t i, T* scores) {
    if (add) add(b, h, i, scores);
    const T slope = static_cast<T>(slopes[static_cast<std::size_t>(h)]);
    for (std::int64_t j = 0; j < keys; ++j) scores[j] -= slope * static_cast<T>(std::abs(past_len + i - j));
  };
}

// The keys that a query may see because of its position.
struct Frontier {
  bool causal = false, pads_behind = false;
  std::int64_t left = -1, right = -1;
  std::int64_t past_len = 0, kv_len = 0, q_len = 0;
  std::vector<std::int64_t> ends;  // per batch entry, where nonpad_kv_seqlen is given
};

Frontier frontier_of(OpContext& c, std::int64_t batch, std::int64_t q_len, std::int64_t kv_len, std::int64_t past_len) {
  const auto attr = parse<AttentionAttrs>(c);
  Frontier f;
  f.causal = attr.causal && !attr.by_steps;  // else the mask says so
  f.pads_behind = attr.pads_behind;
  f.left = attr.left_window;
  f.right = attr.right_window;
  if (f.left < -1 || f.right < -1) c.fail("window sizes must be -1 or more, received {} and {}", f.left, f.right);
  // Windows wider than any sequence are no windows; this keeps the sums below from overflowing.
  constexpr std::int64_t kWide = std::int64_t{1} << 60;
  if (f.left > kWide) f.left = -1;
  if (f.right > kWide) f.right = -1;
  f.past_len = past_len, f.kv_len = kv_len, f.q_len = q_len;
  if (const Tensor* nonpad = c.optional_input(kNonpad)) {
    if (nonpad->dtype() != DataType::int64 || nonpad->size() != batch) {
      c.fail("nonpad_kv_seqlen must be int64[{}], received {}", batch, nonpad->type_string());
    }
    if (c.has_input(kPastKey)) c.fail("nonpad_kv_seqlen and past_key exclude each other");
    for (const std::int64_t n : nonpad->values<std::int64_t>()) f.ends.push_back(std::clamp<std::int64_t>(n, 0, kv_len));
  }
  return f;
}

template <class T>
void limit_keys(AttentionProblem<T>& p, const Frontier& f) {
  p.visible = [&f](std::int64_t b, std::int64_t i) {
    std::int64_t begin = 0, end = f.ends.empty() ? f.kv_len : f.ends[static_cast<std::size_t>(b)];
    const std::int64_t at = (f.ends.empty() || f.pads_behind ? f.past_len : end - f.q_len) + i;
    if (f.causal) end = std::min(end, at + 1);
    if (f.right >= 0) end = std::min(end, at + f.right + 1);
    if (f.left >= 0) begin = std::max<std::int64_t>(0, at - f.left);
    if (f.pads_behind) begin = std::min(begin, end);
    return std::pair<std::int64_t, std::int64_t>(begin, end);
  };
}

// The fourth output: the scores at one of four stages. Source: ONNX Attention-23, qk_matmul_output_mode.
template <class T>
void watch_scores(OpContext& c, AttentionProblem<T>& p, Tensor& scores) {
  if (!c.wants_output(3)) return;
  scores = Tensor(DataTypeOf<T>::value, {p.batch, p.heads, p.q_len, p.kv_len});
  const RowHook<T> copy = [to = static_cast<T*>(scores.mutable_data()), heads = p.heads, queries = p.q_len, keys = p.kv_len](
                              std::int64_t b, std::int64_t h, std::int64_t i, const T* row) {
    std::copy_n(row, keys, to + ((b * heads + h) * queries + i) * keys);
  };
  switch (parse<AttentionAttrs>(c).qk_output_mode) {
    case 0: p.see_scores = copy; break;
    case 1: p.see_capped = copy; break;
    case 2: p.see_masked = copy; break;
    case 3: p.see_probabilities = copy; break;
    default: c.fail("qk_matmul_output_mode must be 0 to 3");
  }
}

template <class T>
void run_typed(OpContext& c) {
  const auto attr = parse<AttentionAttrs>(c);
  const Heads<T> q = heads_of<T>(c, kQ);
  const Heads<T> k = heads_of<T>(c, kK);
  const Heads<T> v = heads_of<T>(c, kV);
  const bool cached = c.has_input(kPastKey) || c.wants_output(1) || c.wants_output(2);
  const bool shares = !cached && shares_batch(c.node());
  const std::int64_t batch = !shares || q.batch != 1 ? q.batch : k.batch != 1 ? k.batch : v.batch;
  const auto serves = [&](const Heads<T>& h) { return h.batch == batch || (shares && h.batch == 1); };
  if (!serves(q) || !serves(k) || !serves(v) || v.heads != k.heads || v.rows != k.rows || k.size != q.size) {
    c.fail("Q, K and V do not fit together: {}, {} and {}", c.input(kQ).type_string(), c.input(kK).type_string(),
           c.input(kV).type_string());
  }
  if (c.has_input(kPastKey) != c.has_input(kPastValue)) c.fail("past_key and past_value go together");
  std::int64_t past_len = 0;
  if (const Tensor* past = c.optional_input(kPastKey)) past_len = past->rank() == 4 ? past->dim(2) : 0;
  AttentionProblem<T> p;
  p.batch = batch, p.heads = q.heads, p.kv_heads = k.heads, p.q_len = q.rows, p.kv_len = total_rows(past_len, k.rows);
  p.size = q.size, p.v_size = v.size;
  p.q = q.view, p.k = k.view, p.v = v.view;
  if (q.batch != batch) p.q.batch = 0;
  if (k.batch != batch) p.k.batch = 0;
  if (v.batch != batch) p.v.batch = 0;
  Tensor keys, values;
  if (cached) {
    keys = with_past(c, k, kPastKey, past_len);
    values = with_past(c, v, kPastValue, past_len);
    p.k = view_bnsh(static_cast<const T*>(keys.data()), k.heads, p.kv_len, k.size);
    p.v = view_bnsh(static_cast<const T*>(values.data()), v.heads, p.kv_len, v.size);
  }
  const DataType elem = c.input(kQ).dtype();
  const std::int64_t width = element_count(Shape{q.heads, v.size});
  Tensor y(DataTypeOf<T>::value, q.flat ? Shape{batch, q.rows, width} : Shape{batch, q.heads, q.rows, v.size});
  p.out = static_cast<T*>(y.mutable_data());
  p.out_batch = element_count(Shape{q.rows, width});
  p.out_head = q.flat ? v.size : element_count(Shape{q.rows, v.size});
  p.out_row = q.flat ? width : v.size;
  p.scale =
      attr.scale.has_value() ? static_cast<T>(*attr.scale) : T(1) / std::sqrt(static_cast<T>(std::max<std::int64_t>(1, q.size)));
  p.softcap = static_cast<T>(attr.softcap);
  p.stop = &c.stop();
  const Frontier frontier = frontier_of(c, p.batch, p.q_len, p.kv_len, past_len);
  limit_keys(p, frontier);
  p.by_steps = attr.by_steps, p.zero_nan = attr.zero_nan;
  p.q_scale = static_cast<T>(attr.q_scale), p.k_scale = static_cast<T>(attr.k_scale);
  Tensor held, held_hidden, scores;
  p.add_bias = hidden_hook(c, p, distance_hook(c, p, past_len, mask_hook(c, p, held)), held_hidden);
  watch_scores(c, p, scores);
  attend(p);
  convert_into(c.output(0, elem, y.shape()), y);
  if (c.wants_output(1)) convert_into(c.output(1, elem, keys.shape()), keys);
  if (c.wants_output(2)) convert_into(c.output(2, c.input(kV).dtype(), values.shape()), values);
  if (scores.defined()) convert_into(c.output(3, elem, scores.shape()), scores);
}

void run_attention(OpContext& c) {
  const bool wide = c.input(kQ).dtype() == DataType::float64 || c.input(kV).dtype() == DataType::float64;
  if (wide) {
    run_typed<double>(c);
  } else {
    run_typed<float>(c);
  }
}

OpDef version(const char* domain, int since) {
  OpDef def(domain, "Attention", since);
  def.in("Q K", "T1", types::floats)
      .in("V", "T2", types::floats)
      .in("attn_mask", "U", types::numeric | types::boolean, Arity::optional)
      .in("past_key", "T1", types::floats, Arity::optional)
      .in("past_value", "T2", types::floats, Arity::optional);
  const bool own = *domain != 0;  // sdx: as opset 25, but Q, K and V may differ in rank, and in a batch that is 1
  if (since >= 24 || own) def.in("nonpad_kv_seqlen", "", types::int64, Arity::optional);
  if (own) def.in("see", "", types::boolean, Arity::optional).in("hidden", "", types::floats, Arity::optional);
  def.out("Y", "T1", types::floats)
      .out("present_key", "T1", types::floats, Arity::optional)
      .out("present_value", "T2", types::floats, Arity::optional)
      .out("qk_matmul_output", "T1", types::floats, Arity::optional);
  def.attrs<AttentionAttrs>();
  return std::move(def).infer_with(infer_attention).run_with(run_attention);
}

}  // namespace

void register_attention(OpTable& t) {
  for (const int since : {23, 24, 25}) t.add(version("", since));
  t.add(version("sdx", 1));
}

}  // namespace sdx::ops
