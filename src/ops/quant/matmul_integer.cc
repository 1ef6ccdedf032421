// MatMulInteger: ai.onnx 10. MatMulInteger16, MatMulIntegerToFloat, DynamicQuantizeMatMul: com.microsoft 1.

#include <algorithm>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/quant/dynamic_quant.h"
#include "ops/quant/integer_gemm.h"
#include "ops/quant/quant_codec.h"

namespace sdx::ops {
namespace {

constexpr TypeSet kBytes = set_of(DataType::int8, DataType::uint8);
constexpr TypeSet kReals = set_of(DataType::float32, DataType::float16);

void infer_integer(InferContext& c) { infer_matmul(c, 0, 1, DataType::int32); }

void run_integer(OpContext& c) {
  const Tensor& a = c.input(0);
  const Tensor& b = c.input(1);
  MatMulShapes s = matmul_shapes(a.shape(), b.shape());
  Tensor& y = c.output(0, DataType::int32, s.out);
  s.plan_batches();
  const std::vector<std::int32_t> acc = integer_matmul(c, s, a, c.optional_input(2), b, c.optional_input(3));
  std::copy(acc.begin(), acc.end(), y.mutable_values<std::int32_t>().begin());
}

// --- MatMulInteger16 ---

void infer_integer16(InferContext& c) {
  const bool is_unsigned = c.dtype(0) == DataType::uint16 && c.dtype(1) == DataType::uint16;
  infer_matmul(c, 0, 1, is_unsigned ? DataType::uint32 : DataType::int32);
}

void run_integer16(OpContext& c) {
  const Tensor& a = c.input(0);
  const Tensor& b = c.input(1);
  MatMulShapes s = matmul_shapes(a.shape(), b.shape());
  const bool is_unsigned = a.dtype() == DataType::uint16 && b.dtype() == DataType::uint16;
  Tensor& y = c.output(0, is_unsigned ? DataType::uint32 : DataType::int32, s.out);
  s.plan_batches();
  const std::vector<std::int32_t> left = decode_ints(a);
  const std::vector<std::int32_t> right = decode_ints(b);
  auto* out = static_cast<std::uint32_t*>(y.mutable_data());  // sums wrap around in 32 bits, whatever the sign
  std::fill(out, out + y.size(), 0u);
  for (std::int64_t i = 0; i < s.batches(); ++i) {
    c.stop().check();
    const std::int32_t* pa = left.data() + s.batch_a[static_cast<std::size_t>(i)] * s.m * s.k;
    const std::int32_t* pb = right.data() + s.batch_b[static_cast<std::size_t>(i)] * s.k * s.n;
    std::uint32_t* po = out + i * s.m * s.n;
    parallel_for(s.m, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t m = begin; m < end; ++m) {
        for (std::int64_t k = 0; k < s.k; ++k) {
          const auto x = static_cast<std::uint32_t>(pa[m * s.k + k]);
          for (std::int64_t n = 0; n < s.n; ++n) po[m * s.n + n] += x * static_cast<std::uint32_t>(pb[k * s.n + n]);
        }
      }
    });
  }
}

// --- results in float ---

// Input numbers of the scales, zero points and bias.
struct FloatEpilogue {
  std::vector<float> a_scale{1.0f}, b_scale{1.0f}, bias;
  QuantParam pa, pb;
};

void store_floats(OpContext& c, const MatMulShapes& s, const std::vector<std::int32_t>& acc, const FloatEpilogue& e, Tensor& y) {
  const DataType elem = y.dtype();
  if (!e.bias.empty() && static_cast<std::int64_t>(e.bias.size()) != s.n) {
    c.fail("bias has {} elements; expected one for each of the {} columns", e.bias.size(), s.n);
  }
  std::vector<float> row(static_cast<std::size_t>(s.n));
  for (std::int64_t i = 0; i < s.batches(); ++i) {
    for (std::int64_t m = 0; m < s.m; ++m) {
      const float sa = e.a_scale[static_cast<std::size_t>(e.pa.index(s.batch_a[static_cast<std::size_t>(i)], m))];
      const std::int64_t at = (i * s.m + m) * s.n;
      for (std::int64_t n = 0; n < s.n; ++n) {
        const float sb = e.b_scale[static_cast<std::size_t>(e.pb.index(s.batch_b[static_cast<std::size_t>(i)], n))];
        const auto j = static_cast<std::size_t>(n);
        row[j] = static_cast<float>(acc[static_cast<std::size_t>(at + n)]) * (sa * sb) + (e.bias.empty() ? 0.0f : e.bias[j]);
      }
      encode_floats(elem, row.data(), at, s.n, true, y.mutable_data());
    }
  }
}

std::int64_t matrices(const Tensor& t, std::int64_t lines, std::int64_t k) { return lines * k == 0 ? 0 : t.size() / (lines * k); }

void infer_to_float(InferContext& c) { infer_matmul(c, 0, 1, c.dtype(2)); }

void run_to_float(OpContext& c) {
  const Tensor& a = c.input(0);
  const Tensor& b = c.input(1);
  MatMulShapes s = matmul_shapes(a.shape(), b.shape());
  Tensor& y = c.output(0, c.input(2).dtype(), s.out);
  s.plan_batches();
  FloatEpilogue e;
  e.a_scale = decode_floats(c.input(2));
  e.b_scale = decode_floats(c.input(3));
  e.pa = quant_param("a_scale", c.input(2), s.m, matrices(a, s.m, s.k));
  e.pb = quant_param("b_scale", c.input(3), s.n, matrices(b, s.n, s.k));
  if (const Tensor* bias = c.optional_input(6)) e.bias = decode_floats(*bias);
  store_floats(c, s, integer_matmul(c, s, a, c.optional_input(4), b, c.optional_input(5)), e, y);
}

void infer_dynamic(InferContext& c) { infer_matmul(c, 0, 1, c.dtype(0)); }

void run_dynamic(OpContext& c) {
  const Tensor& a = c.input(0);
  const Tensor& b = c.input(1);
  MatMulShapes s = matmul_shapes(a.shape(), b.shape());
  Tensor& y = c.output(0, a.dtype(), s.out);
  s.plan_batches();
  const std::vector<float> real = decode_floats(a);
  // ONNX Runtime quantises a as DynamicQuantizeLinear does: uint8, one scale for the tensor.
  const DynamicScale q = dynamic_scale(real.data(), a.size(), DataType::uint8);
  Tensor bytes(DataType::uint8, a.shape());
  const auto out = bytes.mutable_values<std::uint8_t>();
  const QuantRange range = quant_range(DataType::uint8);
  for (std::size_t i = 0; i < real.size(); ++i)
    out[i] = static_cast<std::uint8_t>(requantize(real[i] / q.scale, q.zero_point, range));
  const Tensor zero = Tensor::scalar(static_cast<std::uint8_t>(q.zero_point));
  FloatEpilogue e;
  e.a_scale = {q.scale};
  e.b_scale = decode_floats(c.input(2));
  e.pb = quant_param("b_scale", c.input(2), s.n, matrices(b, s.n, s.k));
  if (const Tensor* bias = c.optional_input(4)) e.bias = decode_floats(*bias);
  store_floats(c, s, integer_matmul(c, s, bytes, &zero, b, c.optional_input(3)), e, y);
}

}  // namespace

void register_matmul_integer(OpTable& t) {
  t.add(OpDef("MatMulInteger", 10)
            .in("A", "T1", kBytes)
            .in("B", "T2", kBytes)
            .in("a_zero_point", "T1", kBytes, Arity::optional)
            .in("b_zero_point", "T2", kBytes, Arity::optional)
            .out("Y", "", bit(DataType::int32))
            .infer_with(infer_integer)
            .run_with(run_integer));
  constexpr TypeSet kShorts = set_of(DataType::int16, DataType::uint16);
  t.add(OpDef("com.microsoft", "MatMulInteger16", 1)
            .in("A", "T1", kShorts)
            .in("B", "T2", kShorts)
            .out("Y", "", set_of(DataType::int32, DataType::uint32))
            .infer_with(infer_integer16)
            .run_with(run_integer16));
  t.add(OpDef("com.microsoft", "MatMulIntegerToFloat", 1)
            .in("A", "T1", kBytes)
            .in("B", "T2", kBytes)
            .in("a_scale b_scale", "T3", kReals)
            .in("a_zero_point", "T1", kBytes, Arity::optional)
            .in("b_zero_point", "T2", kBytes, Arity::optional)
            .in("bias", "T3", kReals, Arity::optional)
            .out("Y", "T3", kReals)
            .infer_with(infer_to_float)
            .run_with(run_to_float));
  t.add(OpDef("com.microsoft", "DynamicQuantizeMatMul", 1)
            .in("A", "T1", kReals)
            .in("B", "T2", kBytes)
            .in("b_scale", "T1", kReals)
            .in("b_zero_point", "T2", kBytes, Arity::optional)
            .in("bias", "T1", kReals, Arity::optional)
            .out("Y", "T1", kReals)
            .infer_with(infer_dynamic)
            .run_with(run_dynamic));
}

}  // namespace sdx::ops
