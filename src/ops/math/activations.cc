// Activation functions with attributes: Elu, Selu, Celu, LeakyRelu, HardSigmoid, HardSwish, ThresholdedRelu, Shrink, Gelu, Mish,
// Swish, SwiGLU. ai.onnx 1, 6, 9, 10, 12, 14, 16, 18, 20, 22, 24, 28.

#include <cmath>

#include "ops/math/elementwise.h"
#include "ops/math/signatures.h"

namespace sdx::ops {
namespace {

void run_elu(OpContext& c) {
  const float alpha = parse<ActivationAttrs>(c).alpha;
  map_floats(c, [=](auto x) { return x < 0 ? static_cast<decltype(x)>(alpha) * std::expm1(x) : x; });
}

void run_selu(OpContext& c) {
  const auto attr = parse<ActivationAttrs>(c);
  const float alpha = attr.alpha;
  const float gamma = attr.gamma;
  map_floats(c, [=](auto x) {
    using T = decltype(x);
    return static_cast<T>(gamma) * (x > 0 ? x : static_cast<T>(alpha) * std::expm1(x));
  });
}

void run_celu(OpContext& c) {
  const float alpha = parse<ActivationAttrs>(c).alpha;
  map_floats(c, [=](auto x) {
    using T = decltype(x);
    const T a = static_cast<T>(alpha);
    return x > 0 ? x : a * std::expm1(x / a);
  });
}

void run_leaky_relu(OpContext& c) {
  const float alpha = parse<ActivationAttrs>(c).alpha;
  map_floats(c, [=](auto x) { return x < 0 ? static_cast<decltype(x)>(alpha) * x : x; });
}

void run_hard_sigmoid(OpContext& c) {
  const auto attr = parse<ActivationAttrs>(c);
  const float alpha = attr.alpha;
  const float beta = attr.beta;
  map_floats(c, [=](auto x) {
    using T = decltype(x);
    const T y = static_cast<T>(alpha) * x + static_cast<T>(beta);
    return y < 0 ? T(0) : (y > 1 ? T(1) : y);
  });
}

void run_hard_swish(OpContext& c) {
  map_floats(c, [](auto x) {
    using T = decltype(x);
    const T y = x / T(6) + T(0.5);
    return x * (y < 0 ? T(0) : (y > 1 ? T(1) : y));
  });
}

void run_thresholded_relu(OpContext& c) {
  const float alpha = parse<ActivationAttrs>(c).alpha;
  map_floats(c, [=](auto x) { return x > static_cast<decltype(x)>(alpha) ? x : decltype(x)(0); });
}

// Integers compute in double: `bias` and `lambd` are fractions.
void run_shrink(OpContext& c) {
  const auto attr = parse<ShrinkAttrs>(c);
  const float lambd = attr.lambd;
  const float bias = attr.bias;
  map_input(c, NumericTypes{}, [=](auto x) {
    using T = decltype(x);
    using C = std::conditional_t<std::is_integral_v<T>, double, T>;
    const C v = static_cast<C>(x);
    C y = 0;
    if (v < -static_cast<C>(lambd)) y = v + static_cast<C>(bias);
    if (v > static_cast<C>(lambd)) y = v - static_cast<C>(bias);
    if constexpr (std::is_integral_v<T>) {
      return saturating_cast<T>(y);
    } else {
      return y;
    }
  });
}

void check_approximate(std::string_view mode) {
  if (mode != "none" && mode != "tanh") {
    fail(ErrorCode::invalid_model, "attribute 'approximate' is '{}'; permitted: none, tanh", mode);
  }
}

void infer_gelu(InferContext& c) {
  check_approximate(parse<GeluAttrs>(c).approximate);
  infer_same(c);
}

void run_gelu(OpContext& c) {
  const std::string_view mode = parse<GeluAttrs>(c).approximate;
  check_approximate(mode);
  if (mode == "tanh") {
    return map_floats(c, [](auto x) {
      using T = decltype(x);
      // (1 + tanh(u)) / 2 is logistic(2u), which keeps its digits for negative u.
      return x * logistic(T(2 * 0.7978845608028654) * (x + T(0.044715) * x * x * x));  // sqrt(2/pi)
    });
  }
  map_floats(c, [](auto x) {
    using T = decltype(x);
    return T(0.5) * x * std::erfc(-x * T(0.7071067811865476));  // 1 + erf(u) without cancellation
  });
}

void run_mish(OpContext& c) {
  map_floats(c, [](auto x) { return x * std::tanh(softplus(x)); });
}

void run_swish(OpContext& c) {
  const float alpha = parse<ActivationAttrs>(c).alpha;
  map_floats(c, [=](auto x) { return x * logistic(static_cast<decltype(x)>(alpha) * x); });
}

void infer_swiglu(InferContext& c) {
  const SymShape* a = c.shape(0);
  const SymShape* b = c.shape(1);
  if (a != nullptr && b != nullptr) {
    bool fits = a->size() == b->size();
    for (std::size_t i = 0; fits && i < a->size(); ++i) {
      fits = !(*a)[i].is_const() || !(*b)[i].is_const() || (*a)[i] == (*b)[i];
    }
    if (!fits) c.fail("A ({}) and B ({}) must have the same shape", to_string(*a), to_string(*b));
  }
  infer_same(c);
}

void run_swiglu(OpContext& c) {
  const Tensor& a = c.input(0);
  const Tensor& b = c.input(1);
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) {
    c.fail("A ({}) and B ({}) must have the same type and shape", a.type_string(), b.type_string());
  }
  const float alpha = parse<ActivationAttrs>(c).alpha;
  Tensor& out = c.output(0, a.dtype(), a.shape());
  dispatch(a.dtype(), FloatTypes{}, "SwiGLU", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeType<T>;
    const auto* pa = static_cast<const T*>(a.data());
    const auto* pb = static_cast<const T*>(b.data());
    auto* po = static_cast<T*>(out.mutable_data());
    parallel_for(a.size(), kElementGrain, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const C x = static_cast<C>(pa[i]);
        po[i] = static_cast<T>(x * logistic(static_cast<C>(alpha) * x) * static_cast<C>(pb[i]));
      }
    });
  });
}

OpDef activation(const char* name, int since, TypeSet set = types::floats) {
  return OpDef(name, since).in("X", "T", set).out("Y", "T", set);
}

void add_scaled(OpTable& t, const char* name, int since, RunFn run) {
  t.add(activation(name, since).attrs<ActivationAttrs>().infer_with(infer_same).run_with(run));
}

}  // namespace

void register_activations(OpTable& t) {
  add_scaled(t, "Elu", 1, run_elu);
  add_scaled(t, "Selu", 1, run_selu);
  add_scaled(t, "Celu", 12, run_celu);
  add_scaled(t, "LeakyRelu", 1, run_leaky_relu);
  add_scaled(t, "HardSigmoid", 1, run_hard_sigmoid);
  t.add(activation("HardSwish", 14).infer_with(infer_same).run_with(run_hard_swish));
  // Standard since opset 10; files of opset 1 to 9 hold it as one of ONNX's experimental operators.
  add_scaled(t, "ThresholdedRelu", 1, run_thresholded_relu);
  t.add(activation("Shrink", 9, types::numeric).attrs<ShrinkAttrs>().infer_with(infer_same).run_with(run_shrink));
  t.add(activation("Gelu", 20).attrs<GeluAttrs>().infer_with(infer_gelu).run_with(run_gelu));
  t.add(activation("Mish", 18).infer_with(infer_same).run_with(run_mish));
  add_scaled(t, "Swish", 24, run_swish);
  t.add(OpDef("SwiGLU", 28)
            .in("A B", "T", types::floats)
            .out("Y", "T", types::floats)
            .attrs<ActivationAttrs>()
            .infer_with(infer_swiglu)
            .run_with(run_swiglu));
}

}  // namespace sdx::ops
