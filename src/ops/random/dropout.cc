// Dropout: ai.onnx 1, 6 (is_test), 7, 10 (inference only), 12, 13, 22 (inputs ratio and training_mode). com.microsoft
// BiasDropout. A run of opset 1 or 6 with is_test = 0 drops elements, as the file says.

#include <cstring>
#include <random>

#include "ops/math/broadcast.h"
#include "ops/math/elementwise.h"
#include "ops/op.h"
#include "ops/random/signatures.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

constexpr TypeSet kDropped =
    types::floats | set_of(DataType::float8e4m3fn, DataType::float8e4m3fnuz, DataType::float8e5m2, DataType::float8e5m2fnuz);
using DroppedTypes = TypeList<float, double, Float16, BFloat16, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ>;

// Before opset 10 the mask had the type of the data.
DataType mask_type(int version, DataType data) { return version < 10 ? data : DataType::boolean; }

void infer_dropout(InferContext& c) {
  const DataType mask = mask_type(c.version(), c.dtype(0));
  infer_same(c);
  if (const SymShape* s = c.shape(0)) return c.output(1, mask, *s);
  c.output(1, mask);
}

double scalar_input(const OpContext& c, std::size_t i, double otherwise) {
  const Tensor* t = c.optional_input(i);
  if (t == nullptr) return otherwise;
  if (t->size() != 1) c.fail("input {} must be one value, received {}", i, t->type_string());
  return element_as_double(*t, 0);
}

double drop_ratio(const OpContext& c) {
  const bool legacy = c.version() < 12;
  if (legacy) {
    const auto attr = parse<DropoutAttrs>(c);
    const bool inference = c.version() >= 7 || attr.is_test.value_or(0) != 0;
    return inference ? 0 : static_cast<double>(attr.ratio);
  }
  return scalar_input(c, 2, 0) != 0 ? scalar_input(c, 1, 0.5) : 0;
}

void check_ratio(const OpContext& c, double ratio) {
  if (!(ratio >= 0 && ratio < 1)) c.fail("the ratio is {}; permitted: 0 up to but not including 1", ratio);
}

// The generator of numpy's random.seed() and random.uniform(), which ONNX's reference implementation drops with: a file that
// sets `seed` gives the same mask as there. Source: Matsumoto and Nishimura, "Mersenne Twister", 1998.
class NumpyUniform {
 public:
  explicit NumpyUniform(std::uint64_t seed) : engine_(static_cast<std::uint32_t>(seed)) {}
  double operator()() {
    const auto high = static_cast<double>(engine_() >> 5);
    const auto low = static_cast<double>(engine_() >> 6);
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }

 private:
  std::mt19937 engine_;
};

// Scales the kept elements in place. Opset 1 and 6 describe no other scaling during training.
void drop(Tensor& data, Tensor& mask, double ratio, std::uint64_t seed) {
  NumpyUniform random(seed);
  const auto scale = static_cast<float>(1 / (1 - ratio));
  dispatch(data.dtype(), DroppedTypes{}, "Dropout", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeType<T>;
    auto* y = static_cast<T*>(data.mutable_data());
    for (std::int64_t i = 0; i < data.size(); ++i) {
      const bool keep = random() >= ratio;
      y[i] = keep ? static_cast<T>(static_cast<C>(y[i]) * static_cast<C>(scale)) : static_cast<T>(C(0));
      set_element_int(mask, i, keep ? 1 : 0);
    }
  });
}

void keep_all(Tensor& mask) {
  if (mask.dtype() == DataType::boolean) {
    if (mask.size() != 0) std::memset(mask.mutable_data(), 1, mask.bytes());
    return;
  }
  for (std::int64_t i = 0; i < mask.size(); ++i) set_element_int(mask, i, 1);
}

void run_dropout(OpContext& c) {
  const Tensor& in = c.input(0);
  const double ratio = drop_ratio(c);
  check_ratio(c, ratio);
  Tensor& out = c.output(0, in.dtype(), in.shape());
  if (in.bytes() != 0) std::memcpy(out.mutable_data(), in.data(), in.bytes());
  if (ratio == 0 && !c.wants_output(1)) return;
  Tensor& mask = c.output(1, mask_type(c.version(), in.dtype()), in.shape());
  // Versions 7 and 10 do not say what an inference mask holds; ONNX Runtime's is zero (12 demands ones).
  if (ratio == 0 && c.version() >= 7 && c.version() < 12) {
    if (mask.bytes() != 0) std::memset(mask.mutable_data(), 0, mask.bytes());
    return;
  }
  if (ratio == 0) return keep_all(mask);
  drop(out, mask, ratio, c.seed());
}

void infer_bias_dropout(InferContext& c) {
  infer_same(c);
  if (const SymShape* s = c.shape(0)) return c.output(1, DataType::boolean, *s);
  c.output(1, DataType::boolean);
}

// dropout(data + bias) + residual; inputs: data, bias, residual?, ratio?, training_mode?
void run_bias_dropout(OpContext& c) {
  const Tensor& in = c.input(0);
  const double ratio = scalar_input(c, 4, 0) != 0 ? scalar_input(c, 3, 0.5) : 0;
  check_ratio(c, ratio);
  if (broadcast_shapes(in.shape(), c.input(1).shape()) != in.shape()) {
    c.fail("the bias {} cannot be broadcast to the data {}", c.input(1).type_string(), in.type_string());
  }
  const Tensor* residual = c.optional_input(2);
  if (residual != nullptr && residual->shape() != in.shape()) {
    c.fail("the residual {} must have the shape of the data {}", residual->type_string(), in.type_string());
  }
  Tensor& out = c.output(0, in.dtype(), in.shape());
  dispatch(in.dtype(), FloatTypes{}, "BiasDropout", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeType<T>;
    const auto plus = [](T a, T b) { return static_cast<T>(static_cast<C>(a) + static_cast<C>(b)); };
    broadcast_binary<T, T, T>(in, c.input(1), out, plus);
    if (ratio != 0 || c.wants_output(1)) {
      Tensor& mask = c.output(1, DataType::boolean, in.shape());
      if (ratio == 0) keep_all(mask);
      if (ratio != 0) drop(out, mask, ratio, c.seed());
    }
    if (residual == nullptr) return;
    auto* y = static_cast<T*>(out.mutable_data());
    const auto* r = static_cast<const T*>(residual->data());
    for (std::int64_t i = 0; i < out.size(); ++i) y[i] = plus(y[i], r[i]);
  });
}

// Not deterministic, apart from the versions that only serve inference.
OpDef dropout(int since, TypeSet set) {
  OpDef def("Dropout", since);
  def.in("data", "T", set);
  if (since >= 12) def.in("ratio", "", kDropped, Arity::optional).in("training_mode", "", types::boolean, Arity::optional);
  def.out("output", "T", set).out("mask", "", since < 10 ? set : types::boolean, Arity::optional);
  def.attrs<DropoutAttrs>();
  return def;
}

}  // namespace

void register_dropout(OpTable& t) {
  t.add(dropout(1, types::floats).infer_with(infer_dropout).run_with(run_dropout).random());
  t.add(dropout(7, types::floats).infer_with(infer_dropout).run_with(run_dropout));
  t.add(dropout(10, types::floats).infer_with(infer_dropout).run_with(run_dropout));
  t.add(dropout(12, kDropped).infer_with(infer_dropout).run_with(run_dropout).random());
  t.add(OpDef("com.microsoft", "BiasDropout", 1)
            .in("data bias", "T", types::floats)
            .in("residual", "T", types::floats, Arity::optional)
            .in("ratio", "", types::floats, Arity::optional)
            .in("training_mode", "", types::boolean, Arity::optional)
            .out("output", "T", types::floats)
            .out("mask", "", types::boolean, Arity::optional)
            .attrs<DropoutAttrs>()
            .infer_with(infer_bias_dropout)
            .run_with(run_bias_dropout)
            .random());
}

}  // namespace sdx::ops
