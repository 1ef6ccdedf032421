// LSTM in float32 with its default activations and constant weights.

#include "ops/recurrent/signatures.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/lstm_steps.h"
#include "providers/cpu/packed.h"

namespace sdx::cpu {
namespace {

using enum ops::RecurrentIn::Slot;

// One direction's weights: W' and R' as right operands, the sum of both biases.
struct Direction {
  Packed w, r;
  std::vector<float> bias, peephole;
  bool reverse = false;
};

class LstmKernel : public RecurrentKernel<Direction> {
 public:
  LstmKernel(std::vector<Direction> directions, std::int64_t input, std::int64_t hidden, float clip)
      : RecurrentKernel(std::move(directions), input, hidden, 4), clip_(clip) {}
  std::string_view name() const override { return "lstm-f32"; }
  bool uses_input(std::size_t i) const override { return i == kX || i == kLengths || i == kH0 || i == kC0; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    return resolve_recurrent(c, "LSTM", extents(), {kH0, kC0}, kLstmStates);
  }

 private:
  void run_direction(const KernelContext& c, const RecurrentState& s, std::size_t number) const override {
    const Direction& d = directions_[number];
    Workspace w = workspace_of(c, s, number);
    const RecurrentMemory m = recurrent_memory(w, s, extents(), kLstmStates);
    input_sums(c, s, extents(), d.w, d.bias, m.sums);
    run_lstm(c, sequences_of(c, s, m), m, output_of(c, number),
             {d.peephole.empty() ? nullptr : d.peephole.data(), clip_, d.reverse},
             [&](std::int64_t rows, std::int64_t step, const float* h, float* sums) {
               add_recurrent(rows, extents(), step, h, d.r, {}, sums);
               return sums;
             });
  }

  float clip_;
};

std::unique_ptr<Kernel> make_lstm(LowerContext& c) {
  if (c.dtype(kX) != DataType::float32) return c.refuse("not float32");
  if (c.node().version < 7) return c.refuse("opset before 7");
  const ops::RecurrentAttrs a = ops::read_recurrent_attrs(c.node(), ops::Cell::lstm);
  if (a.batch_first) return c.refuse("the batch is the first axis");
  if (a.input_forget) return c.refuse("input and forget gates are coupled");
  if (!default_activations(a, 3)) return c.refuse("other activations than Sigmoid, Tanh, Tanh");
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
    if (b != nullptr) d.bias = both_biases(*b, i * 2 * gates, gates);
    if (p != nullptr) d.peephole = constant_piece(*p, i * 3 * hidden, 3 * hidden);
    directions.push_back(std::move(d));
  }
  return std::make_unique<LstmKernel>(std::move(directions), input, hidden, a.clip);
}

}  // namespace

void register_kernels_lstm(KernelTable& t) { t.add("", "LSTM", "lstm-f32", 10, make_lstm); }

}  // namespace sdx::cpu
