// QLinearAdd, QLinearMul, QLinearSigmoid, QLinearLeakyRelu, QLinearWhere, MulInteger: com.microsoft 1.

#include <cmath>

#include "ops/math/broadcast.h"
#include "ops/math/signatures.h"
#include "ops/op.h"
#include "ops/quant/quant_codec.h"
#include "ops/quant/quant_scalar.h"
#include "tensor/dispatch.h"

namespace sdx::ops {
namespace {

constexpr TypeSet kBytes = set_of(DataType::int8, DataType::uint8);
constexpr TypeSet kFloat = bit(DataType::float32);
using ByteTypes = TypeList<std::int8_t, std::uint8_t>;

// --- two operands ---

void infer_binary(InferContext& c) { infer_broadcast_of(c, {0, 3}, c.dtype(0)); }

// (a - za) * sa + (b - zb) * sb, over the scale of the result.
struct SumOp {
  float scale_a, scale_b;
  static SumOp make(float a, float b, float y) { return {a / y, b / y}; }
  float operator()(std::int32_t a, std::int32_t b) const {
    return static_cast<float>(a) * scale_a + static_cast<float>(b) * scale_b;
  }
};
struct ProductOp {
  float scale;
  static ProductOp make(float a, float b, float y) { return {a * b / y}; }
  float operator()(std::int32_t a, std::int32_t b) const { return static_cast<float>(a * b) * scale; }
};

template <class Op>
void run_binary(OpContext& c) {
  const Tensor& a = c.input(0);
  const Tensor& b = c.input(3);
  const QuantScalar qa = quant_scalar(c, 1, 2, a.dtype());
  const QuantScalar qb = quant_scalar(c, 4, 5, b.dtype());
  const QuantScalar qy = quant_scalar(c, 6, 7, a.dtype());
  const Op op = Op::make(qa.scale, qb.scale, qy.scale);
  const QuantRange range = quant_range(a.dtype());
  Tensor& y = c.output(0, a.dtype(), broadcast_shapes(a.shape(), b.shape()));
  dispatch(a.dtype(), ByteTypes{}, c.node().op_type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    broadcast_binary<T, T, T>(a, b, y,
                              [&](T x, T z) { return static_cast<T>(requantize(op(x - qa.zero, z - qb.zero), qy.zero, range)); });
  });
}

void infer_mul_integer(InferContext& c) { infer_broadcast_of(c, {0, 2}, DataType::int32); }

std::int32_t zero_of(const OpContext& c, std::size_t i) {
  const Tensor* z = c.optional_input(i);
  if (z == nullptr) return 0;
  if (z->size() != 1) c.fail("input {} (a zero point) must be one number, received shape {}", i, to_string(z->shape()));
  return decode_ints(*z)[0];
}

void run_mul_integer(OpContext& c) {
  const Tensor& a = c.input(0);
  const Tensor& b = c.input(2);
  const std::int32_t za = zero_of(c, 1);
  const std::int32_t zb = zero_of(c, 3);
  Tensor& y = c.output(0, DataType::int32, broadcast_shapes(a.shape(), b.shape()));
  dispatch(a.dtype(), ByteTypes{}, "MulInteger", [&](auto tag) {
    using T = typename decltype(tag)::type;
    broadcast_binary<T, T, std::int32_t>(a, b, y, [&](T x, T z) { return (x - za) * (z - zb); });
  });
}

// --- one operand: a table of 256 results ---

void infer_unary(InferContext& c) { infer_like(c, 0); }

template <class F>
void map_table(OpContext& c, F&& fn) {
  const Tensor& x = c.input(0);
  const QuantScalar from = quant_scalar(c, 1, 2, x.dtype());
  const QuantScalar to = quant_scalar(c, 3, 4, x.dtype());
  Tensor& y = c.output(0, x.dtype(), x.shape());
  const std::vector<std::uint8_t> table = quant_table(x.dtype(), from.scale, from.zero, to.scale, to.zero, fn);
  const auto* in = static_cast<const std::uint8_t*>(x.data());
  auto* out = static_cast<std::uint8_t*>(y.mutable_data());
  for (std::int64_t i = 0; i < x.size(); ++i) out[i] = table[in[i]];
}

void run_sigmoid(OpContext& c) {
  map_table(c, [](float v) { return 1.0f / (1.0f + std::exp(-v)); });
}

void run_leaky_relu(OpContext& c) {
  const float alpha = parse<ActivationAttrs>(c).alpha;
  map_table(c, [alpha](float v) { return v >= 0.0f ? v : v * alpha; });
}

// --- Where ---

void infer_where(InferContext& c) { infer_broadcast_of(c, {0, 1, 4}, c.dtype(1)); }

void run_where(OpContext& c) {
  const Tensor& condition = c.input(0);
  const Tensor& x = c.input(1);
  const Tensor& y = c.input(4);
  const QuantScalar qx = quant_scalar(c, 2, 3, x.dtype());
  const QuantScalar qy = quant_scalar(c, 5, 6, x.dtype());
  const QuantScalar qz = quant_scalar(c, 7, 8, x.dtype());
  const auto same = [](float v) { return v; };
  const std::vector<std::uint8_t> tx = quant_table(x.dtype(), qx.scale, qx.zero, qz.scale, qz.zero, same);
  const std::vector<std::uint8_t> ty = quant_table(x.dtype(), qy.scale, qy.zero, qz.scale, qz.zero, same);
  const Shape shape = broadcast_shapes(broadcast_shapes(condition.shape(), x.shape()), y.shape());
  Tensor& z = c.output(0, x.dtype(), shape);
  const auto* pc = static_cast<const bool*>(condition.data());
  const auto* px = static_cast<const std::uint8_t*>(x.data());
  const auto* py = static_cast<const std::uint8_t*>(y.data());
  auto* pz = static_cast<std::uint8_t*>(z.mutable_data());
  for_each_broadcast<3>({condition.shape(), x.shape(), y.shape()}, shape,
                        [&](const auto& at, const auto& step, std::int64_t o, std::int64_t n) {
                          for (std::int64_t i = 0; i < n; ++i) {
                            pz[o + i] = pc[at[0] + i * step[0]] ? tx[px[at[1] + i * step[1]]] : ty[py[at[2] + i * step[2]]];
                          }
                        });
}

OpDef binary(const char* op) {
  OpDef def("com.microsoft", op, 1);
  def.in("A", "T", kBytes).in("A_scale", "", kFloat).in("A_zero_point", "T", kBytes, Arity::optional);
  def.in("B", "T", kBytes).in("B_scale", "", kFloat).in("B_zero_point", "T", kBytes, Arity::optional);
  def.in("C_scale", "", kFloat).in("C_zero_point", "T", kBytes, Arity::optional).out("C", "T", kBytes);
  return def;
}

OpDef unary(const char* op) {
  OpDef def("com.microsoft", op, 1);
  def.in("X", "T", kBytes).in("X_scale", "", kFloat).in("X_zero_point", "T", kBytes, Arity::optional);
  def.in("Y_scale", "", kFloat).in("Y_zero_point", "T", kBytes, Arity::optional).out("Y", "T", kBytes);
  return def;
}

}  // namespace

void register_qlinear_elementwise(OpTable& t) {
  t.add(binary("QLinearAdd").infer_with(infer_binary).run_with(run_binary<SumOp>));
  t.add(binary("QLinearMul").infer_with(infer_binary).run_with(run_binary<ProductOp>));
  t.add(unary("QLinearSigmoid").infer_with(infer_unary).run_with(run_sigmoid));
  t.add(unary("QLinearLeakyRelu").attrs<ActivationAttrs>().infer_with(infer_unary).run_with(run_leaky_relu));
  t.add(OpDef("com.microsoft", "MulInteger", 1)
            .in("A", "T", kBytes)
            .in("A_zero_point", "T", kBytes, Arity::optional)
            .in("B", "T", kBytes)
            .in("B_zero_point", "T", kBytes, Arity::optional)
            .out("C", "", bit(DataType::int32))
            .infer_with(infer_mul_integer)
            .run_with(run_mul_integer));
  OpDef where("com.microsoft", "QLinearWhere", 1);
  where.in("condition", "", types::boolean).in("X", "T", kBytes).in("x_scale", "", kFloat).in("x_zero_point", "T", kBytes);
  where.in("Y", "T", kBytes).in("y_scale", "", kFloat).in("y_zero_point", "T", kBytes);
  where.in("z_scale", "", kFloat).in("z_zero_point", "T", kBytes).out("Z", "T", kBytes);
  t.add(std::move(where).infer_with(infer_where).run_with(run_where));
}

}  // namespace sdx::ops
