#pragma once
// The steps of an LSTM, for any kind of weights.

#include <cstdint>

#include "kernels/cpu/rows/recurrent.h"
#include "providers/cpu/recurrent_parts.h"

namespace sdx::cpu {

struct LstmCell {
  const float* peephole;  // may be null
  float clip;             // 0: none
  bool reverse;
};

constexpr std::int64_t kLstmStates = 2;  // h and c

// One direction. m.sums holds X's sums, the biases among them. add(rows, step, h, sums) gives the gates of a step, `rows` rows:
// the sums, which it may overwrite, plus h R'.
template <class Add>
void run_lstm(const KernelContext& c, const Sequences& q, const RecurrentMemory& m, const RecurrentOutput& y,
              const LstmCell& cell, Add&& add) {
  using enum ops::RecurrentIn::Slot;
  const std::int64_t n = y.hidden, at = y.number * q.batch() * n;
  float* h = m.states;
  float* state = h + q.batch() * n;
  initial_state(c, kH0, at, q, n, h);
  initial_state(c, kC0, at, q, n, state);
  for (std::int64_t step = 0; step < q.steps(); ++step) {
    c.services->stop().check();
    const std::int64_t rows = q.active(step);
    const float* gates = add(rows, step, h, sums_of_step(q, step, cell.reverse, 4 * n, m.sums, m.now));
    for (std::int64_t i = 0; i < rows; ++i) {
      lstm_cell_f32(gates + i * 4 * n, cell.peephole, cell.clip, state + i * n, state + i * n, h + i * n, n);
    }
    y.store(q, step, cell.reverse, h);
  }
  y.pad(q);
  last_state(c, 1, at, q, n, h);
  last_state(c, 2, at, q, n, state);
}

}  // namespace sdx::cpu
