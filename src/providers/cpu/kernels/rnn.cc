// RNN in float32 with Tanh or Relu and constant weights.

#include <algorithm>

#include "kernels/cpu/gemm.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/packed.h"
#include "providers/cpu/recurrent_parts.h"

namespace sdx::cpu {
namespace {

enum In : std::size_t { kX, kW, kR, kB, kLengths, kH0 };

// One direction's weights as right operands, the sum of both biases.
struct Direction {
  Packed w, r;
  std::vector<float> bias;
  UnarySpec act;
  bool reverse = false;
};

constexpr std::int64_t kFewRows = 6;  // as for LSTM

struct RnnState : KernelState {
  std::int64_t seq = 0, batch = 0;
};

class RnnKernel : public Kernel {
 public:
  RnnKernel(std::vector<Direction> directions, std::int64_t input, std::int64_t hidden)
      : directions_(std::move(directions)), input_(input), hidden_(hidden) {}
  std::string_view name() const override { return "rnn-f32"; }
  bool uses_input(std::size_t i) const override { return i == kX || i == kH0; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    const Shape x = c.input_shape(kX);
    auto state = std::make_unique<RnnState>();
    state->seq = x[0];
    state->batch = x[1];
    const Shape states{static_cast<std::int64_t>(directions_.size()), x[1], hidden_};
    if (c.has_input(kH0) && c.input_shape(kH0) != states) {
      fail(ErrorCode::runtime_failure, "the initial state of RNN must be {}, received {}", to_string(states),
           to_string(c.input_shape(kH0)));
    }
    if (x[2] != input_) fail(ErrorCode::runtime_failure, "RNN's X is {}; W expects {} features", to_string(x), input_);
    // The sums of all steps, which become their states, and the state before the first one.
    const std::int64_t floats = element_count(Shape{x[0], x[1], hidden_}) + element_count(Shape{x[1], hidden_});
    c.workspace_bytes = static_cast<std::size_t>(floats) * sizeof(float);
    return state;
  }

  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const RnnState*>(c.state);
    for (std::size_t d = 0; d < directions_.size(); ++d) run_direction(c, s, d);
  }

 private:
  void run_direction(const KernelContext& c, const RnnState& s, std::size_t number) const {
    const Direction& d = directions_[number];
    const std::int64_t state_size = s.batch * hidden_;
    const auto at = static_cast<std::int64_t>(number) * state_size;
    auto* sums = static_cast<float*>(c.workspace);
    float* first = sums + s.seq * state_size;
    initial_state(c, kH0, at, first, state_size);
    GemmArgs g;
    g.m = s.seq * s.batch;
    g.n = hidden_;
    g.k = input_;
    g.a = c.in<float>(kX);
    g.lda = input_;
    g.packed_b = d.w.data();
    g.c = sums;
    g.ldc = g.n;
    if (!d.bias.empty()) g.epilogue.bias = d.bias.data();
    gemm_f32(g);
    float* y = c.has_output(0) ? c.out<float>(0) : nullptr;
    const float* h = first;
    for (std::int64_t step = 0; step < s.seq; ++step) {
      c.services->stop().check();
      const std::int64_t t = d.reverse ? s.seq - 1 - step : step;
      float* now = sums + t * state_size;
      GemmArgs r;
      r.m = s.batch;
      r.n = hidden_;
      r.k = hidden_;
      r.a = h;
      r.lda = hidden_;
      r.packed_b = d.r.data();
      r.c = now;
      r.ldc = r.n;
      r.epilogue.residual = now;
      r.epilogue.ld_residual = r.n;
      r.epilogue.act = d.act;
      if (s.batch <= kFewRows) r.sweep = step % 2 == 0 ? 1 : -1;
      gemm_f32(r);
      h = now;
      if (y != nullptr) std::copy_n(h, state_size, y + t * static_cast<std::int64_t>(directions_.size()) * state_size + at);
    }
    if (c.has_output(1)) std::copy_n(h, state_size, c.out<float>(1) + at);
  }

  std::vector<Direction> directions_;
  std::int64_t input_, hidden_;
};

std::unique_ptr<Kernel> make_rnn(LowerContext& c) {
  if (c.dtype(kX) != DataType::float32) return c.refuse("not float32");
  if (c.node().version < 7) return c.refuse("opset before 7");
  const ops::RecurrentAttrs a = ops::read_recurrent_attrs(c.attrs(), ops::Cell::rnn);
  if (a.batch_first) return c.refuse("the batch is the first axis");
  if (a.clip > 0) return c.refuse("sums are clipped");
  const auto known = [](const ops::RecurrentActivation& f) {
    return f.kind == ops::ActivationKind::tanh || f.kind == ops::ActivationKind::relu;
  };
  if (!std::all_of(a.activations.begin(), a.activations.end(), known)) return c.refuse("other activations than Tanh and Relu");
  if (c.has_input(kLengths)) return c.refuse("sequences of different lengths");
  const Tensor *w = c.constant(kW), *r = c.constant(kR), *b = c.constant(kB);
  if (w == nullptr || r == nullptr || (c.has_input(kB) && b == nullptr)) return c.refuse("the weights are not constant");
  if (w->dtype() != DataType::float32 || w->rank() != 3 || r->rank() != 3 || w->size() == 0 || r->size() == 0) {
    return c.refuse("weights of another rank, or empty");
  }
  const std::int64_t n = a.directions(), hidden = r->shape()[2], input = w->shape()[2];
  if (w->shape() != Shape{n, hidden, input} || r->shape() != Shape{n, hidden, hidden} ||
      (b != nullptr && b->shape() != Shape{n, 2 * hidden}) || (a.hidden > 0 && a.hidden != hidden)) {
    return c.refuse("the weights' shapes do not agree");
  }
  if (a.activations.size() != static_cast<std::size_t>(n)) return c.refuse("activations for another number of directions");
  std::vector<Direction> directions;
  for (std::int64_t i = 0; i < n; ++i) {
    Direction d;
    d.reverse = a.backward && (i == 1 || !a.forward);
    const bool relu = a.activations[static_cast<std::size_t>(i)].kind == ops::ActivationKind::relu;
    d.act = {relu ? Unary::relu : Unary::tanh};
    d.w = packed_gates(c, *w, i * hidden, hidden, input);
    d.r = packed_gates(c, *r, i * hidden, hidden, hidden);
    if (b != nullptr) {
      d.bias = constant_piece(*b, i * 2 * hidden, hidden);
      const std::vector<float> more = constant_piece(*b, i * 2 * hidden + hidden, hidden);
      for (std::size_t j = 0; j < more.size(); ++j) d.bias[j] += more[j];
    }
    directions.push_back(std::move(d));
  }
  return std::make_unique<RnnKernel>(std::move(directions), input, hidden);
}

}  // namespace

void register_kernels_rnn(KernelTable& t) { t.add("", "RNN", "rnn-f32", 10, make_rnn); }

}  // namespace sdx::cpu
