#pragma once
// Operators of domain sdx whose state of each text lies in a slot of a pool, for the tokens of several texts flat behind each
// other. Their last inputs are the pools, sequence_starts, past_lengths and state_slots; docs/design/text-states.md describes
// them.

#include <cstdint>
#include <vector>

#include <sdx/tensor.hpp>

#include "ops/context.h"

namespace sdx::ops {

// The texts of a step. Text s has the tokens [starts[s], starts[s + 1]); its state is read from one slot and written to another,
// or to the same.
struct TextStates {
  std::int64_t texts = 0, tokens = 0;
  const std::int64_t *starts = nullptr, *past = nullptr;
  const std::int32_t* slots = nullptr;  // [texts, 2]

  std::int64_t length(std::int64_t s) const { return starts[s + 1] - starts[s]; }
  bool begins(std::int64_t s) const { return past[s] == 0; }  // its state is zeros, and is not read
  std::int64_t from(std::int64_t s) const { return slots[2 * s]; }
  std::int64_t to(std::int64_t s) const { return slots[2 * s + 1]; }
};

// Throws Error(runtime_failure) where starts do not rise from 0 to `tokens`, slots are none of `count`, or a slot is written that
// another text reads or writes.
TextStates checked_texts(std::int64_t tokens, std::int64_t count, const Tensor& starts, const Tensor& past, const Tensor& slots);

// A matrix for each head and text: S = decay S + k d', d = rate (v - decay S' k) or rate v, and the answer S' q, where S is
// [rows, columns]. Heads may share keys and queries.
struct LinearStates {
  std::int64_t tokens = 0, heads = 0, key_heads = 0, rows = 0, columns = 0, slots = 0;
  bool corrects = false;            // the rule of deltas
  bool tiled = false;               // head h has the keys of h % key_heads; else neighbours share them
  float epsilon = 0.0F;             // of keys' and queries' norms, where they are normalised
  float least = 0.0F, most = 0.0F;  // of time steps

  std::int64_t key_head(std::int64_t h) const { return tiled ? h % key_heads : h / (heads / key_heads); }
  std::int64_t state_size() const { return heads * rows * columns; }
};

// What a step's tokens do to the states.
struct LinearTokens {
  const float *q = nullptr, *k = nullptr, *v = nullptr;  // of token 0
  std::int64_t key_row = 0, value_row = 0;               // from token to token
  const float *decay = nullptr, *rate = nullptr;         // [tokens, heads]
  const float* skip = nullptr;                           // [heads]: times v, is added to answers; null: none
};

struct GatedDeltaIn {
  enum Slot : std::size_t { kQkv, kAlpha, kBeta, kA, kTimeBias, kState, kStarts, kPast, kSlots, kCount };
};
struct SelectiveScanIn {
  enum Slot : std::size_t { kXbc, kTime, kA, kTimeBias, kSkip, kState, kStarts, kPast, kSlots, kCount };
};
struct StateConvolutionIn {
  enum Slot : std::size_t { kX, kWeights, kBias, kState, kStarts, kPast, kSlots, kCount };
};

// From attributes and the inputs' shapes. Throw Error(runtime_failure | invalid_model).
LinearStates gated_delta(const Node& node, std::span<const Shape> shapes);
LinearStates selective_scan(const Node& node, std::span<const Shape> shapes);
// Floats of workspace for the two below.
std::int64_t linear_workspace(const LinearStates& s);
LinearTokens gated_delta_tokens(const LinearStates& s, std::span<const float* const> inputs, float* workspace);
LinearTokens selective_scan_tokens(const LinearStates& s, std::span<const float* const> inputs, float* workspace);

// Rows of taps behind each other: y[t] = bias + the sum of weights[i] x[t - taps + 1 + i]. The state is the last taps - 1 rows.
struct StateConvolution {
  std::int64_t tokens = 0, channels = 0, taps = 0, slots = 0;
};
StateConvolution state_convolution(std::span<const Shape> shapes);

}  // namespace sdx::ops
