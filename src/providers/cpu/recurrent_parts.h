#pragma once
// What the kernels of recurrent cells share.

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/cpu/gemm/gemm.h"
#include "ops/recurrent/recurrent.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {

// Part [begin, begin + count) of a float32 constant, which may lie unaligned.
inline std::vector<float> constant_piece(const Tensor& t, std::int64_t begin, std::int64_t count) {
  std::vector<float> v(static_cast<std::size_t>(count));
  std::memcpy(v.data(), static_cast<const char*>(t.data()) + begin * 4, v.size() * sizeof(float));
  return v;
}

// Rows [begin, begin + count) of the weights w, `width` floats each, as right operand of a product.
inline Packed packed_gates(LowerContext& c, const Tensor& w, std::int64_t begin, std::int64_t count, std::int64_t width) {
  return c.pack({&w}, packed_b_bytes(width, count), cache::PackKey("gates", begin, count, width), [&](float* to) {
    pack_b_f32(static_cast<const char*>(w.data()) + begin * width * 4, width, true, width, count, 1.0F, to);
  });
}

// The sum of both biases of `count` gates' rows, of which the second's lie behind the first's.
inline std::vector<float> both_biases(const Tensor& b, std::int64_t begin, std::int64_t count) {
  std::vector<float> sum = constant_piece(b, begin, count);
  const std::vector<float> more = constant_piece(b, begin + count, count);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
  return sum;
}

struct RecurrentState : KernelState {
  std::int64_t seq = 0, batch = 0;
};

// Extents of weights: a step has `gates` sums for each of the hidden units.
struct RecurrentExtents {
  std::int64_t directions, input, hidden, gates;
};

// X's extents, checked with those of the initial states. The workspace holds X's sums of all steps and `spare` states.
inline std::unique_ptr<RecurrentState> resolve_recurrent(ResolveContext& c, std::string_view op, const RecurrentExtents& e,
                                                         std::initializer_list<std::size_t> initial, std::int64_t spare) {
  const Shape x = c.input_shape(0);
  auto state = std::make_unique<RecurrentState>();
  state->seq = x[0];
  state->batch = x[1];
  const Shape states{e.directions, x[1], e.hidden};
  for (const std::size_t i : initial) {
    if (c.has_input(i) && c.input_shape(i) != states) {
      fail(ErrorCode::runtime_failure, "{} initial state of {} must be {}, received {}", initial.size() == 1 ? "the" : "an", op,
           to_string(states), to_string(c.input_shape(i)));
    }
  }
  if (x[2] != e.input) fail(ErrorCode::runtime_failure, "{}'s X is {}; W expects {} features", op, to_string(x), e.input);
  const std::int64_t floats = element_count(Shape{x[0], x[1], e.gates * e.hidden}) + element_count(Shape{spare, x[1], e.hidden});
  c.workspace_bytes = static_cast<std::size_t>(floats) * sizeof(float);
  return state;
}

// X's sums of all steps: X W' + bias.
inline void input_sums(const KernelContext& c, const RecurrentState& s, const RecurrentExtents& e, const Packed& w,
                       const std::vector<float>& bias, float* sums) {
  GemmArgs g;
  g.m = s.seq * s.batch;
  g.n = e.gates * e.hidden;
  g.k = e.input;
  g.a = c.in<float>(0);
  g.lda = e.input;
  g.packed_b = w.data();
  g.c = sums;
  g.ldc = g.n;
  if (!bias.empty()) g.epilogue.bias = bias.data();
  gemm_f32(g);
}

// sums = act(sums + h R'), of one step. With a few rows the weights come from memory for one product each: the steps go through
// them by turns up and down. More rows read them from caches.
inline void add_recurrent(const RecurrentState& s, const RecurrentExtents& e, std::int64_t step, const float* h, const Packed& r,
                          UnarySpec act, float* sums) {
  constexpr std::int64_t kFewRows = 6;
  GemmArgs g;
  g.m = s.batch;
  g.n = e.gates * e.hidden;
  g.k = e.hidden;
  g.a = h;
  g.lda = e.hidden;
  g.packed_b = r.data();
  g.c = sums;
  g.ldc = g.n;
  g.epilogue.residual = sums;
  g.epilogue.ld_residual = g.n;
  g.epilogue.act = act;
  if (s.batch <= kFewRows) g.sweep = step % 2 == 0 ? 1 : -1;
  gemm_f32(g);
}

// Values [at, at + count) of an initial state, zeros where it is left out.
inline void initial_state(const KernelContext& c, std::size_t input, std::int64_t at, float* to, std::int64_t count) {
  if (c.has_input(input)) {
    std::copy_n(c.in<float>(input) + at, count, to);
  } else {
    std::fill_n(to, count, 0.0F);
  }
}

// Whether every direction has Sigmoid and then only Tanh, the defaults.
inline bool default_activations(const ops::RecurrentAttrs& a, std::size_t per_direction) {
  using Kind = ops::ActivationKind;
  for (std::size_t i = 0; i < a.activations.size(); ++i) {
    if (a.activations[i].kind != (i % per_direction == 0 ? Kind::sigmoid : Kind::tanh)) return false;
  }
  return true;
}

// Runs one direction after the other. Direction: packed weights.
template <class Direction>
class RecurrentKernel : public Kernel {
 public:
  void run(const KernelContext& c) const final {
    const auto& s = *static_cast<const RecurrentState*>(c.state);
    for (std::size_t d = 0; d < directions_.size(); ++d) run_direction(c, s, d);
  }

 protected:
  RecurrentKernel(std::vector<Direction> directions, std::int64_t input, std::int64_t hidden, std::int64_t gates)
      : directions_(std::move(directions)), input_(input), hidden_(hidden), gates_(gates) {}
  virtual void run_direction(const KernelContext& c, const RecurrentState& s, std::size_t number) const = 0;
  RecurrentExtents extents() const { return {static_cast<std::int64_t>(directions_.size()), input_, hidden_, gates_}; }

  std::vector<Direction> directions_;
  std::int64_t input_, hidden_, gates_;
};

}  // namespace sdx::cpu
