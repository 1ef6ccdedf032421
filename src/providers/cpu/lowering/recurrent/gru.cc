// GRU in float32 with its default activations and constant weights.

#include <algorithm>

#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/rows/recurrent.h"
#include "ops/recurrent/signatures.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/packed.h"
#include "providers/cpu/recurrent_parts.h"

namespace sdx::cpu {
namespace {

using enum ops::RecurrentIn::Slot;

// One direction's weights as right operands: W' for all gates, R' for update and reset, R' for the candidate.
struct Direction {
  Packed w, r_gates, r_candidate;
  std::vector<float> bias;            // of X's product: both biases, but W's alone where R's candidate bias is reset as well
  std::vector<float> candidate_bias;  // R's, where it is reset
  bool reverse = false;
};

class GruKernel : public RecurrentKernel<Direction> {
 public:
  GruKernel(std::vector<Direction> directions, std::int64_t input, std::int64_t hidden, bool linear_before_reset)
      : RecurrentKernel(std::move(directions), input, hidden, 3), linear_before_reset_(linear_before_reset) {}
  std::string_view name() const override { return "gru-f32"; }
  bool uses_input(std::size_t i) const override { return i == kX || i == kLengths || i == kH0; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    return resolve_recurrent(c, "GRU", extents(), {kH0}, kStates);
  }

 private:
  static constexpr std::int64_t kStates = 5;  // h, its update and reset gates, its candidate in two forms

  // Computes to = a B + residual + bias, where the residual's rows are 3 hidden apart.
  void product(const float* a, const Packed& b, std::int64_t rows, std::int64_t n, const float* residual, const float* bias,
               float* to) const {
    GemmArgs g;
    g.m = rows;
    g.n = n;
    g.k = hidden_;
    g.a = a;
    g.lda = hidden_;
    g.packed_b = b.data();
    g.c = to;
    g.ldc = n;
    g.epilogue.bias = bias;
    g.epilogue.residual = residual;
    g.epilogue.ld_residual = 3 * hidden_;
    gemm_f32(g);
  }

  // Computes one step. x_sums holds the sums of X for the three gates, `batch` rows.
  void step(const Direction& d, std::int64_t batch, const float* x_sums, float* h, float* gates, float* candidate) const {
    const std::int64_t n = hidden_;
    float* sums = candidate + batch * n;
    product(h, d.r_gates, batch, 2 * n, x_sums, nullptr, gates);
    for (std::int64_t row = 0; row < batch; ++row) {
      float* reset = gates + row * 2 * n + n;
      unary_f32({Unary::sigmoid, 0, 0}, reset, reset, n);
      if (!linear_before_reset_) binary_f32(Binary::mul, reset, h + row * n, candidate + row * n, n);
    }
    if (linear_before_reset_) {
      product(h, d.r_candidate, batch, n, nullptr, d.candidate_bias.empty() ? nullptr : d.candidate_bias.data(), candidate);
      for (std::int64_t row = 0; row < batch; ++row) {
        float* to = candidate + row * n;
        binary_f32(Binary::mul, gates + row * 2 * n + n, to, to, n);
        binary_f32(Binary::add, x_sums + row * 3 * n + 2 * n, to, to, n);
      }
    } else {
      // The product may not overwrite what it reads. Its residual is the candidates' sums of X.
      product(candidate, d.r_candidate, batch, n, x_sums + 2 * n, nullptr, sums);
    }
    for (std::int64_t row = 0; row < batch; ++row) {
      gru_combine_f32(gates + row * 2 * n, (linear_before_reset_ ? candidate : sums) + row * n, h + row * n, h + row * n, n);
    }
  }

  void run_direction(const KernelContext& c, const RecurrentState& s, std::size_t number) const override {
    const Direction& d = directions_[number];
    const std::int64_t state_size = s.batch * hidden_, at = static_cast<std::int64_t>(number) * state_size;
    Workspace w = workspace_of(c, s, number);
    const RecurrentMemory m = recurrent_memory(w, s, extents(), kStates);
    const Sequences q = sequences_of(c, s, m);
    float* h = m.states;
    float* gates = h + state_size;
    float* candidate = gates + 2 * state_size;
    initial_state(c, kH0, at, q, hidden_, h);
    input_sums(c, s, extents(), d.w, d.bias, m.sums);
    const RecurrentOutput y = output_of(c, number);
    for (std::int64_t i = 0; i < q.steps(); ++i) {
      c.services->stop().check();
      step(d, q.active(i), sums_of_step(q, i, d.reverse, 3 * hidden_, m.sums, m.now), h, gates, candidate);
      y.store(q, i, d.reverse, h);
    }
    y.pad(q);
    last_state(c, 1, at, q, hidden_, h);
  }

  bool linear_before_reset_;
};

Direction pack_direction(LowerContext& c, const Tensor& w, const Tensor& r, const Tensor* b, std::int64_t i,
                         bool linear_before_reset) {
  const std::int64_t hidden = r.shape()[2], input = w.shape()[2], gates = 3 * hidden;
  Direction d;
  d.w = packed_gates(c, w, i * gates, gates, input);
  d.r_gates = packed_gates(c, r, i * gates, 2 * hidden, hidden);
  d.r_candidate = packed_gates(c, r, i * gates + 2 * hidden, hidden, hidden);
  if (b == nullptr) return d;
  d.bias = constant_piece(*b, i * 2 * gates, gates);
  const std::vector<float> more = constant_piece(*b, i * 2 * gates + gates, gates);
  const std::int64_t joined = linear_before_reset ? 2 * hidden : gates;
  for (std::int64_t j = 0; j < joined; ++j) d.bias[static_cast<std::size_t>(j)] += more[static_cast<std::size_t>(j)];
  if (linear_before_reset) d.candidate_bias.assign(more.begin() + 2 * hidden, more.end());
  return d;
}

std::unique_ptr<Kernel> make_gru(LowerContext& c) {
  if (c.dtype(kX) != DataType::float32) return c.refuse("not float32");
  if (c.node().version < 7) return c.refuse("opset before 7");
  const ops::RecurrentAttrs a = ops::read_recurrent_attrs(c.node(), ops::Cell::gru);
  if (a.batch_first) return c.refuse("the batch is the first axis");
  if (a.clip > 0) return c.refuse("sums are clipped");
  if (!default_activations(a, 2)) return c.refuse("other activations than Sigmoid, Tanh");
  const Tensor *w = c.constant(kW), *r = c.constant(kR), *b = c.constant(kB);
  if (w == nullptr || r == nullptr || (c.has_input(kB) && b == nullptr)) return c.refuse("the weights are not constant");
  if (w->dtype() != DataType::float32 || w->rank() != 3 || r->rank() != 3 || w->size() == 0 || r->size() == 0) {
    return c.refuse("weights of another rank, or empty");
  }
  const std::int64_t n = a.directions(), hidden = r->shape()[2], input = w->shape()[2], gates = 3 * hidden;
  if (w->shape() != Shape{n, gates, input} || r->shape() != Shape{n, gates, hidden} ||
      (b != nullptr && b->shape() != Shape{n, 2 * gates}) || (a.hidden > 0 && a.hidden != hidden)) {
    return c.refuse("the weights' shapes do not agree");
  }
  std::vector<Direction> directions;
  for (std::int64_t i = 0; i < n; ++i) {
    directions.push_back(pack_direction(c, *w, *r, b, i, a.linear_before_reset));
    directions.back().reverse = a.backward && (i == 1 || !a.forward);
  }
  return std::make_unique<GruKernel>(std::move(directions), input, hidden, a.linear_before_reset);
}

}  // namespace

void register_kernels_gru(KernelTable& t) { t.add("", "GRU", "gru-f32", 10, make_gru); }

}  // namespace sdx::cpu
