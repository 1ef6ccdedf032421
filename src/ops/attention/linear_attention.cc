// LinearAttention: ai.onnx 27; com.microsoft 1, which also takes more key heads than query heads and gives the states after each
// of the last tokens.

#include <cmath>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "ops/attention/attention_core.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct LinearAttentionAttrs {
  std::int64_t q_num_heads = 0;
  std::int64_t kv_num_heads = 0;
  float scale = 0.0F;
  std::int64_t state_window = 0;
  std::string_view update_rule = "gated_delta";

  void fields(auto& f) {
    f.required("q_num_heads", q_num_heads);
    f.required("kv_num_heads", kv_num_heads);
    f.unread("chunk_size", AttrKind::i);
    f("scale", scale);
    f("state_window", state_window);
    f("update_rule", update_rule);
  }
};

enum In : std::size_t { kQuery, kKey, kValue, kPast, kDecay, kBeta };

struct Rule {
  bool decays, corrects;  // "gated", "delta"
};

Rule rule_of(const LinearAttentionAttrs& attr) {
  const std::string_view name = attr.update_rule;
  if (name == "linear") return {false, false};
  if (name == "gated") return {true, false};
  if (name == "delta") return {false, true};
  if (name == "gated_delta") return {true, true};
  fail(ErrorCode::invalid_model, "update_rule must be linear, gated, delta or gated_delta, received '{}'", name);
}

struct HeadCounts {
  std::int64_t q, kv;
  std::int64_t out() const { return std::max(q, kv); }
};

HeadCounts heads_of(const Node& node) {
  const auto attr = parse<LinearAttentionAttrs>(node);
  const HeadCounts h{attr.q_num_heads, attr.kv_num_heads};
  const bool inverse = !node.domain.empty() && h.q > 0 && h.kv % h.q == 0;
  if (h.q < 1 || h.kv < 1 || (h.q % h.kv != 0 && !inverse) || h.q > (1 << 20) || h.kv > (1 << 20)) {
    fail(ErrorCode::invalid_model, "q_num_heads must be a positive multiple of kv_num_heads, received {} and {}", h.q, h.kv);
  }
  return h;
}

// The number of states that past_state and present_state hold on a leading axis; 0: one state, and no such axis.
std::int64_t window_of(const LinearAttentionAttrs& attr) {
  const std::int64_t window = attr.state_window;
  if (window < 0 || window > 8) fail(ErrorCode::invalid_model, "attribute 'state_window' must be 0 to 8, received {}", window);
  return window;
}

void infer_linear_attention(InferContext& c) {
  const auto attr = parse<LinearAttentionAttrs>(c);
  const HeadCounts h = heads_of(c.node());
  rule_of(attr);
  for (std::size_t i = 0; i < 3; ++i) {
    if (c.shape(i) != nullptr && c.shape(i)->size() != 3) c.fail("input {} must have 3 axes", i);
  }
  const DataType elem = c.dtype(kQuery);
  const DataType state = c.has_input(kPast) && c.dtype(kPast) != DataType::undefined ? c.dtype(kPast) : elem;
  Dim batch, length, d_k, d_v;
  if (const SymShape* q = c.shape(kQuery)) batch = (*q)[0], length = (*q)[1], d_k = floor_div((*q)[2], Dim(h.q));
  if (const SymShape* v = c.shape(kValue)) d_v = floor_div((*v)[2], Dim(h.kv));
  c.output(0, elem, {batch, length, Dim(h.out()) * d_v});
  SymShape states{batch, Dim(h.kv), d_k, d_v};
  if (const std::int64_t window = window_of(attr); window > 0) states.insert(states.begin(), Dim(window));
  c.output(1, state, std::move(states));
}

struct Problem {
  HeadCounts heads{};
  Rule rule{};
  std::int64_t batch = 0, length = 0, d_k = 0, d_v = 0, window = 0;
  Tensor q, k, v, decay, beta;
  std::int64_t decay_width = 0, beta_width = 0;  // elements per token
  float scale = 0;
};

Tensor gate(OpContext& c, std::size_t input, bool wanted, const char* name) {
  if (c.has_input(input) != wanted) c.fail("this update_rule {} {}", wanted ? "needs" : "takes no", name);
  return wanted ? converted(c.input(input), DataType::float32) : Tensor();
}

Problem problem_of(OpContext& c) {
  const auto attr = parse<LinearAttentionAttrs>(c);
  Problem p;
  p.heads = heads_of(c.node());
  p.window = window_of(attr);
  p.rule = rule_of(attr);
  const Tensor &q = c.input(kQuery), &k = c.input(kKey), &v = c.input(kValue);
  if (q.rank() != 3 || k.rank() != 3 || v.rank() != 3) c.fail("query, key and value must have 3 axes");
  p.batch = q.dim(0), p.length = q.dim(1), p.d_k = q.dim(2) / p.heads.q, p.d_v = v.dim(2) / p.heads.kv;
  if (q.dim(2) != p.d_k * p.heads.q || k.shape() != Shape{p.batch, p.length, p.heads.kv * p.d_k} ||
      v.shape() != Shape{p.batch, p.length, p.heads.kv * p.d_v}) {
    c.fail("query, key and value do not fit together: {}, {} and {}", q.type_string(), k.type_string(), v.type_string());
  }
  p.q = converted(q, DataType::float32);
  p.k = converted(k, DataType::float32);
  p.v = converted(v, DataType::float32);
  p.decay = gate(c, kDecay, p.rule.decays, "decay");
  p.beta = gate(c, kBeta, p.rule.corrects, "beta");
  if (p.decay.defined()) {
    p.decay_width = p.decay.rank() == 3 ? p.decay.dim(2) : 0;
    if (p.decay.shape() != Shape{p.batch, p.length, p.decay_width} ||
        (p.decay_width != p.heads.kv && p.decay_width != p.heads.kv * p.d_k)) {
      c.fail("decay must be [{},{},{} or {}], received {}", p.batch, p.length, p.heads.kv, p.heads.kv * p.d_k,
             p.decay.type_string());
    }
  }
  if (p.beta.defined()) {
    p.beta_width = p.beta.rank() == 3 ? p.beta.dim(2) : 0;
    if (p.beta.shape() != Shape{p.batch, p.length, p.beta_width} || (p.beta_width != p.heads.kv && p.beta_width != 1)) {
      c.fail("beta must be [{},{},{} or 1], received {}", p.batch, p.length, p.heads.kv, p.beta.type_string());
    }
  }
  const float scale = attr.scale;
  p.scale = scale != 0.0F ? scale : 1.0F / std::sqrt(static_cast<float>(std::max<std::int64_t>(1, p.d_k)));
  return p;
}

void decay_state(const Problem& p, std::int64_t token, std::int64_t head, float* state) {
  const auto* decay = static_cast<const float*>(p.decay.data()) + token * p.decay_width;
  const bool per_key = p.decay_width != p.heads.kv;
  for (std::int64_t i = 0; i < p.d_k; ++i) {
    const float factor = std::exp(per_key ? decay[head * p.d_k + i] : decay[head]);
    for (std::int64_t j = 0; j < p.d_v; ++j) state[i * p.d_v + j] *= factor;
  }
}

// One token of one key head: state [d_k, d_v] += key (outer) update. `update` is scratch of d_v elements.
void add_token(const Problem& p, std::int64_t token, std::int64_t head, float* state, float* update) {
  const float* key = static_cast<const float*>(p.k.data()) + (token * p.heads.kv + head) * p.d_k;
  const float* value = static_cast<const float*>(p.v.data()) + (token * p.heads.kv + head) * p.d_v;
  std::copy_n(value, p.d_v, update);
  if (p.rule.corrects) {
    for (std::int64_t i = 0; i < p.d_k; ++i) {
      for (std::int64_t j = 0; j < p.d_v; ++j) update[j] -= key[i] * state[i * p.d_v + j];
    }
    const auto* beta = static_cast<const float*>(p.beta.data()) + token * p.beta_width;
    const float rate = p.beta_width == 1 ? beta[0] : beta[head];
    for (std::int64_t j = 0; j < p.d_v; ++j) update[j] *= rate;
  }
  for (std::int64_t i = 0; i < p.d_k; ++i) {
    for (std::int64_t j = 0; j < p.d_v; ++j) state[i * p.d_v + j] += key[i] * update[j];
  }
}

void read_state(const Problem& p, std::int64_t token, std::int64_t head, const float* state, float* out) {
  const std::int64_t group = p.heads.out() / p.heads.kv;  // outputs of this key head
  const std::int64_t shared = p.heads.out() / p.heads.q;  // outputs of one query head
  for (std::int64_t h = head * group; h < (head + 1) * group; ++h) {
    const float* query = static_cast<const float*>(p.q.data()) + (token * p.heads.q + h / shared) * p.d_k;
    float* y = out + (token * p.heads.out() + h) * p.d_v;
    std::fill_n(y, p.d_v, 0.0F);
    for (std::int64_t i = 0; i < p.d_k; ++i) {
      for (std::int64_t j = 0; j < p.d_v; ++j) y[j] += p.scale * query[i] * state[i * p.d_v + j];
    }
  }
}

// All tokens of one key head of one sequence. The states of the window, `stride` elements apart, are set as their tokens come by;
// the last is the running one. Slots of tokens before the first stay zero.
void run_head(OpContext& c, const Problem& p, std::int64_t sequence, std::int64_t head, float* states, std::int64_t stride,
              float* out) {
  std::vector<float> update(static_cast<std::size_t>(p.d_v));
  const std::int64_t slots = std::max<std::int64_t>(1, p.window);
  float* running = states + (slots - 1) * stride;
  for (std::int64_t t = 0; t < p.length; ++t) {
    c.stop().check();
    const std::int64_t token = sequence * p.length + t;
    if (p.rule.decays) decay_state(p, token, head, running);
    add_token(p, token, head, running, update.data());
    read_state(p, token, head, running, out);
    const std::int64_t slot = t - (p.length - slots);
    if (slot >= 0 && slot < slots - 1) std::copy_n(running, p.d_k * p.d_v, states + slot * stride);
  }
}

void run_linear_attention(OpContext& c) {
  const Problem p = problem_of(c);
  Shape shape{p.batch, p.heads.kv, p.d_k, p.d_v};
  const std::int64_t stride = element_count(shape);
  if (p.window > 0) shape.insert(shape.begin(), p.window);
  const DataType elem = c.input(kQuery).dtype();
  Tensor state(DataType::float32, shape);
  auto* states = static_cast<float*>(state.mutable_data());
  DataType state_type = elem;
  if (const Tensor* past = c.optional_input(kPast)) {
    if (past->shape() != shape) c.fail("past_state must be {}, received {}", to_string(shape), past->type_string());
    convert_into(state, *past);
    if (p.window > 1) std::fill_n(states, (p.window - 1) * stride, 0.0F);
    state_type = past->dtype();
  } else {
    std::fill_n(states, state.size(), 0.0F);
  }
  Tensor y(DataType::float32, {p.batch, p.length, p.heads.out() * p.d_v});
  const bool nothing = y.size() == 0 && state.size() == 0;
  auto* out = static_cast<float*>(y.mutable_data());
  parallel_for(nothing ? 0 : p.batch * p.heads.kv, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      run_head(c, p, i / p.heads.kv, i % p.heads.kv, states + i * p.d_k * p.d_v, stride, out);
    }
  });
  convert_into(c.output(0, elem, y.shape()), y);
  convert_into(c.output(1, state_type, shape), state);
}

OpDef definition(const char* domain, int since) {
  return OpDef(domain, "LinearAttention", since)
      .in("query key value", "T", types::floats)
      .in("past_state", "S", types::floats, Arity::optional)
      .in("decay beta", "T", types::floats, Arity::optional)
      .out("output", "T", types::floats)
      .out("present_state", "S", types::floats, Arity::optional)
      .attrs<LinearAttentionAttrs>()
      .infer_with(infer_linear_attention)
      .run_with(run_linear_attention);
}

}  // namespace

void register_linear_attention(OpTable& t) {
  t.add(definition("", 27));
  t.add(definition("com.microsoft", 1));
}

}  // namespace sdx::ops
