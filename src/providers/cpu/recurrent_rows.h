#pragma once
// The sequences of a batch that still have steps, and their positions.

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "providers/interface/kernel.h"

namespace sdx::cpu {

// The sequences of a batch in the order of computation. If their lengths differ, the longest come first, so that those that still
// have steps are always the first.
class Sequences {
 public:
  // All have `seq` steps.
  Sequences(std::int64_t seq, std::int64_t batch) : seq_(seq), batch_(batch), steps_(seq) {}
  // lengths: `batch` values. memory: 2 `batch` values, needed as long as this is.
  Sequences(std::int64_t seq, std::int64_t batch, const std::int32_t* lengths, std::int64_t* memory)
      : seq_(seq), batch_(batch), steps_(0) {
    std::int64_t shortest = seq;
    for (std::int64_t i = 0; i < batch; ++i) {
      if (lengths[i] < 0 || lengths[i] > seq) {
        fail(ErrorCode::runtime_failure, "sequence_lens holds {}; permitted: 0 to {}", lengths[i], seq);
      }
      steps_ = std::max<std::int64_t>(steps_, lengths[i]);
      shortest = std::min<std::int64_t>(shortest, lengths[i]);
    }
    if (shortest >= steps_) return;
    for (std::int64_t i = 0; i < batch; ++i) memory[i] = i;
    std::sort(memory, memory + batch,
              [&](std::int64_t a, std::int64_t b) { return lengths[a] != lengths[b] ? lengths[a] > lengths[b] : a < b; });
    order_ = memory;
    lengths_ = memory + batch;
    for (std::int64_t i = 0; i < batch; ++i) memory[batch + i] = lengths[memory[i]];
  }

  // Whether the i-th sequence is the batch's i-th row, and all have steps().
  bool in_order() const { return order_ == nullptr; }
  std::int64_t batch() const { return batch_; }
  std::int64_t padded_steps() const { return seq_; }
  std::int64_t steps() const { return steps_; }  // of the longest
  std::int64_t row(std::int64_t i) const { return in_order() ? i : order_[i]; }
  std::int64_t length(std::int64_t i) const { return in_order() ? steps_ : lengths_[i]; }
  std::int64_t time(std::int64_t i, std::int64_t step, bool reverse) const { return reverse ? length(i) - 1 - step : step; }
  // The number of sequences with more than `step` steps.
  std::int64_t active(std::int64_t step) const {
    if (in_order()) return step < steps_ ? batch_ : 0;
    return std::partition_point(lengths_, lengths_ + batch_, [&](std::int64_t n) { return n > step; }) - lengths_;
  }

 private:
  std::int64_t seq_, batch_, steps_;
  const std::int64_t* order_ = nullptr;
  const std::int64_t* lengths_ = nullptr;
};

// Sums of X, [steps, batch, width], of the sequences that have this step: in place, or gathered in `now`.
inline float* sums_of_step(const Sequences& q, std::int64_t step, bool reverse, std::int64_t width, float* sums, float* now) {
  if (q.in_order()) return sums + q.time(0, step, reverse) * q.batch() * width;
  for (std::int64_t i = 0; i < q.active(step); ++i) {
    std::copy_n(sums + (q.time(i, step, reverse) * q.batch() + q.row(i)) * width, width, now + i * width);
  }
  return now;
}

// One direction's part of Y, [steps, directions, batch, hidden]; null if it is not wanted.
struct RecurrentOutput {
  float* y;
  std::int64_t directions, number, hidden;

  float* at(const Sequences& q, std::int64_t t, std::int64_t row) const {
    return y + ((t * directions + number) * q.batch() + row) * hidden;
  }
  // The states h after this step, in the sequences' order.
  void store(const Sequences& q, std::int64_t step, bool reverse, const float* h) const {
    if (y == nullptr) return;
    if (q.in_order()) {
      std::copy_n(h, q.batch() * hidden, at(q, q.time(0, step, reverse), 0));
      return;
    }
    for (std::int64_t i = 0; i < q.active(step); ++i) {
      std::copy_n(h + i * hidden, hidden, at(q, q.time(i, step, reverse), q.row(i)));
    }
  }
  // Zeros behind the sequences' ends.
  void pad(const Sequences& q) const {
    if (y == nullptr) return;
    for (std::int64_t i = 0; i < q.batch(); ++i) {
      for (std::int64_t t = q.length(i); t < q.padded_steps(); ++t) std::fill_n(at(q, t, q.row(i)), hidden, 0.0F);
    }
  }
};

// One direction's initial states, which begin `at` values inside the input, in the sequences' order; zeros where it is left out.
inline void initial_state(const KernelContext& c, std::size_t input, std::int64_t at, const Sequences& q, std::int64_t hidden,
                          float* to) {
  if (!c.has_input(input)) {
    std::fill_n(to, q.batch() * hidden, 0.0F);
    return;
  }
  const float* from = c.in<float>(input) + at;
  for (std::int64_t i = 0; i < q.batch(); ++i) std::copy_n(from + q.row(i) * hidden, hidden, to + i * hidden);
}

// One direction's last states to where they begin in the output.
inline void last_state(const KernelContext& c, std::size_t output, std::int64_t at, const Sequences& q, std::int64_t hidden,
                       const float* from) {
  if (!c.has_output(output)) return;
  float* to = c.out<float>(output) + at;
  for (std::int64_t i = 0; i < q.batch(); ++i) std::copy_n(from + i * hidden, hidden, to + q.row(i) * hidden);
}

}  // namespace sdx::cpu
