#include "ops/recurrent/text_states.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/thread_pool.h"
#include "ops/math/elementwise.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct GatedDeltaAttrs {
  std::int64_t key_heads = 0;
  bool tiled = false;
  float epsilon = 1e-6F;

  void fields(auto& f) {
    f.required("key_heads", key_heads);
    f("tiled", tiled);
    f("epsilon", epsilon);
  }
};

struct SelectiveScanAttrs {
  std::int64_t groups = 0;
  float least_step = 0.0F, most_step = std::numeric_limits<float>::infinity();

  void fields(auto& f) {
    f.required("groups", groups);
    f("least_step", least_step);
    f("most_step", most_step);
  }
};

LinearStates states_of(const Shape& x, const Shape& state, std::int64_t key_heads) {
  if (x.size() != 3 || x[0] != 1)
    fail(ErrorCode::runtime_failure, "the tokens must be [1,tokens,features], received {}", to_string(x));
  if (state.size() != 4 || state[1] < 1 || state[2] < 1 || state[3] < 1)
    fail(ErrorCode::runtime_failure, "the state must be [slots,heads,rows,columns], received {}", to_string(state));
  LinearStates s;
  s.tokens = x[1], s.slots = state[0], s.heads = state[1], s.rows = state[2], s.columns = state[3];
  s.key_heads = key_heads;
  if (key_heads < 1 || s.heads % key_heads != 0)
    fail(ErrorCode::runtime_failure, "{} heads cannot share the keys of {}", s.heads, key_heads);
  const std::int64_t features = element_count(Shape{s.heads, s.columns}) + 2 * element_count(Shape{key_heads, s.rows});
  if (x[2] != features) fail(ErrorCode::runtime_failure, "there are {} features of a token, expected {}", x[2], features);
  return s;
}

void expect(const Shape& shape, const Shape& expected, const char* what) {
  if (shape != expected)
    fail(ErrorCode::runtime_failure, "{} must be {}, received {}", what, to_string(expected), to_string(shape));
}

void infer_linear(InferContext& c, std::size_t state) {
  const SymShape *x = c.shape(0), *pool = c.shape(state);
  if (pool != nullptr && pool->size() != 4) c.fail("the state must have 4 axes, received {}", to_string(*pool));
  Dim width;
  if (pool != nullptr) width = (*pool)[1] * (*pool)[3];
  c.output(0, DataType::float32, {Dim(1), x != nullptr && x->size() == 3 ? (*x)[1] : Dim(), width});
  if (pool != nullptr) {
    c.output(1, DataType::float32, *pool);
  } else {
    c.output(1, DataType::float32);
  }
}

void infer_delta(InferContext& c) { infer_linear(c, GatedDeltaIn::kState); }
void infer_scan(InferContext& c) { infer_linear(c, SelectiveScanIn::kState); }

std::vector<Shape> shapes_of(const OpContext& c, std::size_t count) {
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < count; ++i) shapes.push_back(c.has_input(i) ? c.input(i).shape() : Shape());
  return shapes;
}
std::vector<const float*> floats_of(const OpContext& c, std::size_t count) {
  std::vector<const float*> floats;
  for (std::size_t i = 0; i < count; ++i)
    floats.push_back(c.has_input(i) ? static_cast<const float*>(c.input(i).data()) : nullptr);
  return floats;
}

// The pool that takes the new states: a copy, unless the output is bound to the input's memory.
float* taken_over(OpContext& c, std::size_t input) {
  const Tensor& from = c.input(input);
  Tensor& to = c.output(1, from.dtype(), from.shape());
  if (to.data() != from.data() && from.bytes() != 0)
    std::copy_n(static_cast<const float*>(from.data()), from.size(), static_cast<float*>(to.mutable_data()));
  return static_cast<float*>(to.mutable_data());
}

// One head of one token.
void step(const LinearStates& s, const LinearTokens& x, std::int64_t t, std::int64_t h, float* state, float* y) {
  const float *k = x.k + t * x.key_row + s.key_head(h) * s.rows, *q = x.q + t * x.key_row + s.key_head(h) * s.rows;
  const float* v = x.v + t * x.value_row + h * s.columns;
  const float decay = x.decay[t * s.heads + h], rate = x.rate[t * s.heads + h];
  for (std::int64_t j = 0; j < s.columns; ++j) {
    float known = 0.0F, answer = x.skip != nullptr ? x.skip[h] * v[j] : 0.0F;
    for (std::int64_t i = 0; i < s.rows; ++i) known += state[i * s.columns + j] * k[i];
    const float change = rate * (s.corrects ? v[j] - decay * known : v[j]);
    for (std::int64_t i = 0; i < s.rows; ++i) {
      float& e = state[i * s.columns + j];
      e = decay * e + k[i] * change;
      answer += e * q[i];
    }
    y[j] = answer;
  }
}

void run_linear(OpContext& c, const LinearStates& s, const LinearTokens& x, std::size_t state) {
  const TextStates texts = checked_texts(s.tokens, s.slots, c.input(state + 1), c.input(state + 2), c.input(state + 3));
  float* pool = taken_over(c, state);
  auto* y = static_cast<float*>(c.output(0, DataType::float32, {1, s.tokens, s.heads * s.columns}).mutable_data());
  for (std::int64_t n = 0; n < texts.texts; ++n) {
    if (texts.length(n) == 0) continue;
    float* to = pool + texts.to(n) * s.state_size();
    if (texts.begins(n)) {
      std::fill_n(to, s.state_size(), 0.0F);
    } else if (texts.to(n) != texts.from(n)) {
      std::copy_n(pool + texts.from(n) * s.state_size(), s.state_size(), to);
    }
    for (std::int64_t t = texts.starts[n]; t < texts.starts[n + 1]; ++t) {
      c.stop().check();
      for (std::int64_t h = 0; h < s.heads; ++h) step(s, x, t, h, to + h * s.rows * s.columns, y + (t * s.heads + h) * s.columns);
    }
  }
}

void run_gated_delta(OpContext& c) {
  const LinearStates s = gated_delta(c.node(), shapes_of(c, GatedDeltaIn::kCount));
  std::vector<float> workspace(static_cast<std::size_t>(linear_workspace(s)));
  run_linear(c, s, gated_delta_tokens(s, floats_of(c, GatedDeltaIn::kState), workspace.data()), GatedDeltaIn::kState);
}

void run_selective_scan(OpContext& c) {
  const LinearStates s = selective_scan(c.node(), shapes_of(c, SelectiveScanIn::kCount));
  std::vector<float> workspace(static_cast<std::size_t>(linear_workspace(s)));
  run_linear(c, s, selective_scan_tokens(s, floats_of(c, SelectiveScanIn::kState), workspace.data()), SelectiveScanIn::kState);
}

void infer_convolution(InferContext& c) {
  using enum StateConvolutionIn::Slot;
  c.shape(kX) != nullptr ? c.output(0, DataType::float32, *c.shape(kX)) : c.output(0, DataType::float32);
  c.shape(kState) != nullptr ? c.output(1, DataType::float32, *c.shape(kState)) : c.output(1, DataType::float32);
}

void run_convolution(OpContext& c) {
  using enum StateConvolutionIn::Slot;
  const StateConvolution s = state_convolution(shapes_of(c, kCount));
  const TextStates texts = checked_texts(s.tokens, s.slots, c.input(kStarts), c.input(kPast), c.input(kSlots));
  const auto in = floats_of(c, kState);
  float* pool = taken_over(c, kState);
  auto* y = static_cast<float*>(c.output(0, DataType::float32, c.input(kX).shape()).mutable_data());
  const std::int64_t before = s.taps - 1, size = before * s.channels;
  std::vector<float> rows;  // the state's, and those of the text's tokens
  for (std::int64_t n = 0; n < texts.texts; ++n) {
    const std::int64_t length = texts.length(n);
    if (length == 0) continue;
    rows.assign(static_cast<std::size_t>((before + length) * s.channels), 0.0F);
    if (!texts.begins(n)) std::copy_n(pool + texts.from(n) * size, size, rows.data());
    std::copy_n(in[kX] + texts.starts[n] * s.channels, length * s.channels, rows.data() + size);
    for (std::int64_t t = 0; t < length; ++t) {
      for (std::int64_t j = 0; j < s.channels; ++j) {
        float sum = in[kBias] != nullptr ? in[kBias][j] : 0.0F;
        for (std::int64_t i = 0; i < s.taps; ++i)
          sum += in[kWeights][i * s.channels + j] * rows[static_cast<std::size_t>((t + i) * s.channels + j)];
        y[(texts.starts[n] + t) * s.channels + j] = sum;
      }
    }
    std::copy_n(rows.data() + length * s.channels, size, pool + texts.to(n) * size);
  }
}

}  // namespace

TextStates checked_texts(std::int64_t tokens, std::int64_t count, const Tensor& starts, const Tensor& past, const Tensor& slots) {
  TextStates t;
  t.texts = past.size(), t.tokens = tokens;
  if (starts.size() != t.texts + 1 || slots.shape() != Shape{t.texts, 2})
    fail(ErrorCode::runtime_failure, "{} texts need sequence_starts [{}] and state_slots [{},2], received {} and {}", t.texts,
         t.texts + 1, t.texts, to_string(starts.shape()), to_string(slots.shape()));
  t.starts = static_cast<const std::int64_t*>(starts.data()), t.past = static_cast<const std::int64_t*>(past.data());
  t.slots = static_cast<const std::int32_t*>(slots.data());
  if (t.starts[0] != 0 || t.starts[t.texts] != tokens || !std::is_sorted(t.starts, t.starts + t.texts + 1))
    fail(ErrorCode::runtime_failure, "sequence_starts must rise from 0 to the {} tokens, received {} to {}", tokens, t.starts[0],
         t.starts[t.texts]);
  std::map<std::int64_t, std::int64_t> writers;
  for (std::int64_t s = 0; s < t.texts; ++s) {
    if (t.past[s] < 0) fail(ErrorCode::runtime_failure, "past_lengths of text {} is {}; it must not be negative", s, t.past[s]);
    if (t.length(s) == 0) continue;
    if (t.to(s) < 0 || t.to(s) >= count || (!t.begins(s) && (t.from(s) < 0 || t.from(s) >= count)))
      fail(ErrorCode::runtime_failure, "state_slots of text {} are {} and {}; there are {} slots", s, t.from(s), t.to(s), count);
    if (!writers.emplace(t.to(s), s).second) fail(ErrorCode::runtime_failure, "two texts would write slot {}", t.to(s));
  }
  for (std::int64_t s = 0; s < t.texts; ++s) {
    if (t.length(s) == 0 || t.begins(s)) continue;
    const auto writer = writers.find(t.from(s));
    if (writer != writers.end() && writer->second != s)
      fail(ErrorCode::runtime_failure, "slot {} is read by a text and written by another", t.from(s));
  }
  return t;
}

LinearStates gated_delta(const Node& node, std::span<const Shape> shapes) {
  using enum GatedDeltaIn::Slot;
  const auto attr = parse<GatedDeltaAttrs>(node);
  LinearStates s = states_of(shapes[kQkv], shapes[kState], attr.key_heads);
  s.corrects = true, s.tiled = attr.tiled, s.epsilon = attr.epsilon;
  for (const std::size_t i : {kAlpha, kBeta}) expect(shapes[i], {1, s.tokens, s.heads}, "alpha and beta");
  for (const std::size_t i : {kA, kTimeBias}) expect(shapes[i], {s.heads}, "a and time_bias");
  return s;
}

LinearStates selective_scan(const Node& node, std::span<const Shape> shapes) {
  using enum SelectiveScanIn::Slot;
  const auto attr = parse<SelectiveScanAttrs>(node);
  LinearStates s = states_of(shapes[kXbc], shapes[kState], attr.groups);
  s.least = attr.least_step, s.most = attr.most_step;
  expect(shapes[kTime], {1, s.tokens, s.heads}, "time");
  for (const std::size_t i : {kA, kTimeBias, kSkip}) expect(shapes[i], {s.heads}, "a, time_bias and skip");
  return s;
}

std::int64_t linear_workspace(const LinearStates& s) {
  return element_count(Shape{s.tokens, 2 * s.heads + (s.corrects ? 2 * s.key_heads * s.rows : 0)});
}

LinearTokens gated_delta_tokens(const LinearStates& s, std::span<const float* const> in, float* workspace) {
  using enum GatedDeltaIn::Slot;
  const std::int64_t keys = s.key_heads * s.rows, features = 2 * keys + s.heads * s.columns;
  float *decay = workspace, *rate = decay + s.tokens * s.heads, *q = rate + s.tokens * s.heads, *k = q + s.tokens * keys;
  parallel_for(s.tokens, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      for (std::int64_t h = 0; h < s.heads; ++h) {
        const std::int64_t at = t * s.heads + h;
        decay[at] = std::exp(in[kA][h] * softplus(in[kAlpha][at] + in[kTimeBias][h]));
        rate[at] = logistic(in[kBeta][at]);
      }
      const auto normalise = [&](const float* from, float scale, float* to) {
        for (std::int64_t h = 0; h < s.key_heads; ++h, from += s.rows, to += s.rows) {
          float square = 0.0F;
          for (std::int64_t i = 0; i < s.rows; ++i) square += from[i] * from[i];
          const float factor = scale / std::sqrt(square + s.epsilon);
          for (std::int64_t i = 0; i < s.rows; ++i) to[i] = from[i] * factor;
        }
      };
      const float* row = in[kQkv] + t * features;
      normalise(row, 1.0F / std::sqrt(static_cast<float>(s.rows)), q + t * keys);
      normalise(row + keys, 1.0F, k + t * keys);
    }
  });
  return {q, k, in[kQkv] + 2 * keys, keys, features, decay, rate, nullptr};
}

LinearTokens selective_scan_tokens(const LinearStates& s, std::span<const float* const> in, float* workspace) {
  using enum SelectiveScanIn::Slot;
  float *decay = workspace, *rate = decay + s.tokens * s.heads;
  for (std::int64_t t = 0; t < s.tokens; ++t) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const std::int64_t at = t * s.heads + h;
      rate[at] = std::min(std::max(softplus(in[kTime][at] + in[kTimeBias][h]), s.least), s.most);
      decay[at] = std::exp(in[kA][h] * rate[at]);
    }
  }
  const std::int64_t values = s.heads * s.columns, keys = s.key_heads * s.rows, features = values + 2 * keys;
  return {in[kXbc] + values + keys, in[kXbc] + values, in[kXbc], features, features, decay, rate, in[kSkip]};
}

StateConvolution state_convolution(std::span<const Shape> shapes) {
  using enum StateConvolutionIn::Slot;
  const Shape &x = shapes[kX], &w = shapes[kWeights], &state = shapes[kState];
  if (x.size() != 3 || x[0] != 1 || w.size() != 2 || w[0] < 1 || w[1] != x[2])
    fail(ErrorCode::runtime_failure, "X must be [1,tokens,channels] and weights [taps,channels], received {} and {}",
         to_string(x), to_string(w));
  if (state.size() != 3 || state[1] != w[0] - 1 || state[2] != x[2])
    fail(ErrorCode::runtime_failure, "the state must be [slots,{},{}], received {}", w[0] - 1, x[2], to_string(state));
  if (!shapes[kBias].empty()) expect(shapes[kBias], {x[2]}, "bias");
  return {x[1], x[2], w[0], state[0]};
}

void register_text_states(OpTable& t) {
  constexpr TypeSet kFloat = bit(DataType::float32), kInt = bit(DataType::int32);
  const auto add = [&](OpDef d, InferFn infer, RunFn run) {
    d.in("state", "T", kFloat).in("sequence_starts past_lengths", "", types::int64).in("state_slots", "", kInt);
    d.out("Y new_state", "T", kFloat);
    t.add(std::move(d).infer_with(infer).run_with(run));
  };
  OpDef delta("sdx", "GatedDelta", 1), scan("sdx", "SelectiveScan", 1), convolution("sdx", "StateConvolution", 1);
  delta.in("qkv alpha beta a time_bias", "T", kFloat).attrs<GatedDeltaAttrs>();
  add(std::move(delta), infer_delta, run_gated_delta);
  scan.in("xbc time a time_bias skip", "T", kFloat).attrs<SelectiveScanAttrs>();
  add(std::move(scan), infer_scan, run_selective_scan);
  convolution.in("X weights", "T", kFloat).in("bias", "T", kFloat, Arity::optional);
  add(std::move(convolution), infer_convolution, run_convolution);
}

}  // namespace sdx::ops
