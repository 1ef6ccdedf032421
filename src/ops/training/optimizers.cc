// Adagrad, Adam, Momentum: ai.onnx.preview.training 1. Inputs: R (learning rate), T (step), then all X, all G (gradients), then
// the accumulators; outputs: all new X, then the new accumulators.

#include <cmath>

#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "tensor/dispatch.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

struct AdagradAttrs {
  float decay_factor = 0, epsilon = 1e-6F, norm_coefficient = 0;

  void fields(auto& f) {
    f("decay_factor", decay_factor);
    f("epsilon", epsilon);
    f("norm_coefficient", norm_coefficient);
  }
};

struct AdamAttrs {
  float alpha = 0.9F, beta = 0.999F, epsilon = 1e-6F, norm_coefficient = 0, norm_coefficient_post = 0;

  void fields(auto& f) {
    f("alpha", alpha);
    f("beta", beta);
    f("epsilon", epsilon);
    f("norm_coefficient", norm_coefficient);
    f("norm_coefficient_post", norm_coefficient_post);
  }
};

struct MomentumAttrs {
  float alpha;
  float beta;
  std::string_view mode;
  float norm_coefficient;

  void fields(auto& f) {
    f.required("alpha", alpha);
    f.required("beta", beta);
    f.required("mode", mode);
    f.required("norm_coefficient", norm_coefficient);
  }
};

constexpr TypeSet kTypes = set_of(DataType::float32, DataType::float64);

// Groups of inputs after R and T: `groups` tensors for each optimised one.
std::size_t optimised(std::size_t inputs, std::size_t groups) {
  if (inputs < 2 + groups || (inputs - 2) % groups != 0) {
    fail(ErrorCode::invalid_model, "expected R, T and {} inputs for each optimised tensor, received {} inputs in all", groups,
         inputs);
  }
  return (inputs - 2) / groups;
}

// Outputs come as X, then accumulators: every group of inputs but the gradients has one.
template <std::size_t kGroups>
void infer_optimizer(InferContext& c) {
  const std::size_t n = optimised(c.num_inputs(), kGroups);
  if (c.num_outputs() > n * (kGroups - 1)) {
    c.fail("{} optimised tensors have {} outputs, received {}", n, n * (kGroups - 1), c.num_outputs());
  }
  for (std::size_t i = 0; i < c.num_outputs(); ++i) {
    const std::size_t input = 2 + (i < n ? i : i + n);
    if (c.has_input(input)) c.output(i, c.type(input));
  }
}

struct Step {
  double rate;
  std::int64_t count;
};

// Calls update(x, g, states[]) for every element of every optimised tensor; x and the states are changed in place.
template <std::size_t kGroups, class F>
void optimise(OpContext& c, F&& update) {
  constexpr std::size_t kStates = kGroups - 2;
  const std::size_t n = optimised(c.num_inputs(), kGroups);
  if (c.input(0).size() != 1 || c.input(1).size() != 1) c.fail("R and T must be scalars");
  for (std::size_t k = 0; k < n; ++k) {
    const Tensor& x = c.input(2 + k);
    for (std::size_t group = 1; group < kGroups; ++group) {
      const Tensor& other = c.input(2 + group * n + k);
      if (other.shape() == x.shape() && other.dtype() == x.dtype()) continue;
      c.fail("input {} must have the type of input {} ({}), received {}", 2 + group * n + k, 2 + k, x.type_string(),
             other.type_string());
    }
    dispatch(x.dtype(), TypeList<float, double>{}, c.node().op_type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* in[kGroups];
      T* out[kGroups - 1];
      for (std::size_t group = 0; group < kGroups; ++group) in[group] = c.data<T>(2 + group * n + k);
      for (std::size_t group = 0; group + 1 < kGroups; ++group) {
        out[group] = static_cast<T*>(c.output(group * n + k, x.dtype(), x.shape()).mutable_data());
      }
      for (std::int64_t i = 0; i < x.size(); ++i) {
        double value = static_cast<double>(in[0][i]);
        double states[kStates];
        for (std::size_t s = 0; s < kStates; ++s) states[s] = static_cast<double>(in[s + 2][i]);
        update(value, static_cast<double>(in[1][i]), states);
        out[0][i] = static_cast<T>(value);
        for (std::size_t s = 0; s < kStates; ++s) out[s + 1][i] = static_cast<T>(states[s]);
      }
    });
  }
}

Step read_step(OpContext& c) {
  if (c.input(0).size() < 1 || c.input(1).size() < 1) c.fail("R and T must be scalars");
  return {element_as_double(c.input(0), 0), element_as_int(c.input(1), 0)};
}

void run_adagrad(OpContext& c) {
  const auto attr = parse<AdagradAttrs>(c);
  const Step step = read_step(c);
  const double decay = static_cast<double>(attr.decay_factor);
  const double epsilon = static_cast<double>(attr.epsilon);
  const double norm = static_cast<double>(attr.norm_coefficient);
  const double rate = step.rate / (1 + static_cast<double>(step.count) * decay);
  optimise<3>(c, [&](double& x, double g, double* h) {
    const double gradient = norm * x + g;
    h[0] += gradient * gradient;
    x -= rate * gradient / (std::sqrt(h[0]) + epsilon);
  });
}

void run_adam(OpContext& c) {
  const auto attr = parse<AdamAttrs>(c);
  const Step step = read_step(c);
  const double alpha = static_cast<double>(attr.alpha);
  const double beta = static_cast<double>(attr.beta);
  const double epsilon = static_cast<double>(attr.epsilon);
  const double norm = static_cast<double>(attr.norm_coefficient);
  const double post = static_cast<double>(attr.norm_coefficient_post);
  double rate = step.rate;
  if (step.count > 0) {
    const auto t = static_cast<double>(step.count);
    rate *= std::sqrt(1 - std::pow(beta, t)) / (1 - std::pow(alpha, t));
  }
  optimise<4>(c, [&](double& x, double g, double* state) {
    const double gradient = norm * x + g;
    state[0] = alpha * state[0] + (1 - alpha) * gradient;
    state[1] = beta * state[1] + (1 - beta) * gradient * gradient;
    x = (1 - post) * (x - rate * state[0] / (std::sqrt(state[1]) + epsilon));
  });
}

void run_momentum(OpContext& c) {
  const auto attr = parse<MomentumAttrs>(c);
  const Step step = read_step(c);
  const double alpha = static_cast<double>(attr.alpha);
  const double beta = step.count > 0 ? static_cast<double>(attr.beta) : 1;
  const double norm = static_cast<double>(attr.norm_coefficient);
  const std::string_view mode = attr.mode;
  if (mode != "standard" && mode != "nesterov") c.fail("attribute 'mode' is '{}'; permitted: standard, nesterov", mode);
  const bool nesterov = mode == "nesterov";
  optimise<3>(c, [&](double& x, double g, double* v) {
    const double gradient = norm * x + g;
    v[0] = alpha * v[0] + beta * gradient;
    x -= step.rate * (nesterov ? gradient + alpha * v[0] : v[0]);
  });
}

OpDef def(const char* name) {
  return OpDef("ai.onnx.preview.training", name, 1)
      .in("R", "T1", kTypes)
      .in("T", "T2", types::int64)
      .in("inputs", "", kTypes, Arity::variadic)
      .out("outputs", "", kTypes, Arity::variadic);
}

}  // namespace

void register_optimizers(OpTable& t) {
  t.add(def("Adagrad").attrs<AdagradAttrs>().infer_with(infer_optimizer<3>).run_with(run_adagrad));
  t.add(def("Adam").attrs<AdamAttrs>().infer_with(infer_optimizer<4>).run_with(run_adam));
  t.add(def("Momentum").attrs<MomentumAttrs>().infer_with(infer_optimizer<3>).run_with(run_momentum));
}

}  // namespace sdx::ops
