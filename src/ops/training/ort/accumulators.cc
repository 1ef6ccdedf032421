// com.microsoft InPlaceAccumulator, InPlaceAccumulatorV2, SGDOptimizer, AdamOptimizer: they work in place in ONNX Runtime. Here
// each gives its result as an output, and the caller says which memory that lies in.

#include <cmath>

#include "ops/context.h"
#include "ops/math/elementwise.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "ops/training/ort/signatures.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

bool flag(const OpContext& c, std::size_t i, bool otherwise) {
  const Tensor* t = c.optional_input(i);
  if (t == nullptr) return otherwise;
  if (t->size() != 1) c.fail("input {} must be one truth value, received {}", i, t->type_string());
  return element_as_int(*t, 0) != 0;
}

double number(const OpContext& c, std::size_t i) {
  if (c.input(i).size() != 1) c.fail("input {} must be one number, received {}", i, c.input(i).type_string());
  return element_as_double(c.input(i), 0);
}

void expect_like(OpContext& c, std::size_t i, std::size_t like) {
  if (c.input(i).shape() == c.input(like).shape()) return;
  c.fail("input {} must have the shape of input {} ({}), received {}", i, like, c.input(like).type_string(),
         c.input(i).type_string());
}

// --- accumulation -------------------------------------------------------------------------------------------------------

void add_up(OpContext& c, std::size_t output, bool with_old, bool with_new) {
  expect_like(c, AccumulatorIn::kValue, AccumulatorIn::kBuffer);
  const Tensor& buffer = c.input(AccumulatorIn::kBuffer);
  Tensor& out = c.output(output, buffer.dtype(), buffer.shape());
  dispatch_compute(buffer.dtype(), c.node().op_type, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> old(buffer), value(c.input(AccumulatorIn::kValue));
    FloatOutput<C> y(out);
    for (std::int64_t i = 0; i < out.size(); ++i) y[i] = (with_old ? old[i] : C(0)) + (with_new ? value[i] : C(0));
    y.store();
  });
}

void run_accumulator(OpContext& c) { add_up(c, 0, true, flag(c, AccumulatorIn::kFlag, true)); }

void infer_accumulator_v2(InferContext& c) {
  c.output(0, DataType::boolean, SymShape{Dim(1)});
  if (c.has_output(1)) c.output(1, c.type(AccumulatorIn::kBuffer));
}

void run_accumulator_v2(OpContext& c) {
  const bool overwrite = flag(c, AccumulatorIn::kFlag, false);
  expect_like(c, AccumulatorIn::kValue, AccumulatorIn::kBuffer);
  *static_cast<bool*>(c.output(0, DataType::boolean, {1}).mutable_data()) = true;
  if (c.wants_output(1)) add_up(c, 1, !overwrite, true);
}

// --- optimisers of one parameter ----------------------------------------------------------------------------------------

void infer_sgd(InferContext& c) {
  for (std::size_t i = 0; i < c.num_outputs(); ++i) c.output(i, c.type(i + 1));
}

void run_sgd(OpContext& c) {
  const double rate = number(c, 0);
  expect_like(c, 2, 1);
  const Tensor& w = c.input(1);
  Tensor& updated = c.output(0, w.dtype(), w.shape());
  Tensor& change = c.output(1, c.input(2).dtype(), w.shape());
  dispatch_compute(w.dtype(), "SGDOptimizer", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> weight(w), gradient(c.input(2));
    FloatOutput<C> y(updated), d(change);
    for (std::int64_t i = 0; i < w.size(); ++i) {
      d[i] = -static_cast<C>(rate) * gradient[i];
      y[i] = weight[i] + d[i];
    }
    y.store();
    d.store();
  });
}

struct AdamOptimizerAttrs {
  float alpha = 0.9F, beta = 0.999F, epsilon = 1e-8F, lambda = 0, max_norm_clip = 1;
  bool do_bias_correction = true;
  std::int64_t weight_decay_mode = 0;  // 0: before the update; 1: after it

  void fields(auto& f) {
    f("alpha", alpha);
    f("beta", beta);
    f("do_bias_correction", do_bias_correction);
    f("epsilon", epsilon);
    f("lambda", lambda);
    f("max_norm_clip", max_norm_clip);
    f("weight_decay_mode", weight_decay_mode);
  }
};

struct AdamOptimizerIn {
  enum Slot : std::size_t { kRate, kStep, kWeight, kGradient, kMoment1, kMoment2, kMixed, kLossScale, kNorm, kSignal };
};

void infer_adam(InferContext& c) {
  using enum AdamOptimizerIn::Slot;
  const std::size_t sources[] = {kStep, kMoment1, kMoment2, kWeight, kGradient, kMixed};
  for (std::size_t i = 0; i < c.num_outputs() && i < 6; ++i) {
    if (c.has_input(sources[i])) c.output(i, c.type(sources[i]));
  }
}

// The divisor of the gradient: the scale of the loss, times the factor that reduces the norm to max_norm_clip.
double gradient_divisor(OpContext& c, float max_norm_clip) {
  using enum AdamOptimizerIn::Slot;
  const double scale = c.has_input(kLossScale) ? number(c, kLossScale) : 1;
  if (!c.has_input(kNorm)) return scale;
  const double norm = number(c, kNorm), most = static_cast<double>(max_norm_clip);
  return norm > most * scale ? norm / most : scale;
}

struct AdamStep {
  double alpha, beta, epsilon, lambda, rate, correction1 = 1, correction2 = 1;
  bool decay_after;

  // The change of a weight whose moments are up to date.
  double change(double w, double m1, double m2) const {
    if (decay_after) {
      const double step = rate * std::sqrt(correction2) / correction1 * m1 / (std::sqrt(m2) + epsilon);
      return -step - rate * lambda * (w - step);
    }
    return -rate * (m1 / correction1 / (std::sqrt(m2 / correction2) + epsilon) + lambda * w);
  }
};

AdamStep adam_step(OpContext& c, const AdamOptimizerAttrs& attr) {
  if (attr.weight_decay_mode != 0 && attr.weight_decay_mode != 1) {
    c.fail("attribute 'weight_decay_mode' is {}; permitted: 0, 1", attr.weight_decay_mode);
  }
  AdamStep s{static_cast<double>(attr.alpha),
             static_cast<double>(attr.beta),
             static_cast<double>(attr.epsilon),
             static_cast<double>(attr.lambda),
             number(c, AdamOptimizerIn::kRate),
             1,
             1,
             attr.weight_decay_mode == 1};
  const double step = number(c, AdamOptimizerIn::kStep);
  if (attr.do_bias_correction && step > 0) {
    s.correction1 = 1 - std::pow(s.alpha, step);
    s.correction2 = 1 - std::pow(s.beta, step);
  }
  return s;
}

void run_adam(OpContext& c) {
  using enum AdamOptimizerIn::Slot;
  const auto attr = parse<AdamOptimizerAttrs>(c);
  const AdamStep step = adam_step(c, attr);
  for (const std::size_t i : {kGradient, kMoment1, kMoment2}) expect_like(c, i, kWeight);
  const bool update = flag(c, kSignal, true);
  const double divisor = gradient_divisor(c, attr.max_norm_clip);
  const Tensor& w = c.input(kWeight);
  const FloatInput<double> weight(w), gradient(c.input(kGradient)), m1(c.input(kMoment1)), m2(c.input(kMoment2));
  const auto n = static_cast<std::size_t>(w.size());
  std::vector<double> results[4];  // by output less one: the moments, the weight, the change
  for (auto& r : results) r.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const double g = gradient[at] / divisor;
    results[0][i] = update ? step.alpha * m1[at] + (1 - step.alpha) * g : m1[at];
    results[1][i] = update ? step.beta * m2[at] + (1 - step.beta) * g * g : m2[at];
    results[3][i] = update ? step.change(weight[at], results[0][i], results[1][i]) : 0;
    results[2][i] = weight[at] + results[3][i];
  }
  set_element_int(c.output(0, DataType::int64, c.input(kStep).shape()), 0, element_as_int(c.input(kStep), 0) + (update ? 1 : 0));
  const std::size_t like[] = {kMoment1, kMoment2, kWeight, kGradient};
  for (std::size_t i = 0; i < 4; ++i) {
    if (c.wants_output(i + 1)) store_floats(results[i].data(), c.output(i + 1, c.input(like[i]).dtype(), w.shape()));
  }
  if (c.wants_output(5) && c.has_input(kMixed)) store_floats(results[2].data(), c.output(5, c.input(kMixed).dtype(), w.shape()));
}

OpDef adam() {
  const TypeSet f = types::floats;
  const Arity optional = Arity::optional;
  OpDef d("com.microsoft", "AdamOptimizer", 1);
  d.in("R", "T1", f).in("T", "T2", types::int64).in("weights", "T3", f).in("gradients", "T_GRAD", f);
  d.in("moment_1 moment_2", "T4", f).in("mixed_precision_weights", "T_MIXED_PRECISION_FP", f, optional);
  d.in("loss_scale", "T3", f, optional).in("global_gradient_norm", "T_GRAD_NORM", f, optional);
  d.in("update_signal", "T_BOOL", types::boolean, optional);
  d.out("new_T", "T2", types::int64).out("new_moment_1 new_moment_2", "T4", f);
  d.out("new_weights", "T3", f, optional).out("new_gradients", "T_GRAD", f, optional);
  d.out("new_mixed_precision_weights", "T_MIXED_PRECISION_FP", f, optional).attrs<AdamOptimizerAttrs>();
  return d;
}

}  // namespace

void register_accumulators(OpTable& t) {
  const TypeSet f = types::floats;
  t.add(OpDef("com.microsoft", "InPlaceAccumulator", 1)
            .in("old_sum", "T", f)
            .in("value", "T_GRAD", f)
            .in("update_signal", "T_BOOL", types::boolean, Arity::optional)
            .out("new_sum", "T", f)
            .infer_with(infer_same)
            .run_with(run_accumulator));
  t.add(OpDef("com.microsoft", "InPlaceAccumulatorV2", 1)
            .in("accumulation_buffer", "T", f)
            .in("value", "T_GRAD", f)
            .in("overwrite_flag", "T_BOOL", types::boolean, Arity::optional)
            .out("updated_flag", "T_BOOL", types::boolean)
            .out("accumulation_buffer_out", "T", f, Arity::optional)
            .infer_with(infer_accumulator_v2)
            .run_with(run_accumulator_v2));
  t.add(OpDef("com.microsoft", "SGDOptimizer", 1)
            .in("ETA", "L", f)
            .in("W G", "T", f)
            .out("NW NG", "T", f, Arity::optional)
            .infer_with(infer_sgd)
            .run_with(run_sgd));
  t.add(adam().infer_with(infer_adam).run_with(run_adam));
}

}  // namespace sdx::ops
