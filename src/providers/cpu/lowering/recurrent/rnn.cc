// RNN in float32 with Tanh or Relu and constant weights.

#include <algorithm>

#include "kernels/cpu/gemm/gemm.h"
#include "ops/recurrent/signatures.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/packed.h"
#include "providers/cpu/recurrent_parts.h"

namespace sdx::cpu {
namespace {

using enum ops::RecurrentIn::Slot;

// One direction's weights as right operands, the sum of both biases.
struct Direction {
  Packed w, r;
  std::vector<float> bias;
  UnarySpec act;
  bool reverse = false;
};

class RnnKernel : public RecurrentKernel<Direction> {
 public:
  RnnKernel(std::vector<Direction> directions, std::int64_t input, std::int64_t hidden)
      : RecurrentKernel(std::move(directions), input, hidden, 1) {}
  std::string_view name() const override { return "rnn-f32"; }
  bool uses_input(std::size_t i) const override { return i == kX || i == kLengths || i == kH0; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    return resolve_recurrent(c, "RNN", extents(), {kH0}, 1);
  }

 private:
  void run_direction(const KernelContext& c, const RecurrentState& s, std::size_t number) const override {
    const Direction& d = directions_[number];
    const auto at = static_cast<std::int64_t>(number) * s.batch * hidden_;
    Workspace w = workspace_of(c, s, number);
    const RecurrentMemory m = recurrent_memory(w, s, extents(), 1);
    const Sequences q = sequences_of(c, s, m);
    float* h = m.states;
    initial_state(c, kH0, at, q, hidden_, h);
    input_sums(c, s, extents(), d.w, d.bias, m.sums);
    const RecurrentOutput y = output_of(c, number);
    for (std::int64_t step = 0; step < q.steps(); ++step) {
      c.services->stop().check();
      const std::int64_t rows = q.active(step);
      float* now = sums_of_step(q, step, d.reverse, hidden_, m.sums, m.now);
      add_recurrent(rows, extents(), step, h, d.r, d.act, now);
      std::copy_n(now, rows * hidden_, h);
      y.store(q, step, d.reverse, h);
    }
    y.pad(q);
    last_state(c, 1, at, q, hidden_, h);
  }
};

std::unique_ptr<Kernel> make_rnn(LowerContext& c) {
  if (c.dtype(kX) != DataType::float32) return c.refuse("not float32");
  if (c.node().version < 7) return c.refuse("opset before 7");
  const ops::RecurrentAttrs a = ops::read_recurrent_attrs(c.node(), ops::Cell::rnn);
  if (a.batch_first) return c.refuse("the batch is the first axis");
  if (a.clip > 0) return c.refuse("sums are clipped");
  const auto known = [](const ops::RecurrentActivation& f) {
    return f.kind == ops::ActivationKind::tanh || f.kind == ops::ActivationKind::relu;
  };
  if (!std::all_of(a.activations.begin(), a.activations.end(), known)) return c.refuse("other activations than Tanh and Relu");
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
    if (b != nullptr) d.bias = both_biases(*b, i * 2 * hidden, hidden);
    directions.push_back(std::move(d));
  }
  return std::make_unique<RnnKernel>(std::move(directions), input, hidden);
}

}  // namespace

void register_kernels_rnn(KernelTable& t) { t.add("", "RNN", "rnn-f32", 10, make_rnn); }

}  // namespace sdx::cpu
