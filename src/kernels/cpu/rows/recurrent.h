#pragma once
// The pointwise part of recurrent cells in float; the matrix parts are gemm_f32. Float alignment; outputs may be the previous
// state's own arrays. Single-threaded: one row of one time step.

#include <cstdint>

namespace sdx::cpu {

// ONNX LSTM with its default activations. gates: the sums for input, output, forget and cell gates, in this order, `hidden`
// values each. peephole (may be null): input, output, forget, `hidden` values each. clip > 0 clamps the sums to [-clip, clip].
// c = f c_prev + i tanh(g); h = o tanh(c).
void lstm_cell_f32(const float* gates, const float* peephole, float clip, const float* c_prev, float* c, float* h,
                   std::int64_t hidden);

// The end of a GRU step: h = (1 - z) n + z h_prev, with z = sigmoid(z_sum) and n = tanh(n_sum).
void gru_combine_f32(const float* z_sum, const float* n_sum, const float* h_prev, float* h, std::int64_t hidden);

}  // namespace sdx::cpu
