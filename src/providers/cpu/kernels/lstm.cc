// LSTM in float32 with its default activations and constant weights.

#include <algorithm>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/recurrent.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/packed.h"
#include "providers/cpu/recurrent_parts.h"

namespace sdx::cpu {
namespace {

enum In : std::size_t { kX, kW, kR, kB, kLengths, kH0, kC0, kPeephole };

// One direction's weights: W' and R' as right operands, the sum of both biases.
struct Direction {
  Packed w, r;
  std::vector<float> bias, peephole;
  bool reverse = false;
};

constexpr std::int64_t kFewRows = 6;  // a register tile; with more rows reading the weights is not what takes the time

struct LstmState : KernelState {
  std::int64_t seq = 0, batch = 0;
};

class LstmKernel : public Kernel {
 public:
  LstmKernel(std::vector<Direction> directions, std::int64_t input, std::int64_t hidden, float clip)
      : directions_(std::move(directions)), input_(input), hidden_(hidden), clip_(clip) {}
  std::string_view name() const override { return "lstm-f32"; }
  bool uses_input(std::size_t i) const override { return i == kX || i == kH0 || i == kC0; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    const Shape x = c.input_shape(kX);
    auto state = std::make_unique<LstmState>();
    state->seq = x[0];
    state->batch = x[1];
    const Shape states{static_cast<std::int64_t>(directions_.size()), x[1], hidden_};
    for (const std::size_t i : {kH0, kC0}) {
      if (c.has_input(i) && c.input_shape(i) != states) {
        fail(ErrorCode::runtime_failure, "an initial state of LSTM must be {}, received {}", to_string(states),
             to_string(c.input_shape(i)));
      }
    }
    if (x[2] != input_) fail(ErrorCode::runtime_failure, "LSTM's X is {}; W expects {} features", to_string(x), input_);
    // The gates of all steps, and one step's h and c.
    const std::int64_t floats = element_count(Shape{x[0], x[1], 4 * hidden_}) + element_count(Shape{2, x[1], hidden_});
    c.workspace_bytes = static_cast<std::size_t>(floats) * sizeof(float);
    return state;
  }

  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const LstmState*>(c.state);
    for (std::size_t d = 0; d < directions_.size(); ++d) run_direction(c, s, d);
  }

 private:
  void run_direction(const KernelContext& c, const LstmState& s, std::size_t number) const {
    const Direction& d = directions_[number];
    const std::int64_t state_size = s.batch * hidden_;
    const auto at = static_cast<std::int64_t>(number) * state_size;
    auto* gates = static_cast<float*>(c.workspace);
    float* h = gates + s.seq * s.batch * 4 * hidden_;
    float* cell = h + state_size;
    initial_state(c, kH0, at, h, state_size);
    initial_state(c, kC0, at, cell, state_size);
    GemmArgs g;
    g.m = s.seq * s.batch;
    g.n = 4 * hidden_;
    g.k = input_;
    g.a = c.in<float>(kX);
    g.lda = input_;
    g.packed_b = d.w.data();
    g.c = gates;
    g.ldc = g.n;
    if (!d.bias.empty()) g.epilogue.bias = d.bias.data();
    gemm_f32(g);
    float* y = c.has_output(0) ? c.out<float>(0) : nullptr;
    for (std::int64_t step = 0; step < s.seq; ++step) {
      c.services->stop().check();
      const std::int64_t t = d.reverse ? s.seq - 1 - step : step;
      float* now = gates + t * s.batch * 4 * hidden_;
      GemmArgs r;
      r.m = s.batch;
      r.n = 4 * hidden_;
      r.k = hidden_;
      r.a = h;
      r.lda = hidden_;
      r.packed_b = d.r.data();
      r.c = now;
      r.ldc = r.n;
      r.epilogue.residual = now;
      r.epilogue.ld_residual = r.n;
      if (s.batch <= kFewRows) r.sweep = step % 2 == 0 ? 1 : -1;
      gemm_f32(r);
      for (std::int64_t row = 0; row < s.batch; ++row) {
        lstm_cell_f32(now + row * 4 * hidden_, d.peephole.empty() ? nullptr : d.peephole.data(), clip_, cell + row * hidden_,
                      cell + row * hidden_, h + row * hidden_, hidden_);
      }
      if (y != nullptr) std::copy_n(h, state_size, y + t * static_cast<std::int64_t>(directions_.size()) * state_size + at);
    }
    if (c.has_output(1)) std::copy_n(h, state_size, c.out<float>(1) + at);
    if (c.has_output(2)) std::copy_n(cell, state_size, c.out<float>(2) + at);
  }

  std::vector<Direction> directions_;
  std::int64_t input_, hidden_;
  float clip_;
};

std::unique_ptr<Kernel> make_lstm(LowerContext& c) {
  if (c.dtype(kX) != DataType::float32) return c.refuse("not float32");
  if (c.node().version < 7) return c.refuse("opset before 7");
  const ops::RecurrentAttrs a = ops::read_recurrent_attrs(c.attrs(), ops::Cell::lstm);
  if (a.batch_first) return c.refuse("the batch is the first axis");
  if (a.input_forget) return c.refuse("input and forget gates are coupled");
  if (!default_activations(a, 3)) return c.refuse("other activations than Sigmoid, Tanh, Tanh");
  if (c.has_input(kLengths)) return c.refuse("sequences of different lengths");
  const Tensor *w = c.constant(kW), *r = c.constant(kR), *b = c.constant(kB), *p = c.constant(kPeephole);
  if (w == nullptr || r == nullptr || (c.has_input(kB) && b == nullptr) || (c.has_input(kPeephole) && p == nullptr)) {
    return c.refuse("the weights are not constant");
  }
  if (w->dtype() != DataType::float32 || w->rank() != 3 || r->rank() != 3 || w->size() == 0 || r->size() == 0) {
    return c.refuse("weights of another rank, or empty");
  }
  const std::int64_t n = a.directions(), hidden = r->shape()[2], input = w->shape()[2], gates = 4 * hidden;
  if (w->shape() != Shape{n, gates, input} || r->shape() != Shape{n, gates, hidden} ||
      (b != nullptr && b->shape() != Shape{n, 2 * gates}) || (p != nullptr && p->shape() != Shape{n, 3 * hidden}) ||
      (a.hidden > 0 && a.hidden != hidden)) {
    return c.refuse("the weights' shapes do not agree");
  }
  std::vector<Direction> directions;
  for (std::int64_t i = 0; i < n; ++i) {
    Direction d;
    d.reverse = a.backward && (i == 1 || !a.forward);
    d.w = packed_gates(c, *w, i * gates, gates, input);
    d.r = packed_gates(c, *r, i * gates, gates, hidden);
    if (b != nullptr) {
      d.bias = constant_piece(*b, i * 2 * gates, gates);
      const std::vector<float> more = constant_piece(*b, i * 2 * gates + gates, gates);
      for (std::size_t j = 0; j < more.size(); ++j) d.bias[j] += more[j];
    }
    if (p != nullptr) d.peephole = constant_piece(*p, i * 3 * hidden, 3 * hidden);
    directions.push_back(std::move(d));
  }
  return std::make_unique<LstmKernel>(std::move(directions), input, hidden, a.clip);
}

}  // namespace

void register_kernels_lstm(KernelTable& t) { t.add("", "LSTM", "lstm-f32", 10, make_lstm); }

}  // namespace sdx::cpu
