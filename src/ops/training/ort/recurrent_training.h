#pragma once
// com.microsoft LSTMTraining, LSTMGrad, GRUTraining, GRUGrad: forward over one direction with what backward needs, and backward.
// Source: ONNX Runtime 1.19, orttraining/training_ops/cpu/rnn. As there, LSTMGrad does not know the peephole weights: gradients
// do not flow through them.
//
// All arrays are dense. steps S, batch N, input I, hidden H, gates G (4 or 3): X [S,N,I], W [G*H,I], R [G*H,H], bias [2*G*H]
// (null: none), states [N,H] (null: zeros), all states [S,N,H], gates [S,N,G*H]: what the activations gave, i o f c or z r h.

#include <cstdint>

namespace sdx::ops {

// The parts in which reference and fast kernels differ.
template <class C>
struct RecurrentMath {
  // c [m,n] = op(a) op(b), with c added where `add`. a: [m,k], or [k,m] when trans_a; b: [k,n], or [n,k] when trans_b; dense.
  void (*product)(std::int64_t m, std::int64_t n, std::int64_t k, const C* a, bool trans_a, const C* b, bool trans_b, C* c,
                  bool add);
  void (*sigmoid)(C* values, std::int64_t n);  // in place
  void (*tanh)(C* values, std::int64_t n);
};

// Plain loops.
template <class C>
const RecurrentMath<C>& reference_math();

struct RecurrentSizes {
  std::int64_t steps = 0, batch = 0, input = 0, hidden = 0;
  std::int64_t state() const { return batch * hidden; }
};

template <class C>
struct RecurrentForward {
  RecurrentSizes sizes;
  const C *x = nullptr, *w = nullptr, *r = nullptr, *bias = nullptr, *h0 = nullptr;
  const C *c0 = nullptr, *peephole = nullptr;  // LSTM; [3*H]: input, output, forget
  bool linear_before_reset = false;            // GRU
  C *all_h = nullptr, *gates = nullptr;
  C* all_c = nullptr;  // LSTM
};

template <class C>
void lstm_training(const RecurrentForward<C>& f, const RecurrentMath<C>& math);
template <class C>
void gru_training(const RecurrentForward<C>& f, const RecurrentMath<C>& math);

template <class C>
struct RecurrentBackward {
  RecurrentForward<C> forward;                                                                 // whose outputs are inputs here
  const C *d_all_h = nullptr, *d_h = nullptr, *d_c = nullptr;                                  // null: zeros
  C *d_x = nullptr, *d_w = nullptr, *d_r = nullptr, *d_bias = nullptr, *d_peephole = nullptr;  // null: not wanted
  C *d_h0 = nullptr, *d_c0 = nullptr;                                                          // never null, but d_c0 of GRU
};

template <class C>
void lstm_grad(const RecurrentBackward<C>& b, const RecurrentMath<C>& math);
template <class C>
void gru_grad(const RecurrentBackward<C>& b, const RecurrentMath<C>& math);

}  // namespace sdx::ops
