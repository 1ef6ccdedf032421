// Gradients of NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.

#include "ops/gradient.h"
#include "ops/training/signatures.h"

namespace sdx::ops {
namespace {

// The derivative of the loss by the logarithms of the probabilities, [N, C, …]: minus the weight at each label, and 0 elsewhere.
Expr by_log_probability(GradientContext& c, Expr log_like) {
  const Expr x = c.in(0);
  Expr labels = c.emit("Cast", {c.in(1)}, {{"to", static_cast<std::int64_t>(DataType::int64)}});
  Expr weight;
  const auto attr = parse<LossAttrs>(c);
  if (attr.ignore_index) {
    const Expr ignored = call("Equal", labels, c.int_scalar(*attr.ignore_index));
    labels = where(ignored, c.int_scalar(0), labels);
    weight = where(ignored, c.scalar(0), c.scalar(1));
  } else {
    weight = c.emit("Expand", {c.scalar(1), c.shape_of(labels)});
  }
  if (c.has_input(2)) weight = weight * c.emit("Gather", {c.in(2), labels});
  if (attr.reduction == "mean") weight = weight / c.emit("ReduceSum", {weight}, {{"keepdims", std::int64_t{0}}});
  const Expr classes = c.emit("Gather", {c.shape_of(x), c.int_scalar(1)});
  const Expr values =
      c.emit("Concat", {c.emit("Unsqueeze", {c.scalar(0), c.ints({0})}), c.emit("Unsqueeze", {c.scalar(1), c.ints({0})})},
             {{"axis", std::int64_t{0}}});
  const Expr chosen = c.emit("OneHot", {labels, classes, values}, {{"axis", std::int64_t{1}}});
  const Expr g = c.dy() ? c.dy() * weight : c.zeros_like(weight);
  return c.cast_like(-(chosen * c.emit("Unsqueeze", {g, c.ints({1})})), log_like);
}

void no_weights(GradientContext& c) {
  if (c.wants(2)) c.refuse("the weights of the classes");
}

void likelihood(GradientContext& c) {
  no_weights(c);
  c.set(0, by_log_probability(c, c.in(0)));
}

void cross_entropy(GradientContext& c) {
  no_weights(c);
  const Expr scores = c.in(0);
  Expr g = by_log_probability(c, scores);
  if (c.dy(1)) g = g + c.dy(1);
  const Expr probabilities = c.emit("Softmax", {scores}, {{"axis", std::int64_t{1}}});
  c.set(0, g - probabilities * c.sum(g, {1}));
}

}  // namespace

void register_gradients_losses(GradientTable& t) {
  t.add("NegativeLogLikelihoodLoss", likelihood);
  t.add("SoftmaxCrossEntropyLoss", cross_entropy);
}

}  // namespace sdx::ops
