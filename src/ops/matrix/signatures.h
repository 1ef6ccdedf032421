#pragma once
// Matrix products: attributes and places of inputs.

#include "ops/signature.h"

namespace sdx::ops {

// Gemm, FusedGemm.
struct GemmAttrs {
  float alpha = 1, beta = 1;
  bool trans_a = false, trans_b = false;
  bool broadcast = false;  // of C; always since opset 7

  void fields(auto& f, const OpId& op) {
    f("alpha", alpha);
    f("beta", beta);
    f("transA", trans_a);
    f("transB", trans_b);
    if (op.domain.empty() && op.version < 7) f("broadcast", broadcast);
  }
  // A x B + C, perhaps with B transposed.
  bool plain() const { return !trans_a && alpha == 1 && beta == 1; }
};
struct GemmIn {
  enum Slot : std::size_t { kA, kB, kC };
};

// com.microsoft FusedMatMul, TransposeMatMul, FusedMatMulActivation.
struct FusedMatMulAttrs {
  float alpha = 1;
  bool trans_a = false, trans_b = false;              // the last two axes change places
  bool trans_batch_a = false, trans_batch_b = false;  // the first axis moves before the last

  void fields(auto& f) {
    f("alpha", alpha);
    f("transA", trans_a);
    f("transB", trans_b);
    f("transBatchA", trans_batch_a);
    f("transBatchB", trans_batch_b);
  }
};

// sdx Linear: activation(X x W + B + Z).
struct LinearAttrs {
  bool trans_b = false;
  bool bfloat16 = false;  // X and W stand for bfloat16 tensors, and kernels may round them

  void fields(auto& f) {
    f("transB", trans_b);
    f("bfloat16", bfloat16);
  }
};
struct LinearIn {
  enum Slot : std::size_t { kX, kW, kB, kZ };
};

struct EinsumAttrs {
  std::string_view equation;

  void fields(auto& f) { f.required("equation", equation); }
};

// com.microsoft CDist.
struct CDistAttrs {
  std::string_view metric = "sqeuclidean";

  void fields(auto& f) { f("metric", metric); }
};

}  // namespace sdx::ops
