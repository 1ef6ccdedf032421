// QLinearMatMul: ai.onnx 10, 21 (float8, f16 scales).

#include "ops/context.h"
#include "ops/op.h"
#include "ops/quant/integer_gemm.h"
#include "ops/quant/quant_codec.h"
#include "ops/quant/signatures.h"

namespace sdx::ops {
namespace {

constexpr TypeSet kBytes = set_of(DataType::int8, DataType::uint8);
constexpr TypeSet kTypes =
    kBytes | set_of(DataType::float8e4m3fn, DataType::float8e4m3fnuz, DataType::float8e5m2, DataType::float8e5m2fnuz);
constexpr TypeSet kScales = set_of(DataType::float32, DataType::float16, DataType::bfloat16);

using enum QLinearMatMulIn::Slot;

void infer_qlinear(InferContext& c) { infer_matmul(c, kA, kB, c.dtype(kYZero)); }

std::int64_t matrices(const Tensor& t, std::int64_t lines, std::int64_t k) { return lines * k == 0 ? 0 : t.size() / (lines * k); }

// Products of float8 operands: (a - zero) times (b - zero) in float.
std::vector<float> float_products(const OpContext& c, const MatMulShapes& s) {
  std::vector<float> a = decode_floats(c.input(kA));
  std::vector<float> b = decode_floats(c.input(kB));
  const std::vector<float> za = decode_floats(c.input(kAZero));
  const std::vector<float> zb = decode_floats(c.input(kBZero));
  const QuantParam pa = quant_param("a_zero_point", c.input(kAZero), s.m, matrices(c.input(kA), s.m, s.k));
  const QuantParam pb = quant_param("b_zero_point", c.input(kBZero), s.n, matrices(c.input(kB), s.n, s.k));
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / s.k;
    a[i] -= za[static_cast<std::size_t>(pa.index(row / s.m, row % s.m))];
  }
  for (std::size_t i = 0; i < b.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    b[i] -= zb[static_cast<std::size_t>(pb.index(at / (s.k * s.n), at % s.n))];
  }
  std::vector<float> out(static_cast<std::size_t>(element_count(s.out)), 0.0f);
  for (std::int64_t i = 0; i < s.batches(); ++i) {
    c.stop().check();
    const float* left = a.data() + s.batch_a[static_cast<std::size_t>(i)] * s.m * s.k;
    const float* right = b.data() + s.batch_b[static_cast<std::size_t>(i)] * s.k * s.n;
    for (std::int64_t m = 0; m < s.m; ++m) {
      float* row = out.data() + (i * s.m + m) * s.n;
      for (std::int64_t k = 0; k < s.k; ++k) {
        for (std::int64_t n = 0; n < s.n; ++n) row[n] += left[m * s.k + k] * right[k * s.n + n];
      }
    }
  }
  return out;
}

void store(OpContext& c, const MatMulShapes& s, Tensor& y, const std::vector<float>& sums) {
  const std::vector<float> sa = decode_floats(c.input(kAScale));
  const std::vector<float> sb = decode_floats(c.input(kBScale));
  const std::vector<float> sy = decode_floats(c.input(kYScale));
  const std::vector<float> zy = decode_floats(c.input(kYZero));
  const QuantParam pa = quant_param("a_scale", c.input(kAScale), s.m, matrices(c.input(kA), s.m, s.k));
  const QuantParam pb = quant_param("b_scale", c.input(kBScale), s.n, matrices(c.input(kB), s.n, s.k));
  // ONNX permits y's parameters per row as well.
  const QuantParam py = quant_param("y_scale", c.input(kYScale), s.m, s.batches());
  const QuantParam pz = quant_param("y_zero_point", c.input(kYZero), s.m, s.batches());
  const bool integer = is_quant_integer(y.dtype());
  const QuantRange range = integer ? quant_range(y.dtype()) : QuantRange{0, 0};
  std::vector<std::int32_t> ints(static_cast<std::size_t>(s.n));
  std::vector<float> reals(static_cast<std::size_t>(s.n));
  for (std::int64_t i = 0; i < s.batches(); ++i) {
    const std::int64_t ba = s.batch_a[static_cast<std::size_t>(i)];
    const std::int64_t bb = s.batch_b[static_cast<std::size_t>(i)];
    for (std::int64_t m = 0; m < s.m; ++m) {
      const float scale_a = sa[static_cast<std::size_t>(pa.index(ba, m))];
      const float scale_y = sy[static_cast<std::size_t>(py.index(i, m))];
      const float zero = zy[static_cast<std::size_t>(pz.index(i, m))];
      const std::int64_t at = (i * s.m + m) * s.n;
      for (std::int64_t n = 0; n < s.n; ++n) {
        const float scale = scale_a * sb[static_cast<std::size_t>(pb.index(bb, n))] / scale_y;
        const float value = sums[static_cast<std::size_t>(at + n)] * scale;
        const auto j = static_cast<std::size_t>(n);
        if (integer) {
          ints[j] = requantize(value, static_cast<std::int32_t>(zero), range);
        } else {
          reals[j] = value + zero;
        }
      }
      if (integer) {
        encode_ints(y.dtype(), ints.data(), at, s.n, y.mutable_data());
      } else {
        encode_floats(y.dtype(), reals.data(), at, s.n, true, y.mutable_data());
      }
    }
  }
}

void run_qlinear(OpContext& c) {
  const Tensor& a = c.input(kA);
  const Tensor& b = c.input(kB);
  MatMulShapes s = matmul_shapes(a.shape(), b.shape());
  Tensor& y = c.output(0, c.input(kYZero).dtype(), s.out);
  s.plan_batches();
  if (y.size() == 0) return;
  if ((kBytes & bit(a.dtype())) != 0 && (kBytes & bit(b.dtype())) != 0) {
    const std::vector<std::int32_t> acc = integer_matmul(c, s, a, &c.input(kAZero), b, &c.input(kBZero));
    store(c, s, y, std::vector<float>(acc.begin(), acc.end()));
  } else {
    store(c, s, y, float_products(c, s));
  }
}

}  // namespace

void register_qlinear_matmul(OpTable& t) {
  t.add(OpDef("QLinearMatMul", 10)
            .in("a", "T1", kTypes)
            .in("a_scale", "TS", kScales)
            .in("a_zero_point", "T1", kTypes)
            .in("b", "T2", kTypes)
            .in("b_scale", "TS", kScales)
            .in("b_zero_point", "T2", kTypes)
            .in("y_scale", "TS", kScales)
            .in("y_zero_point", "T3", kTypes)
            .out("y", "T3", kTypes)
            .infer_with(infer_qlinear)
            .run_with(run_qlinear));
}

}  // namespace sdx::ops
