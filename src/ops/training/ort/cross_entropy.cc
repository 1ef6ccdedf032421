// com.microsoft SoftmaxCrossEntropyLossGrad, SoftmaxCrossEntropyLossInternal, SoftmaxCrossEntropyLossInternalGrad: labels are
// numbers of classes, along axis 1. If every label is ignored, mean and gradient are 0.

#include <cmath>

#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/training/loss_parts.h"
#include "ops/training/ort/signatures.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

using enum LossGradIn::Slot;

DataType output_type(const LossGradAttrs& attr, DataType otherwise) {
  if (!attr.output_type) return otherwise;
  for (const DataType t : {DataType::float32, DataType::float64, DataType::float16, DataType::bfloat16}) {
    if (*attr.output_type == static_cast<std::int64_t>(t)) return t;
  }
  fail(ErrorCode::invalid_model, "attribute 'output_type' is {}; permitted: 1 (float), 10, 11, 16", *attr.output_type);
}

// The parts of labels, weights and the ignored label that both directions need.
struct Samples {
  LossSizes sizes;
  const Tensor& labels;
  const Tensor* weight;
  std::optional<std::int64_t> ignored;

  // -1 for a label that is ignored.
  std::int64_t label(std::int64_t sample) const {
    const std::int64_t l = element_as_int(labels, sample);
    if (l == ignored) return -1;
    if (l < 0 || l >= sizes.classes) {
      fail(ErrorCode::runtime_failure, "label {} is out of range; permitted: 0 to {}", l, sizes.classes - 1);
    }
    return l;
  }
  double weight_of(std::int64_t l) const { return weight == nullptr ? 1 : element_as_double(*weight, l); }
  // The sum of the weights; 1 where it is 0, so that one may divide by it.
  double total() const {
    double sum = 0;
    for (std::int64_t i = 0; i < sizes.samples(); ++i) {
      if (const std::int64_t l = label(i); l >= 0) sum += weight_of(l);
    }
    return sum == 0 ? 1 : sum;
  }
};

Samples samples_of(OpContext& c, const Tensor& scores, std::size_t labels, std::size_t weight, std::size_t ignored) {
  const Shape expected = sample_shape(scores.shape());
  if (c.input(labels).shape() != expected) {
    c.fail("labels must have shape {} for scores {}, received {}", to_string(expected), to_string(scores.shape()),
           to_string(c.input(labels).shape()));
  }
  const Tensor* w = c.optional_input(weight);
  if (w != nullptr && w->size() != scores.dim(1)) {
    c.fail("the weights must have shape [{}], received {}", scores.dim(1), to_string(w->shape()));
  }
  Samples s{{scores.dim(0), scores.dim(1), product(scores.shape(), 2, scores.rank())}, c.input(labels), w, {}};
  if (const Tensor* t = c.optional_input(ignored)) {
    if (t->size() != 1) c.fail("ignore_index must be one number, received {}", t->type_string());
    s.ignored = element_as_int(*t, 0);
  }
  return s;
}

// --- the loss ----------------------------------------------------------------------------------------------------------

void infer_loss(InferContext& c) {
  const auto attr = parse<LossGradAttrs>(c);
  const bool each = read_reduction(attr.reduction) == Reduction::none;
  const DataType elem = output_type(attr, c.dtype(0));
  const SymShape* x = c.shape(0);
  if (x == nullptr) {
    c.output(1, elem);
    return each ? c.output(0, elem) : c.output(0, elem, SymShape{});
  }
  c.output(1, elem, *x);
  c.output(0, elem, each ? sample_shape(*x) : SymShape{});
}

void run_loss(OpContext& c) {
  const auto attr = parse<LossGradAttrs>(c);
  const Reduction reduction = read_reduction(attr.reduction);
  const Tensor& scores = c.input(0);
  const DataType elem = output_type(attr, scores.dtype());
  const Samples s = samples_of(c, scores, 1, 2, 3);
  Tensor& log_prob = c.output(1, elem, scores.shape());
  Tensor& y = c.output(0, elem, reduction == Reduction::none ? s.labels.shape() : Shape{});
  dispatch_compute(scores.dtype(), c.node().op_type, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> in(scores);
    std::vector<C> logp(static_cast<std::size_t>(scores.size()));
    log_softmax(s.sizes, in.data(), logp.data());
    store_floats(logp.data(), log_prob);
    std::vector<C> losses(static_cast<std::size_t>(s.sizes.samples()));
    double sum = 0;
    for (std::int64_t i = 0; i < s.sizes.samples(); ++i) {
      const std::int64_t l = s.label(i);
      if (l < 0) continue;
      const double loss =
          -static_cast<double>(logp[static_cast<std::size_t>(s.sizes.first(i) + l * s.sizes.inner)]) * s.weight_of(l);
      losses[static_cast<std::size_t>(i)] = static_cast<C>(loss);
      sum += loss;
    }
    if (reduction == Reduction::none) return store_floats(losses.data(), y);
    const auto result = static_cast<C>(reduction == Reduction::mean ? sum / s.total() : sum);
    store_floats(&result, y);
  });
}

// --- its gradient ------------------------------------------------------------------------------------------------------

void infer_gradient(InferContext& c) {
  const auto attr = parse<LossGradAttrs>(c);
  read_reduction(attr.reduction);
  const DataType elem = output_type(attr, c.dtype(kLogProb));
  if (const SymShape* s = c.shape(kLogProb)) return c.output(0, elem, *s);
  c.output(0, elem);
}

// (p - 1 at the label) times the sample's share.
void run_gradient(OpContext& c) {
  const auto attr = parse<LossGradAttrs>(c);
  const Reduction reduction = read_reduction(attr.reduction);
  const Tensor& log_prob = c.input(kLogProb);
  Samples s = samples_of(c, log_prob, kLabel, kWeight, kIgnoreIndex);
  if (attr.ignore_index) s.ignored = *attr.ignore_index;
  const std::int64_t upstream = reduction == Reduction::none ? s.sizes.samples() : 1;
  if (c.input(kDy).size() != upstream) c.fail("dY must have {} elements, received {}", upstream, c.input(kDy).type_string());
  const Tensor* bias = c.optional_input(kBias);
  if (bias != nullptr && bias->size() != log_prob.size()) {
    c.fail("the bias {} must be as large as log_prob {}", bias->type_string(), log_prob.type_string());
  }
  Tensor& out = c.output(0, output_type(attr, log_prob.dtype()), log_prob.shape());
  dispatch_compute(log_prob.dtype(), c.node().op_type, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> logp(log_prob), dy(c.input(kDy)), added(bias);
    FloatOutput<C> dx(out);
    const double total = reduction == Reduction::mean ? s.total() : 1;
    for (std::int64_t i = 0; i < s.sizes.samples(); ++i) {
      const std::int64_t l = s.label(i);
      const double share = l < 0 ? 0 : s.weight_of(l) * static_cast<double>(dy[reduction == Reduction::none ? i : 0]) / total;
      for (std::int64_t k = 0; k < s.sizes.classes; ++k) {
        const std::int64_t at = s.sizes.first(i) + k * s.sizes.inner;
        const double p = std::exp(static_cast<double>(logp[at])) - (k == l ? 1 : 0);
        dx[at] = l < 0 ? C(0) : static_cast<C>(p * share);
        if (added) dx[at] += added[at];
      }
    }
    dx.store();
  });
}

OpDef gradient(const char* name) {
  OpDef d("com.microsoft", name, 1);
  d.in("dY log_prob", "T", types::floats).in("label", "Tind", types::indices);
  d.in("weight", "T", types::floats, Arity::optional);
  return d;
}

}  // namespace

void register_cross_entropy(OpTable& t) {
  t.add(OpDef("com.microsoft", "SoftmaxCrossEntropyLossInternal", 1)
            .in("scores", "T", types::floats)
            .in("labels", "Tind", types::indices)
            .in("weights", "T", types::floats, Arity::optional)
            .in("ignore_index", "I", types::int64, Arity::optional)
            .out("output log_prob", "TOut", types::floats)
            .attrs<LossGradAttrs>()
            .infer_with(infer_loss)
            .run_with(run_loss));
  t.add(gradient("SoftmaxCrossEntropyLossGrad")
            .out("d_logits", "T", types::floats)
            .attrs<LossGradAttrs>()
            .infer_with(infer_gradient)
            .run_with(run_gradient));
  t.add(gradient("SoftmaxCrossEntropyLossInternalGrad")
            .in("ignore_index", "I", types::int64, Arity::optional)
            .in("bias", "TOut", types::floats, Arity::optional)
            .out("d_logits", "TOut", types::floats)
            .attrs<LossGradAttrs>()
            .infer_with(infer_gradient)
            .run_with(run_gradient));
}

}  // namespace sdx::ops
