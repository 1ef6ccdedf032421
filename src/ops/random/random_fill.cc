// RandomNormal, RandomUniform, RandomNormalLike, RandomUniformLike (1, 22) and Bernoulli (15, 22).

#include "ops/math/elementwise.h"
#include "ops/op.h"
#include "ops/random/random_stream.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

using BernoulliTypes = TypeList<float, double, Float16, BFloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                                std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, bool>;
constexpr TypeSet kBernoulliOutputs = types::numeric | types::boolean;

// RandomNormal, RandomUniform, the like of them, Bernoulli.
struct FillAttrs {
  std::optional<std::int64_t> dtype;
  IntList shape;
  float mean = 0, scale = 1;  // RandomNormal
  float low = 0, high = 1;    // RandomUniform

  void fields(auto& f, const OpId& op) {
    f("dtype", dtype);
    f.unread("seed", AttrKind::f);
    if (op.name.starts_with("RandomNormal")) {
      f("mean", mean);
      f("scale", scale);
    } else if (op.name.starts_with("RandomUniform")) {
      f("low", low);
      f("high", high);
    }
    if (op.name == "RandomNormal" || op.name == "RandomUniform") f.required("shape", shape);
  }
};

// The type that the attribute `dtype` names, else `otherwise`; must be among `permitted`.
DataType chosen_type(const FillAttrs& attr, DataType otherwise, TypeSet permitted) {
  if (!attr.dtype) return otherwise;
  const std::int64_t number = *attr.dtype;
  const bool known = number > 0 && number < kDataTypeCount;
  if (!known || (bit(static_cast<DataType>(number)) & permitted) == 0) {
    fail(ErrorCode::invalid_model, "attribute 'dtype' is {}, which this operator does not produce", number);
  }
  return static_cast<DataType>(number);
}

Shape checked_shape(const FillAttrs& attr) {
  Shape shape = to_vector(attr.shape);
  for (const std::int64_t d : shape) {
    if (d < 0) fail(ErrorCode::invalid_model, "attribute 'shape' is {}: extents cannot be negative", to_string(shape));
  }
  element_count(shape);
  return shape;
}

void infer_fill(InferContext& c) {
  const auto attr = parse<FillAttrs>(c);
  c.output(0, chosen_type(attr, DataType::float32, types::floats), to_sym(checked_shape(attr)));
}

template <TypeSet Permitted>
void infer_like(InferContext& c) {
  const DataType elem = chosen_type(parse<FillAttrs>(c), c.dtype(0), Permitted);
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
  const auto attr = parse<FillAttrs>(c);
  const auto mean = static_cast<double>(attr.mean), scale = static_cast<double>(attr.scale);
  const RandomStream random(c.seed());
  generate(c, out, FloatTypes{}, [&](std::int64_t i) { return mean + scale * random.normal(i); });
}

void fill_uniform(OpContext& c, Tensor& out) {
  const auto attr = parse<FillAttrs>(c);
  const auto low = static_cast<double>(attr.low), high = static_cast<double>(attr.high);
  const RandomStream random(c.seed());
  generate(c, out, FloatTypes{}, [&](std::int64_t i) { return low + (high - low) * random.uniform(i); });
}

template <void Fill(OpContext&, Tensor&)>
void run_fill(OpContext& c) {
  const auto attr = parse<FillAttrs>(c);
  const DataType elem = chosen_type(attr, DataType::float32, types::floats);
  Fill(c, c.output(0, elem, checked_shape(attr)));
}

template <void Fill(OpContext&, Tensor&)>
void run_like(OpContext& c) {
  const Tensor& like = c.input(0);
  Fill(c, c.output(0, chosen_type(parse<FillAttrs>(c), like.dtype(), types::floats), like.shape()));
}

void run_bernoulli(OpContext& c) {
  const Tensor& in = c.input(0);
  Tensor& out = c.output(0, chosen_type(parse<FillAttrs>(c), in.dtype(), kBernoulliOutputs), in.shape());
  const RandomStream random(c.seed());
  dispatch(in.dtype(), FloatTypes{}, "Bernoulli", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* p = static_cast<const T*>(in.data());
    generate(c, out, BernoulliTypes{}, [&](std::int64_t i) {
      return random.uniform(i) < static_cast<double>(static_cast<ComputeType<T>>(p[i])) ? 1.0 : 0.0;
    });
  });
}

void add_fill(OpTable& t, const char* name, RunFn run) {
  t.add(OpDef(name, 1).out("output", "T", types::floats).attrs<FillAttrs>().infer_with(infer_fill).run_with(run).random());
}

void add_like(OpTable& t, const char* name, int since, TypeSet in, TypeSet out, InferFn infer, RunFn run) {
  OpDef def(name, since);
  def.in("input", "T1", in).out("output", "T2", out).attrs<FillAttrs>();
  t.add(std::move(def).infer_with(infer).run_with(run).random());
}

}  // namespace

void register_random_fill(OpTable& t) {
  const auto like = [&](const char* name, RunFn run) {
    add_like(t, name, 1, types::any_tensor, types::floats, infer_like<types::floats>, run);
  };
  add_fill(t, "RandomNormal", run_fill<fill_normal>);
  add_fill(t, "RandomUniform", run_fill<fill_uniform>);
  like("RandomNormalLike", run_like<fill_normal>);
  like("RandomUniformLike", run_like<fill_uniform>);
  add_like(t, "Bernoulli", 15, types::floats, kBernoulliOutputs, infer_like<kBernoulliOutputs>, run_bernoulli);
}

}  // namespace sdx::ops
