#include "kernels/cpu/rows/recurrent.h"

#include "kernels/cpu/rows/recurrent_simd.h"

namespace sdx::cpu {

void lstm_cell_f32(const float* gates, const float* peephole, float clip, const float* c_prev, float* c, float* h,
                   std::int64_t hidden) {
  recurrent_kernels().lstm(gates, peephole, clip, c_prev, c, h, hidden);
}

void gru_combine_f32(const float* z_sum, const float* n_sum, const float* h_prev, float* h, std::int64_t hidden) {
  recurrent_kernels().gru(z_sum, n_sum, h_prev, h, hidden);
}

}  // namespace sdx::cpu
