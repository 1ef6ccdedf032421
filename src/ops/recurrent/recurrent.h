#pragma once
// LSTM, GRU and RNN: attributes, shapes and the reference computation. Source: ONNX LSTM-22, GRU-22, RNN-22.

#include <vector>

#include "ops/context.h"

namespace sdx::ops {

enum class Cell : std::uint8_t { rnn, gru, lstm };

// Gates in one weight matrix, and activation functions, per direction.
constexpr std::int64_t gates_of(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }
constexpr std::size_t activations_of(Cell cell) { return cell == Cell::lstm ? 3 : cell == Cell::gru ? 2 : 1; }

enum class ActivationKind : std::uint8_t {
  relu,
  tanh,
  sigmoid,
  affine,
  leaky_relu,
  thresholded_relu,
  scaled_tanh,
  hard_sigmoid,
  elu,
  softsign,
  softplus
};

struct RecurrentActivation {
  ActivationKind kind = ActivationKind::tanh;
  float alpha = 0, beta = 0;
};

struct RecurrentAttrs {
  bool forward = true, backward = false;         // both: bidirectional
  bool batch_first = false;                      // layout 1
  std::int64_t hidden = 0;                       // 0: not given
  float clip = 0;                                // 0: none
  bool linear_before_reset = false;              // GRU
  bool input_forget = false;                     // LSTM
  std::vector<RecurrentActivation> activations;  // activations_of(cell) for each direction

  std::int64_t directions() const { return forward && backward ? 2 : 1; }
};

// Throws Error(invalid_model).
RecurrentAttrs read_recurrent_attrs(const Node& node, Cell cell);

// values[i] = activation(values[i]); C is float or double.
template <class C>
void activate(const RecurrentActivation& activation, C* values, std::int64_t n);

void infer_recurrent(InferContext& c, Cell cell);
// `round_states`, if given, changes the previous hidden states that a step reads: [rows, hidden] of the sequences that have not
// ended. For float32.
void run_recurrent(OpContext& c, Cell cell,
                   void (*round_states)(float* states, std::int64_t rows, std::int64_t hidden, std::int64_t batch) = nullptr);

}  // namespace sdx::ops
