// CheckpointState in memory: finding, copying, arithmetic.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sdx/train/checkpoint.hpp>

#include "base/error.h"
#include "base/suggest.h"
#include "tensor/element.h"

namespace sdx::train {
namespace {

void check_float(const Parameter& p) {
  if (p.value.dtype() == DataType::float32) return;
  fail(ErrorCode::invalid_argument, "parameter '{}' is {}; flat buffers hold only float32", p.name, p.value.type_string());
}

void clone_moments(OptimizerState& state) {
  for (auto& [parameter, moments] : state.moments) {
    for (auto& [name, moment] : moments) moment = moment.clone();
  }
}

void check_held(const CheckpointState& state) {
  if (state.nominal) fail(ErrorCode::invalid_argument, "a nominal checkpoint contains no values; load the full one");
}

void check_alike(const CheckpointState& a, const CheckpointState& b) {
  check_held(a);
  check_held(b);
  if (a.parameters.size() != b.parameters.size()) {
    fail(ErrorCode::invalid_argument, "the checkpoints have {} and {} parameters", a.parameters.size(), b.parameters.size());
  }
  for (const Parameter& p : a.parameters) {
    const Parameter* other = b.find(p.name);
    if (other == nullptr) fail(ErrorCode::invalid_argument, "only one of the checkpoints has parameter '{}'", p.name);
    if (other->value.dtype() != p.value.dtype() || other->value.shape() != p.value.shape()) {
      fail(ErrorCode::invalid_argument, "parameter '{}' is {} in one checkpoint and {} in the other", p.name,
           p.value.type_string(), other->value.type_string());
    }
  }
}

// f(element of `to`, of `from`) into `to`, where they are floating-point numbers.
template <class F>
void combine(Tensor& to, const Tensor& from, F&& f) {
  const auto each = [&]<class T>(T) {
    const auto a = to.mutable_values<T>();
    const auto b = from.values<T>();
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<T>(f(double{a[i]}, double{b[i]}));
  };
  if (to.dtype() == DataType::float32) return each(float{});
  if (to.dtype() == DataType::float64) return each(double{});
  if (!is_floating(to.dtype())) return;
  for (std::int64_t i = 0; i < to.size(); ++i) set_element(to, i, f(element_as_double(to, i), element_as_double(from, i)));
}

// Replaces each floating-point parameter p by f(p, the other state's); others stay.
template <class F>
CheckpointState combined(const CheckpointState& a, const CheckpointState& b, F&& f) {
  check_alike(a, b);
  CheckpointState out;
  for (const Parameter& p : a.parameters) {
    out.parameters.push_back({p.name, p.value.clone(), p.requires_grad});
    combine(out.parameters.back().value, b.at(p.name).value, f);
  }
  return out;
}

void add_weighted(std::span<double> sums, const Tensor& from, double weight) {
  const auto each = [&](const auto& values) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += weight * double{values[i]};
  };
  if (from.dtype() == DataType::float32) return each(from.values<float>());
  if (from.dtype() == DataType::float64) return each(from.values<double>());
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += weight * element_as_double(from, static_cast<std::int64_t>(i));
}

// The weights over their sum, which itself may be beyond what a double holds.
std::vector<double> shares_of(std::span<const double> weights, std::size_t count) {
  if (weights.empty()) return std::vector<double>(count, 1 / static_cast<double>(count));
  double largest = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0) || !std::isfinite(weights[i])) {
      fail(ErrorCode::invalid_argument, "weight {} is {}; weights must be finite and at least 0, such as numbers of samples", i,
           weights[i]);
    }
    largest = std::max(largest, weights[i]);
  }
  if (!(largest > 0)) fail(ErrorCode::invalid_argument, "all weights are 0; at least one must be above 0");
  std::vector<double> shares;
  double total = 0;
  for (const double w : weights) {
    shares.push_back(w / largest);
    total += shares.back();
  }
  for (double& s : shares) s /= total;
  return shares;
}

void assign(Tensor& to, std::span<const double> from) {
  if (to.dtype() == DataType::float32) {
    const auto values = to.mutable_values<float>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(from[i]);
    return;
  }
  for (std::size_t i = 0; i < from.size(); ++i) set_element(to, static_cast<std::int64_t>(i), from[i]);
}

}  // namespace

const Parameter* CheckpointState::find(std::string_view name) const {
  const auto it = std::find_if(parameters.begin(), parameters.end(), [&](const Parameter& p) { return p.name == name; });
  return it == parameters.end() ? nullptr : &*it;
}

Parameter* CheckpointState::find(std::string_view name) { return const_cast<Parameter*>(std::as_const(*this).find(name)); }

const Parameter& CheckpointState::at(std::string_view name) const {
  if (const Parameter* p = find(name)) return *p;
  std::vector<std::string> names;
  for (const Parameter& p : parameters) names.push_back(p.name);
  const std::string near = closest(std::string(name), names);
  fail(ErrorCode::invalid_argument, "the checkpoint has no parameter '{}'{}", name,
       near.empty() ? "" : "; did you mean '" + near + "'?");
}

Parameter& CheckpointState::at(std::string_view name) { return const_cast<Parameter&>(std::as_const(*this).at(name)); }

CheckpointState CheckpointState::clone() const {
  CheckpointState out = *this;
  if (nominal) return out;
  for (Parameter& p : out.parameters) p.value = p.value.clone();
  for (auto& [group, state] : out.optimizers) clone_moments(state);
  return out;
}

std::int64_t CheckpointState::size(bool trainable_only) const {
  std::int64_t total = 0;
  for (const Parameter& p : parameters) {
    if (p.requires_grad || !trainable_only) total += p.value.size();
  }
  return total;
}

Tensor CheckpointState::to_buffer(bool trainable_only) const {
  check_held(*this);
  Tensor out(DataType::float32, {size(trainable_only)});
  float* to = out.mutable_values<float>().data();
  for (const Parameter& p : parameters) {
    if (trainable_only && !p.requires_grad) continue;
    check_float(p);
    const auto from = p.value.values<float>();
    to = std::copy(from.begin(), from.end(), to);
  }
  return out;
}

void CheckpointState::from_buffer(const Tensor& buffer, bool trainable_only) {
  const bool all = std::all_of(parameters.begin(), parameters.end(), [](const Parameter& p) { return p.requires_grad; });
  if (nominal && trainable_only && !all) {
    fail(ErrorCode::invalid_argument,
         "a nominal checkpoint becomes a full one only if all its parameters are given, including those that are not trained");
  }
  const std::int64_t expected = size(trainable_only);
  if (buffer.dtype() != DataType::float32 || buffer.size() != expected) {
    fail(ErrorCode::invalid_argument, "the buffer is {}; these parameters need float32[{}]", buffer.type_string(), expected);
  }
  for (const Parameter& p : parameters) {
    if (p.requires_grad || !trainable_only) check_float(p);
  }
  if (nominal) {
    std::vector<Tensor> made;
    for (const Parameter& p : parameters) made.emplace_back(DataType::float32, p.value.shape());
    for (std::size_t i = 0; i < made.size(); ++i) parameters[i].value = std::move(made[i]);
    nominal = false;
  }
  const float* from = buffer.values<float>().data();
  for (Parameter& p : parameters) {
    if (trainable_only && !p.requires_grad) continue;
    if (p.value.size() != 0) std::memcpy(p.value.mutable_data(), from, p.value.bytes());
    from += p.value.size();
  }
}

CheckpointState difference(const CheckpointState& a, const CheckpointState& b) {
  return combined(a, b, [](double x, double y) { return x - y; });
}

CheckpointState sum(const CheckpointState& base, const CheckpointState& delta, double factor) {
  if (!std::isfinite(factor)) fail(ErrorCode::invalid_argument, "the factor is {}; it must be a finite number", factor);
  CheckpointState out = combined(base, delta, [factor](double x, double y) { return x + factor * y; });
  out.properties = base.properties;
  out.optimizers = base.optimizers;
  for (auto& [group, state] : out.optimizers) clone_moments(state);
  return out;
}

CheckpointState average(std::span<const CheckpointState> states, std::span<const double> weights) {
  if (states.empty()) fail(ErrorCode::invalid_argument, "there is nothing to average");
  if (!weights.empty() && weights.size() != states.size()) {
    fail(ErrorCode::invalid_argument, "{} checkpoints and {} weights; give one weight for each", states.size(), weights.size());
  }
  const std::vector<double> shares = shares_of(weights, states.size());
  for (const CheckpointState& s : states) check_alike(states[0], s);
  CheckpointState out = states[0].clone();
  for (Parameter& p : out.parameters) {
    if (!is_floating(p.value.dtype())) continue;
    Tensor sums(DataType::float64, p.value.shape());
    std::ranges::fill(sums.mutable_values<double>(), 0.0);
    for (std::size_t s = 0; s < states.size(); ++s) {
      // A checkpoint with a share of 0 is skipped, because 0 times infinity is NaN.
      if (shares[s] > 0) add_weighted(sums.mutable_values<double>(), states[s].at(p.name).value, shares[s]);
    }
    assign(p.value, sums.values<double>());
  }
  return out;
}

}  // namespace sdx::train
