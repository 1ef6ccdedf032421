#pragma once
// Recurrent cells: attributes and places of inputs, as the node has them. recurrent.h checks and completes them.

#include "ops/signature.h"

namespace sdx::ops {

// LSTM, GRU, RNN; com.microsoft AttnLSTM, DynamicQuantizeLSTM, LSTMTraining, LSTMGrad, GRUTraining and GRUGrad.
struct RecurrentFields {
  StringList activations;
  FloatList activation_alpha, activation_beta;
  float clip = 0;  // 0: none
  std::string_view direction = "forward";
  std::int64_t hidden_size = 0;  // 0: not given
  bool batch_first = false;
  bool linear_before_reset = false;  // GRU
  bool input_forget = false;         // LSTM

  void fields(auto& f, const OpId& op) {
    f("activation_alpha", activation_alpha);
    f("activation_beta", activation_beta);
    f("activations", activations);
    f("clip", clip);
    f("direction", direction);
    f("hidden_size", hidden_size);
    if (!op.microsoft()) {
      f("layout", batch_first);
      f.unread("output_sequence", AttrKind::i);  // of opset 1
    }
    if (op.name.starts_with("GRU")) f("linear_before_reset", linear_before_reset);
    if (op.name.ends_with("LSTM") || op.name.starts_with("LSTM")) f("input_forget", input_forget);
  }
};
struct RecurrentIn {
  enum Slot : std::size_t { kX, kW, kR, kB, kLengths, kH0, kC0, kPeephole };  // the last two of LSTM
};

// LSTMGrad and GRUGrad; the first does without the bias and the peephole weights.
struct LstmGradIn {
  enum Slot : std::size_t { kX, kW, kR, kLengths, kH0, kC0, kAllH, kAllC, kGates, kDAllH, kDH, kDC };
};
struct GruGradIn {
  enum Slot : std::size_t { kX, kW, kR, kB, kLengths, kH0, kAllH, kGates, kDAllH, kDH };
};

}  // namespace sdx::ops
