#include <algorithm>
#include <cmath>

#include "base/text/ascii.h"
#include "ops/recurrent/recurrent.h"

#include "ops/recurrent/signatures.h"

namespace sdx::ops {
namespace {

struct KnownActivation {
  std::string_view name;  // lower case
  ActivationKind kind;
  bool has_alpha, has_beta;
  float alpha, beta;  // defaults: those of the ONNX operators of the same name
};

constexpr KnownActivation kActivations[] = {
    {"relu", ActivationKind::relu, false, false, 0, 0},
    {"tanh", ActivationKind::tanh, false, false, 0, 0},
    {"sigmoid", ActivationKind::sigmoid, false, false, 0, 0},
    {"affine", ActivationKind::affine, true, true, 1, 0},
    {"leakyrelu", ActivationKind::leaky_relu, true, false, 0.01F, 0},
    {"thresholdedrelu", ActivationKind::thresholded_relu, true, false, 1, 0},
    {"scaledtanh", ActivationKind::scaled_tanh, true, true, 1, 1},
    {"hardsigmoid", ActivationKind::hard_sigmoid, true, true, 0.2F, 0.5F},
    {"elu", ActivationKind::elu, true, false, 1, 0},
    {"softsign", ActivationKind::softsign, false, false, 0, 0},
    {"softplus", ActivationKind::softplus, false, false, 0, 0},
};

std::vector<std::string> default_activations(Cell cell) {
  if (cell == Cell::lstm) return {"Sigmoid", "Tanh", "Tanh"};
  if (cell == Cell::gru) return {"Sigmoid", "Tanh"};
  return {"Tanh"};
}

const KnownActivation& find_activation(const std::string& name) {
  const std::string word = ascii_lower(name);
  for (const KnownActivation& k : kActivations) {
    if (k.name == word) return k;
  }
  fail(ErrorCode::invalid_model,
       "unknown activation '{}'; permitted: Relu, Tanh, Sigmoid, Affine, LeakyRelu, ThresholdedRelu, ScaledTanh, HardSigmoid, "
       "Elu, "
       "Softsign, Softplus",
       word);
}

// activation_alpha and activation_beta hold values only for the functions that take them, in order.
std::vector<RecurrentActivation> read_activations(const RecurrentFields& attr, Cell cell, std::size_t directions) {
  std::vector<std::string> words = to_vector(attr.activations);
  if (words.empty()) words = default_activations(cell);
  const std::size_t per = activations_of(cell);
  if (directions == 2 && words.size() == per) {  // one set serves both directions
    for (std::size_t i = 0; i < per; ++i) words.push_back(std::string(words[i]));
  }
  if (words.size() < per * directions) {
    fail(ErrorCode::invalid_model, "attribute 'activations' must name {} functions, received {}", per * directions, words.size());
  }
  const FloatList alphas = attr.activation_alpha, betas = attr.activation_beta;
  std::size_t next_alpha = 0;
  std::size_t next_beta = 0;
  std::vector<RecurrentActivation> out;
  for (std::size_t i = 0; i < per * directions; ++i) {
    const KnownActivation& k = find_activation(words[i]);
    RecurrentActivation a{k.kind, k.alpha, k.beta};
    if (k.has_alpha && next_alpha < alphas.size()) a.alpha = alphas[next_alpha++];
    if (k.has_beta && next_beta < betas.size()) a.beta = betas[next_beta++];
    out.push_back(a);
  }
  return out;
}

template <class C, class F>
void map(C* values, std::int64_t n, F&& fn) {
  for (std::int64_t i = 0; i < n; ++i) values[i] = fn(values[i]);
}

}  // namespace

RecurrentAttrs read_recurrent_attrs(const Node& node, Cell cell) {
  const auto attr = parse<RecurrentFields>(node);
  RecurrentAttrs a;
  const std::string_view direction = attr.direction;
  if (direction == "reverse") {
    a.forward = false;
    a.backward = true;
  } else if (direction == "bidirectional") {
    a.backward = true;
  } else if (direction != "forward") {
    fail(ErrorCode::invalid_model, "attribute 'direction' is '{}'; permitted: forward, reverse, bidirectional", direction);
  }
  a.batch_first = attr.batch_first;
  a.hidden = attr.hidden_size;
  if (a.hidden < 0) fail(ErrorCode::invalid_model, "attribute 'hidden_size' is {}; it must be positive", a.hidden);
  a.clip = attr.clip;
  if (!(a.clip >= 0)) fail(ErrorCode::invalid_model, "attribute 'clip' is {}; it must not be negative", a.clip);
  a.linear_before_reset = attr.linear_before_reset;
  a.input_forget = attr.input_forget;
  a.activations = read_activations(attr, cell, static_cast<std::size_t>(a.directions()));
  return a;
}

template <class C>
void activate(const RecurrentActivation& activation, C* values, std::int64_t n) {
  const C alpha = static_cast<C>(activation.alpha);
  const C beta = static_cast<C>(activation.beta);
  switch (activation.kind) {
    case ActivationKind::relu: return map(values, n, [](C x) { return x < C(0) ? C(0) : x; });
    case ActivationKind::tanh: return map(values, n, [](C x) { return std::tanh(x); });
    case ActivationKind::sigmoid: return map(values, n, [](C x) { return C(1) / (C(1) + std::exp(-x)); });
    case ActivationKind::affine: return map(values, n, [=](C x) { return alpha * x + beta; });
    case ActivationKind::leaky_relu: return map(values, n, [=](C x) { return x >= C(0) ? x : alpha * x; });
    case ActivationKind::thresholded_relu: return map(values, n, [=](C x) { return x >= alpha ? x : C(0); });
    case ActivationKind::scaled_tanh: return map(values, n, [=](C x) { return alpha * std::tanh(beta * x); });
    case ActivationKind::hard_sigmoid:
      return map(values, n, [=](C x) { return std::min(std::max(alpha * x + beta, C(0)), C(1)); });
    case ActivationKind::elu: return map(values, n, [=](C x) { return x >= C(0) ? x : alpha * std::expm1(x); });
    case ActivationKind::softsign: return map(values, n, [](C x) { return x / (C(1) + std::fabs(x)); });
    case ActivationKind::softplus:
      return map(values, n, [](C x) { return std::max(x, C(0)) + std::log1p(std::exp(-std::fabs(x))); });
  }
}

template void activate<float>(const RecurrentActivation&, float*, std::int64_t);
template void activate<double>(const RecurrentActivation&, double*, std::int64_t);

}  // namespace sdx::ops
