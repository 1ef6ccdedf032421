// RandomNormal, RandomUniform, RandomNormalLike, RandomUniformLike (1, 22) and Bernoulli (15, 22).

#include <initializer_list>

#include "ops/math/elementwise.h"
#include "ops/op.h"
#include "ops/random/random_stream.h"

namespace sdx::ops {
namespace {

using BernoulliTypes = TypeList<float, double, Float16, BFloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                                std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, bool>;
constexpr TypeSet kBernoulliOutputs = types::numeric | types::boolean;

// The type that the attribute `dtype` names, else `otherwise`; must be among `permitted`.
DataType chosen_type(const Attributes& attrs, DataType otherwise, TypeSet permitted) {
  if (!attrs.has("dtype")) return otherwise;
  const std::int64_t number = attrs.get_int("dtype");
  const bool known = number > 0 && number < kDataTypeCount;
  if (!known || (bit(static_cast<DataType>(number)) & permitted) == 0) {
    fail(ErrorCode::invalid_model, "attribute 'dtype' is {}, which this operator does not produce", number);
  }
  return static_cast<DataType>(number);
}

Shape checked_shape(const Attributes& attrs) {
  Shape shape = attrs.get_ints("shape");
  for (const std::int64_t d : shape) {
    if (d < 0) fail(ErrorCode::invalid_model, "attribute 'shape' is {}: extents cannot be negative", to_string(shape));
  }
  element_count(shape);
  return shape;
}

void infer_fill(InferContext& c) {
  c.output(0, chosen_type(c.attrs(), DataType::float32, types::floats), to_sym(checked_shape(c.attrs())));
}

template <TypeSet Permitted>
void infer_like(InferContext& c) {
  const DataType elem = chosen_type(c.attrs(), c.dtype(0), Permitted);
  if (const SymShape* s = c.shape(0)) return c.output(0, elem, *s);
  c.output(0, elem);
}

// y[i] = fn(i)
template <class List, class F>
void generate(const OpContext& c, Tensor& out, List list, F fn) {
  dispatch(out.dtype(), list, c.node().op_type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* y = static_cast<T*>(out.mutable_data());
    parallel_for(out.size(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) y[i] = saturating_cast<T>(fn(i));
    });
  });
}

void fill_normal(OpContext& c, Tensor& out) {
  const auto mean = static_cast<double>(c.attrs().get_float("mean", 0.0F));
  const auto scale = static_cast<double>(c.attrs().get_float("scale", 1.0F));
  const RandomStream random(c.seed());
  generate(c, out, FloatTypes{}, [&](std::int64_t i) { return mean + scale * random.normal(i); });
}

void fill_uniform(OpContext& c, Tensor& out) {
  const auto low = static_cast<double>(c.attrs().get_float("low", 0.0F));
  const auto high = static_cast<double>(c.attrs().get_float("high", 1.0F));
  const RandomStream random(c.seed());
  generate(c, out, FloatTypes{}, [&](std::int64_t i) { return low + (high - low) * random.uniform(i); });
}

template <void Fill(OpContext&, Tensor&)>
void run_fill(OpContext& c) {
  const DataType elem = chosen_type(c.attrs(), DataType::float32, types::floats);
  Fill(c, c.output(0, elem, checked_shape(c.attrs())));
}

template <void Fill(OpContext&, Tensor&)>
void run_like(OpContext& c) {
  const Tensor& like = c.input(0);
  Fill(c, c.output(0, chosen_type(c.attrs(), like.dtype(), types::floats), like.shape()));
}

void run_bernoulli(OpContext& c) {
  const Tensor& in = c.input(0);
  Tensor& out = c.output(0, chosen_type(c.attrs(), in.dtype(), kBernoulliOutputs), in.shape());
  const RandomStream random(c.seed());
  dispatch(in.dtype(), FloatTypes{}, "Bernoulli", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* p = static_cast<const T*>(in.data());
    generate(c, out, BernoulliTypes{}, [&](std::int64_t i) {
      return random.uniform(i) < static_cast<double>(static_cast<ComputeType<T>>(p[i])) ? 1.0 : 0.0;
    });
  });
}

OpDef with_seed(const char* name, int since, std::initializer_list<const char*> floats) {
  OpDef def(name, since);
  def.attr("dtype", AttrKind::i).attr("seed", AttrKind::f);
  for (const char* a : floats) def.attr(a, AttrKind::f);
  return def;
}

void add_fill(OpTable& t, OpDef def, RunFn run) {
  def.out("output", "T", types::floats).attr("shape", AttrKind::ints, true);
  t.add(std::move(def).infer_with(infer_fill).run_with(run).random());
}

void add_like(OpTable& t, OpDef def, RunFn run) {
  def.in("input", "T1", types::any_tensor).out("output", "T2", types::floats);
  t.add(std::move(def).infer_with(infer_like<types::floats>).run_with(run).random());
}

}  // namespace

void register_random_fill(OpTable& t) {
  add_fill(t, with_seed("RandomNormal", 1, {"mean", "scale"}), run_fill<fill_normal>);
  add_fill(t, with_seed("RandomUniform", 1, {"low", "high"}), run_fill<fill_uniform>);
  add_like(t, with_seed("RandomNormalLike", 1, {"mean", "scale"}), run_like<fill_normal>);
  add_like(t, with_seed("RandomUniformLike", 1, {"low", "high"}), run_like<fill_uniform>);
  t.add(with_seed("Bernoulli", 15, {})
            .in("input", "T1", types::floats)
            .out("output", "T2", kBernoulliOutputs)
            .infer_with(infer_like<kBernoulliOutputs>)
            .run_with(run_bernoulli)
            .random());
}

}  // namespace sdx::ops
