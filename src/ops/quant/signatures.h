#pragma once
// Quantised operators: attributes and places of inputs.

#include "ops/conv/signatures.h"
#include "ops/signature.h"

namespace sdx::ops {

// QuantizeLinear and DequantizeLinear: axis since opset 13, blocks and types since 21.
struct QuantizeAttrs {
  std::int64_t axis = 1, block_size = 0;
  std::int64_t output_dtype = 0;  // 0: QuantizeLinear: of the zero point; DequantizeLinear: of the scale
  std::int64_t precision = 0;     // QuantizeLinear: type of the division; 0: of the scale
  bool saturate = true;           // QuantizeLinear, to float8

  void fields(auto& f, const OpId& op) {
    const bool quantize = op.name == "QuantizeLinear", newest = op.microsoft() || op.version >= 21;
    if (op.microsoft() || op.version >= 13) f("axis", axis);
    if (quantize && (op.microsoft() || op.version >= 19)) f("saturate", saturate);
    if (!newest) return;
    f("block_size", block_size);
    f("output_dtype", output_dtype);
    if (quantize && !op.microsoft()) f("precision", precision);
  }
};
struct QuantizeIn {
  enum Slot : std::size_t { kX, kScale, kZero };
};

struct QLinearConvAttrs {
  ConvAttrs conv;
  bool channels_last = false;  // com.microsoft: X and Y are [N, spatial..., C]

  void fields(auto& f, const OpId& op) {
    conv.fields(f, op);
    if (op.microsoft()) f("channels_last", channels_last);
  }
};
struct QLinearConvIn {
  enum Slot : std::size_t { kX, kXScale, kXZero, kW, kWScale, kWZero, kYScale, kYZero, kBias };
};

// com.microsoft QLinearAveragePool, QLinearGlobalAveragePool.
struct QLinearPoolAttrs {
  PoolAttrs pool;  // not of the global one
  bool channels_last = false;

  void fields(auto& f, const OpId& op) {
    if (op.name != "QLinearGlobalAveragePool") pool.fields(f, op);
    f("channels_last", channels_last);
  }
};

struct QGemmAttrs {
  float alpha = 1;
  bool trans_a = false, trans_b = false;

  void fields(auto& f) {
    f("alpha", alpha);
    f("transA", trans_a);
    f("transB", trans_b);
  }
};
struct QGemmIn {
  enum Slot : std::size_t { kA, kAScale, kAZero, kB, kBScale, kBZero, kC, kYScale, kYZero };
};
struct QLinearMatMulIn {
  enum Slot : std::size_t { kA, kAScale, kAZero, kB, kBScale, kBZero, kYScale, kYZero };
};

struct QLinearConcatAttrs {
  std::int64_t axis = 0;

  void fields(auto& f) { f.required("axis", axis); }
};

struct MatMulNBitsAttrs {
  std::int64_t k = 0, n = 0;  // of the product A [.., K] x B [K, N]
  std::int64_t bits = 4, block_size = 0;
  std::int64_t accuracy_level = 0;  // 4: A may be rounded to int8
  bool weight_prepacked = false;    // for a device

  void fields(auto& f) {
    f.required("K", k);
    f.required("N", n);
    f("bits", bits);
    f.required("block_size", block_size);
    f("accuracy_level", accuracy_level);
    f("weight_prepacked", weight_prepacked);
  }
};

}  // namespace sdx::ops
