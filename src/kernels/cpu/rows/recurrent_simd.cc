#include "kernels/cpu/rows/recurrent_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows/recurrent_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

void lstm(const float* gates, const float* peephole, float limit, const float* c_prev, float* c, float* h, std::int64_t hidden) {
  const DF d;
  const VF hi = hn::Set(d, limit);
  const VF lo = hn::Neg(hi);
  const auto clamp = [&](VF v) HWY_ATTR { return limit > 0.0F ? clip(v, lo, hi) : v; };
  for (std::int64_t j = 0; j < hidden; j += lanes_f32()) {
    const std::int64_t left = hidden - j;
    VF i = load_floats(gates + j, left);
    VF o = load_floats(gates + hidden + j, left);
    VF f = load_floats(gates + 2 * hidden + j, left);
    const VF g = tanh_f32(clamp(load_floats(gates + 3 * hidden + j, left)));
    const VF before = load_floats(c_prev + j, left);
    if (peephole != nullptr) {
      i = hn::MulAdd(load_floats(peephole + j, left), before, i);
      f = hn::MulAdd(load_floats(peephole + 2 * hidden + j, left), before, f);
    }
    const VF after = hn::MulAdd(sigmoid_f32(clamp(f)), before, hn::Mul(sigmoid_f32(clamp(i)), g));
    if (peephole != nullptr) o = hn::MulAdd(load_floats(peephole + hidden + j, left), after, o);
    store_floats(after, c + j, left);
    store_floats(hn::Mul(sigmoid_f32(clamp(o)), tanh_f32(after)), h + j, left);
  }
}

void gru(const float* z_sum, const float* n_sum, const float* h_prev, float* h, std::int64_t hidden) {
  const DF d;
  for (std::int64_t j = 0; j < hidden; j += lanes_f32()) {
    const std::int64_t left = hidden - j;
    const VF z = sigmoid_f32(load_floats(z_sum + j, left));
    const VF n = tanh_f32(load_floats(n_sum + j, left));
    store_floats(hn::MulAdd(z, load_floats(h_prev + j, left), hn::Mul(hn::Sub(hn::Set(d, 1.0F), z), n)), h + j, left);
  }
}

}  // namespace

const RecurrentKernels& recurrent_table() {
  static const RecurrentKernels table{lstm, gru};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const RecurrentKernels&, recurrent_kernels, recurrent_table)
#endif
