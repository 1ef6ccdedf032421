// NegativeLogLikelihoodLoss: ai.onnx 12, 13, 22 (bfloat16). SoftmaxCrossEntropyLoss: ai.onnx 12, 13 (bfloat16).

#include <optional>

#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/training/loss_parts.h"
#include "ops/training/signatures.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

void infer_loss(InferContext& c) {
  const Reduction reduction = read_reduction(parse<LossAttrs>(c).reduction);
  const SymShape* x = c.shape(0);
  if (x != nullptr) c.output(1, c.dtype(0), *x);
  if (x == nullptr) c.output(1, c.dtype(0));
  if (reduction != Reduction::none) return c.output(0, c.dtype(0), SymShape{});
  if (x != nullptr) return c.output(0, c.dtype(0), sample_shape(*x));
  if (const SymShape* labels = c.shape(1)) return c.output(0, c.dtype(0), *labels);
  c.output(0, c.dtype(0));
}

LossSizes check_inputs(OpContext& c) {
  const Tensor& x = c.input(0);
  const Shape labels = sample_shape(x.shape());
  if (c.input(1).shape() != labels) {
    c.fail("labels must have shape {} for scores {}, received {}", to_string(labels), to_string(x.shape()),
           to_string(c.input(1).shape()));
  }
  const Tensor* weight = c.optional_input(2);
  if (weight != nullptr && weight->size() != x.dim(1)) {
    c.fail("the weights must have shape [{}], received {}", x.dim(1), to_string(weight->shape()));
  }
  return {x.dim(0), x.dim(1), product(x.shape(), 2, x.rank())};
}

// logp: log probabilities, laid out as the scores.
template <class C>
void reduce_loss(OpContext& c, const LossSizes& s, const C* logp) {
  const auto attr = parse<LossAttrs>(c);
  const Tensor& labels = c.input(1);
  const DataType elem = c.input(0).dtype();
  const Reduction reduction = read_reduction(attr.reduction);
  const FloatInput<C> weight(c.optional_input(2));
  std::optional<std::int64_t> ignored;
  if (attr.ignore_index.has_value()) ignored = *attr.ignore_index;
  Tensor& y = c.output(0, elem, reduction == Reduction::none ? labels.shape() : Shape{});
  FloatOutput<C> out(y);
  double total = 0;
  double weights = 0;
  for (std::int64_t i = 0; i < labels.size(); ++i) {
    const std::int64_t label = element_as_int(labels, i);
    double loss = 0;
    if (label != ignored) {
      if (label < 0 || label >= s.classes) c.fail("label {} is out of range; permitted: 0 to {}", label, s.classes - 1);
      const double w = weight ? static_cast<double>(weight[label]) : 1;
      loss = -static_cast<double>(logp[(i / s.inner * s.classes + label) * s.inner + i % s.inner]) * w;
      weights += w;
    }
    if (reduction == Reduction::none) out[i] = static_cast<C>(loss);
    total += loss;
  }
  if (reduction == Reduction::sum) out[0] = static_cast<C>(total);
  if (reduction == Reduction::mean) out[0] = static_cast<C>(total / weights);
  out.store();
}

void run_nll(OpContext& c) {
  const LossSizes s = check_inputs(c);
  dispatch_compute(c.input(0).dtype(), "NegativeLogLikelihoodLoss", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> in(c.input(0));
    reduce_loss<C>(c, s, in.data());
  });
}

void run_cross_entropy(OpContext& c) {
  const LossSizes s = check_inputs(c);
  const Tensor& x = c.input(0);
  dispatch_compute(x.dtype(), "SoftmaxCrossEntropyLoss", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> in(x);
    std::vector<C> logp(static_cast<std::size_t>(x.size()));
    log_softmax(s, in.data(), logp.data());
    reduce_loss<C>(c, s, logp.data());
    if (c.wants_output(1)) store_floats(logp.data(), c.output(1, x.dtype(), x.shape()));
  });
}

}  // namespace

void register_losses(OpTable& t) {
  OpDef negative_log_likelihood_loss("NegativeLogLikelihoodLoss", 12);
  negative_log_likelihood_loss.in("input", "T", types::floats).in("target", "Tind", types::indices);
  negative_log_likelihood_loss.in("weight", "T", types::floats, Arity::optional).out("loss", "T", types::floats);
  negative_log_likelihood_loss.attrs<LossAttrs>();
  t.add(std::move(negative_log_likelihood_loss).infer_with(infer_loss).run_with(run_nll));
  OpDef softmax_cross_entropy_loss("SoftmaxCrossEntropyLoss", 12);
  softmax_cross_entropy_loss.in("scores", "T", types::floats).in("labels", "Tind", types::indices);
  softmax_cross_entropy_loss.in("weights", "T", types::floats, Arity::optional).out("output", "T", types::floats);
  softmax_cross_entropy_loss.out("log_prob", "T", types::floats, Arity::optional).attrs<LossAttrs>();
  t.add(std::move(softmax_cross_entropy_loss).infer_with(infer_loss).run_with(run_cross_entropy));
}

}  // namespace sdx::ops
