// QGemm: com.microsoft 1.

#include "ops/math/broadcast.h"
#include "ops/op.h"
#include "ops/quant/integer_gemm.h"
#include "ops/quant/quant_codec.h"
#include "ops/quant/quant_scalar.h"
#include "ops/quant/signatures.h"

namespace sdx::ops {
namespace {

constexpr TypeSet kBytes = set_of(DataType::int8, DataType::uint8);

using enum QGemmIn::Slot;

void infer_qgemm(InferContext& c) {
  const auto attr = parse<QGemmAttrs>(c);
  const DataType elem = c.has_input(kYZero) ? c.dtype(kYZero) : DataType::float32;
  const SymShape* a = c.shape(kA);
  const SymShape* b = c.shape(kB);
  if (a == nullptr || b == nullptr) return c.output(0, elem, SymShape(2));
  if (a->size() != 2 || b->size() != 2) c.fail("A and B must be matrices, received {} and {}", to_string(*a), to_string(*b));
  const std::size_t ta = attr.trans_a ? 1 : 0;
  const std::size_t tb = attr.trans_b ? 1 : 0;
  c.output(0, elem, SymShape{(*a)[ta], (*b)[1 - tb]});
}

// The bytes as they lie after an optional transposition.
Tensor matrix(const Tensor& t, bool transposed) {
  if (t.rank() != 2) fail(ErrorCode::invalid_model, "A and B must be matrices, received {}", to_string(t.shape()));
  if (!transposed) return t;
  const std::int64_t rows = t.dim(0);
  const std::int64_t columns = t.dim(1);
  Tensor out(t.dtype(), {columns, rows});
  const auto* in = static_cast<const std::uint8_t*>(t.data());
  auto* to = static_cast<std::uint8_t*>(out.mutable_data());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) to[j * rows + i] = in[i * columns + j];
  }
  return out;
}

void add_bias(const OpContext& c, std::vector<std::int32_t>& acc, std::int64_t m, std::int64_t n) {
  const Tensor* bias = c.optional_input(kC);
  if (bias == nullptr) return;
  if (broadcast_shapes(bias->shape(), {m, n}) != Shape{m, n}) {
    c.fail("C of shape {} cannot be broadcast to [{},{}]", to_string(bias->shape()), m, n);
  }
  const auto values = bias->values<std::int32_t>();
  for_each_broadcast<1>({bias->shape()}, {m, n}, [&](const auto& at, const auto& step, std::int64_t o, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      auto& sum = acc[static_cast<std::size_t>(o + i)];
      const auto add = static_cast<std::uint32_t>(values[static_cast<std::size_t>(at[0] + i * step[0])]);
      sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) + add);
    }
  });
}

void run_qgemm(OpContext& c) {
  const auto attr = parse<QGemmAttrs>(c);
  const Tensor a = matrix(c.input(kA), attr.trans_a);
  const Tensor b = matrix(c.input(kB), attr.trans_b);
  MatMulShapes s = matmul_shapes(a.shape(), b.shape());
  const Tensor* y_scale = c.optional_input(kYScale);
  const bool quantised = y_scale != nullptr && c.has_input(kYZero);
  const DataType elem = quantised ? c.input(kYZero).dtype() : DataType::float32;
  Tensor& y = c.output(0, elem, s.out);
  s.plan_batches();
  const QuantScalar qa = quant_scalar(c, kAScale, kAZero, a.dtype());
  const QuantScalar qy = quantised ? quant_scalar(c, kYScale, kYZero, elem) : QuantScalar{};
  const QuantParam pb = quant_param("b_scale", c.input(kBScale), s.n, 1);
  const auto sb = c.input(kBScale).values<float>();
  const float alpha = attr.alpha;
  std::vector<std::int32_t> acc = integer_matmul(c, s, a, &c.input(kAZero), b, c.optional_input(kBZero));
  add_bias(c, acc, s.m, s.n);
  std::vector<float> real(acc.size());
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      const auto at = static_cast<std::size_t>(i * s.n + j);
      const float scale = alpha * qa.scale * sb[static_cast<std::size_t>(pb.index(0, j))];
      real[at] = static_cast<float>(acc[at]) * (quantised ? scale / qy.scale : scale);
      if (quantised) acc[at] = requantize(real[at], qy.zero, quant_range(elem));
    }
  }
  if (quantised) {
    encode_ints(elem, acc.data(), 0, y.size(), y.mutable_data());
  } else {
    encode_floats(elem, real.data(), 0, y.size(), true, y.mutable_data());
  }
}

}  // namespace

void register_qgemm(OpTable& t) {
  constexpr TypeSet kFloat = bit(DataType::float32);
  OpDef def("com.microsoft", "QGemm", 1);
  def.in("A", "TA", kBytes).in("a_scale", "", kFloat).in("a_zero_point", "TA", kBytes);
  def.in("B", "TB", kBytes).in("b_scale", "", kFloat).in("b_zero_point", "TB", kBytes);
  def.in("C", "", bit(DataType::int32), Arity::optional).in("y_scale", "", kFloat, Arity::optional);
  def.in("y_zero_point", "TY", kBytes, Arity::optional).out("Y", "", kBytes | kFloat);
  def.attrs<QGemmAttrs>();
  t.add(std::move(def).infer_with(infer_qgemm).run_with(run_qgemm));
}

}  // namespace sdx::ops
