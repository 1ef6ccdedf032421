#include "train/step/rule.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "onnx/reader.h"
#include "train/artifacts/optimizer_model.h"

namespace sdx::train {
namespace {

void check_range(const char* what, float value, float low, float end) {
  if (value >= low && value < end) return;
  fail(ErrorCode::invalid_argument, "{} is {}; expected at least {} and less than {}", what, value, low, end);
}

void check_not_negative(const char* what, float value) {
  if (value >= 0 && std::isfinite(value)) return;
  fail(ErrorCode::invalid_argument, "{} is {}; expected at least 0", what, value);
}

}  // namespace

void check_options(const OptimizerOptions& o) {
  check_range("beta1", o.beta1, 0, 1);
  check_range("beta2", o.beta2, 0, 1);
  check_range("alpha", o.alpha, 0, 1);
  check_not_negative("epsilon", o.epsilon);
  check_not_negative("weight_decay", o.weight_decay);
  check_not_negative("momentum", o.momentum);
  check_not_negative("initial_accumulator", o.initial_accumulator);
  check_not_negative("clip_norm", o.clip_norm);
  if (!std::isfinite(o.dampening)) fail(ErrorCode::invalid_argument, "dampening is {}", o.dampening);
  if (o.adam_mode != 0 && o.adam_mode != 1) {
    fail(ErrorCode::invalid_argument, "adam_mode is {}; permitted: 0 (decay before the update) and 1 (after it)", o.adam_mode);
  }
  if (o.nesterov && (o.momentum == 0 || o.dampening != 0)) {
    fail(ErrorCode::invalid_argument, "nesterov needs a momentum and no dampening");
  }
}

std::size_t moments_of(const OptimizerOptions& o) {
  switch (o.kind) {
    case OptimizerKind::adamw:
    case OptimizerKind::adam: return 2;
    case OptimizerKind::sgd: return o.momentum != 0 ? 1 : 0;
    case OptimizerKind::rmsprop: return o.momentum != 0 ? 2 : 1;
    case OptimizerKind::adagrad:
    case OptimizerKind::lion: return 1;
  }
  return 0;
}

namespace {

void adam_rule(const OptimizerOptions& o, double rate, std::int64_t step, cpu::UpdateRule& rule) {
  const auto t = static_cast<double>(step);
  const double first = o.correct_bias ? 1 - std::pow(static_cast<double>(o.beta1), t) : 1;
  const double second = o.correct_bias ? 1 - std::pow(static_cast<double>(o.beta2), t) : 1;
  const bool late = o.kind == OptimizerKind::adamw && o.adam_mode == 1;
  rule.kind = cpu::UpdateKind::adam;
  rule.epsilon = o.epsilon;
  rule.rate = static_cast<float>(late ? rate * std::sqrt(second) / first : rate / first);
  rule.root = late ? 1.0F : static_cast<float>(1 / std::sqrt(second));
  const auto kept = static_cast<float>(1 - rate * static_cast<double>(o.weight_decay));
  if (o.kind == OptimizerKind::adam) {
    rule.l2 = o.weight_decay;
  } else {
    (late ? rule.after : rule.before) = kept;
  }
}

}  // namespace

cpu::UpdateRule rule_for(const OptimizerOptions& o, float rate, std::int64_t step) {
  using cpu::UpdateKind;
  cpu::UpdateRule rule;
  std::memset(static_cast<void*>(&rule), 0, sizeof rule);  // its bytes go through graphs
  rule = cpu::UpdateRule();
  rule.rate = rate;
  rule.beta1 = o.beta1;
  rule.beta2 = o.beta2;
  rule.epsilon = o.epsilon;
  switch (o.kind) {
    case OptimizerKind::adamw:
    case OptimizerKind::adam: adam_rule(o, static_cast<double>(rate), step, rule); break;
    case OptimizerKind::sgd:
      rule.kind = o.momentum != 0 ? UpdateKind::momentum : UpdateKind::sgd;
      rule.l2 = o.weight_decay;
      rule.beta1 = o.momentum;
      rule.fresh = step <= 1 ? 1 : 1 - o.dampening;  // the first gradient is the first momentum
      rule.nesterov = o.nesterov;
      break;
    case OptimizerKind::rmsprop:
      rule.kind = o.momentum != 0 ? UpdateKind::rmsprop_momentum : UpdateKind::rmsprop;
      rule.l2 = o.weight_decay;
      rule.beta1 = o.momentum;
      rule.beta2 = o.alpha;
      break;
    case OptimizerKind::adagrad:
      rule.kind = UpdateKind::adagrad;
      rule.l2 = o.weight_decay;
      break;
    case OptimizerKind::lion:
      rule.kind = UpdateKind::lion;
      rule.before = 1 - rate * o.weight_decay;
      break;
  }
  return rule;
}

OptimizerOptions read_optimizer_model(const std::filesystem::path& path) {
  try {
    const OptimizerOptions options = optimizer_of(read_model(path));
    check_options(options);
    return options;
  } catch (Error& e) {
    e.add_context("in '" + path.string() + "'");
    throw;
  }
}

OptimizerState& prepare_moments(CheckpointState& state, const std::vector<std::size_t>& parameters,
                                const OptimizerOptions& options) {
  const std::size_t count = moments_of(options);
  OptimizerState& group = state.optimizers[kGroup];
  for (const std::size_t number : parameters) {
    const Parameter& p = state.parameters[number];
    if (count == 0) break;
    auto& moments = group.moments[p.name];
    for (std::size_t i = 0; i < count; ++i) {
      Tensor& moment = moments[kMoments[i]];
      if (!moment.defined()) {
        moment = Tensor(DataType::float32, p.value.shape());
        const auto values = moment.mutable_values<float>();
        const bool sums = options.kind == OptimizerKind::adagrad;
        std::fill(values.begin(), values.end(), sums ? options.initial_accumulator : 0.0F);
      }
      if (moment.dtype() != DataType::float32 || moment.shape() != p.value.shape()) {
        fail(ErrorCode::invalid_argument, "{} of parameter '{}' is {}; expected float32{}", kMoments[i], p.name,
             moment.type_string(), sdx::to_string(p.value.shape()));
      }
      if (!moment.writable()) moment = moment.clone();
    }
  }
  return group;
}

cpu::UpdateSlice slice_of(Parameter& parameter, OptimizerState& group, const OptimizerOptions& options, float* gradient) {
  cpu::UpdateSlice s{static_cast<float*>(parameter.value.mutable_data()), gradient, nullptr, nullptr, parameter.value.size()};
  const std::size_t count = moments_of(options);
  if (count == 0) return s;
  auto& moments = group.moments.at(parameter.name);
  s.m = static_cast<float*>(moments.at(kMoments[0]).mutable_data());
  if (count > 1) s.v = static_cast<float*>(moments.at(kMoments[1]).mutable_data());
  return s;
}

}  // namespace sdx::train
