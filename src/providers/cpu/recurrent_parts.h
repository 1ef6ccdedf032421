#pragma once
// What the kernels of recurrent cells share.

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/cpu/gemm.h"
#include "ops/util/recurrent.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {

// Part [begin, begin + count) of a float32 constant, which may lie unaligned.
inline std::vector<float> constant_piece(const Tensor& t, std::int64_t begin, std::int64_t count) {
  std::vector<float> v(static_cast<std::size_t>(count));
  std::memcpy(v.data(), static_cast<const char*>(t.data()) + begin * 4, v.size() * sizeof(float));
  return v;
}

// Rows [begin, begin + count) of the weights w, `width` floats each, as right operand of a product.
inline Packed packed_gates(LowerContext& c, const Tensor& w, std::int64_t begin, std::int64_t count, std::int64_t width) {
  return c.pack({&w}, packed_b_bytes(width, count), PackKey("gates", begin, count, width), [&](float* to) {
    pack_b_f32(static_cast<const char*>(w.data()) + begin * width * 4, width, true, width, count, 1.0F, to);
  });
}

// Values [at, at + count) of an initial state, zeros where it is left out.
inline void initial_state(const KernelContext& c, std::size_t input, std::int64_t at, float* to, std::int64_t count) {
  if (c.has_input(input)) {
    std::copy_n(c.in<float>(input) + at, count, to);
  } else {
    std::fill_n(to, count, 0.0F);
  }
}

// Whether every direction has Sigmoid and then only Tanh, the defaults.
inline bool default_activations(const ops::RecurrentAttrs& a, std::size_t per_direction) {
  using Kind = ops::ActivationKind;
  for (std::size_t i = 0; i < a.activations.size(); ++i) {
    if (a.activations[i].kind != (i % per_direction == 0 ? Kind::sigmoid : Kind::tanh)) return false;
  }
  return true;
}

}  // namespace sdx::cpu
