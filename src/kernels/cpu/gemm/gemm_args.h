#pragma once
// Views products with coded weights as products of floats.

#include "kernels/cpu/gemm/gemm.h"

namespace sdx::cpu {

// Everything but the weights: all argument types use the same names for sizes, activations, bias, activation function and output.
template <class CodedArgs>
GemmArgs gemm_args_of(const CodedArgs& a) {
  GemmArgs g;
  g.m = a.m, g.n = a.n, g.k = a.k;
  g.a = a.a, g.lda = a.lda;
  g.c = a.c, g.ldc = a.ldc;
  g.epilogue.bias = a.bias;
  g.epilogue.act = a.act;
  return g;
}

}  // namespace sdx::cpu
