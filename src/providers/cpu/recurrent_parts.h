#pragma once
// Shared by the kernels of recurrent cells.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm/gemm.h"
#include "ops/recurrent/recurrent.h"
#include "ops/recurrent/signatures.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/recurrent_rows.h"

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

// The sum of both biases of `count` gates' rows; the second bias follows the first.
inline std::vector<float> both_biases(const Tensor& b, std::int64_t begin, std::int64_t count) {
  std::vector<float> sum = constant_piece(b, begin, count);
  const std::vector<float> more = constant_piece(b, begin + count, count);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
  return sum;
}

struct RecurrentState : KernelState {
  std::int64_t seq = 0, batch = 0;
  bool lengths = false;   // sequence_lens is there
  bool together = false;  // two directions at the same time
  std::size_t each = 0;   // bytes of workspace for a direction
};

// Extents of weights: a step has `gates` sums for each of the hidden units.
struct RecurrentExtents {
  std::int64_t directions, input, hidden, gates;
  std::int64_t width() const { return gates * hidden; }
};

// Allocates pieces of a workspace, 64-byte aligned. Without one (null) it counts the bytes needed.
class Workspace {
 public:
  explicit Workspace(void* memory = nullptr) : memory_(static_cast<std::byte*>(memory)) {}
  template <class T>
  T* take(const Shape& extents) {
    std::byte* at = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += (static_cast<std::size_t>(element_count(extents)) * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(at);
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

struct RecurrentMemory {
  float* sums;          // X's of all steps
  float* states;        // as many as the cell asks for, [batch, hidden] each
  float* now;           // X's sums of one step, where sequences may differ in length
  std::int64_t* order;  // for Sequences
};

inline RecurrentMemory recurrent_memory(Workspace& w, const RecurrentState& s, const RecurrentExtents& e, std::int64_t states) {
  RecurrentMemory m{};
  m.sums = w.take<float>({s.seq, s.batch, e.width()});
  m.states = w.take<float>({states, s.batch, e.hidden});
  if (s.lengths) {
    m.now = w.take<float>({s.batch, e.width()});
    m.order = w.take<std::int64_t>({2, s.batch});
  }
  return m;
}

// Two directions keep two threads busy throughout, where threads that share the product of each step meet twice a step: a
// bidirectional LSTM of 256 units gained nothing from a second thread. More threads share large products with more gain.
inline bool at_the_same_time(const RecurrentState& s, const RecurrentExtents& e) {
  constexpr std::int64_t kSmallStep = 512 * 1024;  // multiplications, about 20 us
  const int threads = current_pool().threads();
  return e.directions == 2 && threads > 1 && (threads < 4 || s.batch * e.width() * e.hidden <= kSmallStep);
}

// The workspace for directions that need `each` bytes.
inline void size_workspace(ResolveContext& c, RecurrentState& s, const RecurrentExtents& e, std::size_t each) {
  s.each = each;
  s.together = at_the_same_time(s, e);
  c.workspace_bytes = each * (s.together ? 2 : 1);
}

// X's extents, checked with those of the lengths and initial states. The workspace is recurrent_memory()'s.
inline std::unique_ptr<RecurrentState> resolve_recurrent(ResolveContext& c, std::string_view op, const RecurrentExtents& e,
                                                         std::initializer_list<std::size_t> initial, std::int64_t states) {
  const Shape x = c.input_shape(0);
  auto state = std::make_unique<RecurrentState>();
  state->seq = x[0];
  state->batch = x[1];
  state->lengths = c.has_input(ops::RecurrentIn::kLengths);
  const Shape expected{e.directions, x[1], e.hidden};
  for (const std::size_t i : initial) {
    if (c.has_input(i) && c.input_shape(i) != expected) {
      fail(ErrorCode::runtime_failure, "{} initial state of {} must be {}, received {}", initial.size() == 1 ? "the" : "an", op,
           to_string(expected), to_string(c.input_shape(i)));
    }
  }
  if (x[2] != e.input) fail(ErrorCode::runtime_failure, "{}'s X is {}; W expects {} features", op, to_string(x), e.input);
  if (state->lengths && c.input_shape(ops::RecurrentIn::kLengths) != Shape{x[1]}) {
    fail(ErrorCode::runtime_failure, "sequence_lens of {} must be {}, received {}", op, to_string(Shape{x[1]}),
         to_string(c.input_shape(ops::RecurrentIn::kLengths)));
  }
  Workspace w;
  recurrent_memory(w, *state, e, states);
  size_workspace(c, *state, e, w.used());
  return state;
}

// The batch's sequences, as sequence_lens has them.
inline Sequences sequences_of(const KernelContext& c, const RecurrentState& s, const RecurrentMemory& m) {
  if (!s.lengths) return {s.seq, s.batch};
  return {s.seq, s.batch, c.in<std::int32_t>(ops::RecurrentIn::kLengths), m.order};
}

// X's sums of all steps: X W' + bias.
inline void input_sums(const KernelContext& c, const RecurrentState& s, const RecurrentExtents& e, const Packed& w,
                       const std::vector<float>& bias, float* sums) {
  GemmArgs g;
  g.m = s.seq * s.batch;
  g.n = e.width();
  g.k = e.input;
  g.a = c.in<float>(0);
  g.lda = e.input;
  g.packed_b = w.data();
  g.c = sums;
  g.ldc = g.n;
  if (!bias.empty()) g.epilogue.bias = bias.data();
  gemm_f32(g);
}

// sums = act(sums + h R'), `rows` rows of one step. With a few rows the weights come from memory for one product each: the steps
// go through them by turns up and down. More rows read them from caches.
inline void add_recurrent(std::int64_t rows, const RecurrentExtents& e, std::int64_t step, const float* h, const Packed& r,
                          UnarySpec act, float* sums) {
  constexpr std::int64_t kFewRows = 6;
  GemmArgs g;
  g.m = rows;
  g.n = e.width();
  g.k = e.hidden;
  g.a = h;
  g.lda = e.hidden;
  g.packed_b = r.data();
  g.c = sums;
  g.ldc = g.n;
  g.epilogue.residual = sums;
  g.epilogue.ld_residual = g.n;
  g.epilogue.act = act;
  if (rows <= kFewRows) g.sweep = step % 2 == 0 ? 1 : -1;
  gemm_f32(g);
}

// Whether every direction has Sigmoid and then only Tanh, the defaults.
inline bool default_activations(const ops::RecurrentAttrs& a, std::size_t per_direction) {
  using Kind = ops::ActivationKind;
  for (std::size_t i = 0; i < a.activations.size(); ++i) {
    if (a.activations[i].kind != (i % per_direction == 0 ? Kind::sigmoid : Kind::tanh)) return false;
  }
  return true;
}

// Runs one direction after the other, or both at the same time. Direction: packed weights.
template <class Direction>
class RecurrentKernel : public Kernel {
 public:
  void run(const KernelContext& c) const final {
    const auto& s = *static_cast<const RecurrentState*>(c.state);
    const auto run_some = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t d = begin; d < end; ++d) run_direction(c, s, static_cast<std::size_t>(d));
    };
    const auto count = static_cast<std::int64_t>(directions_.size());
    if (s.together) return parallel_for(count, 1, run_some);
    run_some(0, count);
  }

 protected:
  RecurrentKernel(std::vector<Direction> directions, std::int64_t input, std::int64_t hidden, std::int64_t gates)
      : directions_(std::move(directions)), input_(input), hidden_(hidden), gates_(gates) {}
  virtual void run_direction(const KernelContext& c, const RecurrentState& s, std::size_t number) const = 0;
  static Workspace workspace_of(const KernelContext& c, const RecurrentState& s, std::size_t number) {
    return Workspace(static_cast<std::byte*>(c.workspace) + (s.together ? number * s.each : 0));
  }
  RecurrentOutput output_of(const KernelContext& c, std::size_t number) const {
    return {c.has_output(0) ? c.out<float>(0) : nullptr, static_cast<std::int64_t>(directions_.size()),
            static_cast<std::int64_t>(number), hidden_};
  }
  RecurrentExtents extents() const { return {static_cast<std::int64_t>(directions_.size()), input_, hidden_, gates_}; }

  std::vector<Direction> directions_;
  std::int64_t input_, hidden_, gates_;
};

}  // namespace sdx::cpu
