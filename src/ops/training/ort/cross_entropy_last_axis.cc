// com.microsoft SoftmaxCrossEntropy and its gradient: labels are weights of classes. ai.onnx SparseSoftmaxCrossEntropy 9 and its
// gradient: labels are numbers, with a weight for each sample. Classes lie along the last axis; the loss is a sum or a mean.

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

bool is_mean(const LossGradAttrs& attr) {
  const Reduction r = read_reduction(attr.reduction);
  if (r == Reduction::none) fail(ErrorCode::invalid_model, "attribute 'reduction' is 'none'; permitted: sum, mean");
  return r == Reduction::mean;
}

bool is_sparse(const Node& n) { return n.op_type.starts_with("Sparse"); }

LossSizes rows_of(const Tensor& scores) {
  if (scores.rank() == 0) fail(ErrorCode::invalid_model, "the scores must have rank 1 or more, received a scalar");
  return {product(scores.shape(), 0, scores.rank() - 1), scores.shape().back(), 1};
}

// The target of each class of each sample, given one way or the other.
class Targets {
 public:
  Targets(OpContext& c, const Tensor& scores, std::size_t labels, std::size_t weight)
      : sparse_(is_sparse(c.node())), sizes_(rows_of(scores)), labels_(c.input(labels)), weight_(c.optional_input(weight)) {
    Shape expected = scores.shape();
    if (sparse_) expected.pop_back();
    if (labels_.shape() != expected) {
      c.fail("labels must have shape {} for scores {}, received {}", to_string(expected), to_string(scores.shape()),
             to_string(labels_.shape()));
    }
    if (weight_ != nullptr && weight_->shape() != expected) {
      c.fail("the weights must have shape {}, received {}", to_string(expected), to_string(weight_->shape()));
    }
    for (std::int64_t i = 0; sparse_ && i < labels_.size(); ++i) {
      const std::int64_t l = element_as_int(labels_, i);
      if (l < 0 || l >= sizes_.classes) c.fail("label {} is out of range; permitted: 0 to {}", l, sizes_.classes - 1);
    }
  }

  double target(std::int64_t sample, std::int64_t k) const {
    if (!sparse_) return element_as_double(labels_, sample * sizes_.classes + k);
    return element_as_int(labels_, sample) == k ? 1 : 0;
  }
  double weight(std::int64_t sample) const { return weight_ == nullptr ? 1 : element_as_double(*weight_, sample); }
  // The divisor of a mean.
  double total() const {
    double sum = 0;
    for (std::int64_t i = 0; i < sizes_.batch; ++i) sum += weight(i);
    return sum;
  }
  const LossSizes& sizes() const { return sizes_; }

 private:
  bool sparse_;
  LossSizes sizes_;
  const Tensor& labels_;
  const Tensor* weight_;
};

void infer_loss(InferContext& c) {
  is_mean(parse<LossGradAttrs>(c));
  c.output(0, c.dtype(0), SymShape{});
  if (const SymShape* s = c.shape(0)) return c.output(1, c.dtype(0), *s);
  c.output(1, c.dtype(0));
}

void run_loss(OpContext& c) {
  const bool mean = is_mean(parse<LossGradAttrs>(c));
  const Tensor& scores = c.input(0);
  const Targets targets(c, scores, 1, 2);
  const LossSizes& sizes = targets.sizes();
  Tensor& y = c.output(0, scores.dtype(), {});
  Tensor& log_prob = c.output(1, scores.dtype(), scores.shape());
  dispatch_compute(scores.dtype(), c.node().op_type, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> in(scores);
    std::vector<C> logp(static_cast<std::size_t>(scores.size()));
    log_softmax(sizes, in.data(), logp.data());
    store_floats(logp.data(), log_prob);
    double sum = 0;
    for (std::int64_t i = 0; i < sizes.batch; ++i) {
      for (std::int64_t k = 0; k < sizes.classes; ++k) {
        const double t = targets.target(i, k);
        if (t != 0) sum -= t * targets.weight(i) * static_cast<double>(logp[static_cast<std::size_t>(i * sizes.classes + k)]);
      }
    }
    const auto result = static_cast<C>(mean ? sum / targets.total() : sum);
    store_floats(&result, y);
  });
}

void infer_gradient(InferContext& c) {
  is_mean(parse<LossGradAttrs>(c));
  if (const SymShape* s = c.shape(LossGradIn::kLogProb)) return c.output(0, c.dtype(LossGradIn::kLogProb), *s);
  c.output(0, c.dtype(LossGradIn::kLogProb));
}

void run_gradient(OpContext& c) {
  const bool mean = is_mean(parse<LossGradAttrs>(c));
  const Tensor &g = c.input(LossGradIn::kDy), &log_prob = c.input(LossGradIn::kLogProb);
  if (g.size() != 1) c.fail("dY must be one value, received {}", g.type_string());
  const Targets targets(c, log_prob, LossGradIn::kLabel, LossGradIn::kWeight);
  const LossSizes& sizes = targets.sizes();
  const double share = element_as_double(g, 0) / (mean ? targets.total() : 1);
  Tensor& out = c.output(0, log_prob.dtype(), log_prob.shape());
  dispatch_compute(log_prob.dtype(), c.node().op_type, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> logp(log_prob);
    FloatOutput<C> dx(out);
    for (std::int64_t i = 0; i < sizes.batch; ++i) {
      for (std::int64_t k = 0; k < sizes.classes; ++k) {
        const std::int64_t at = i * sizes.classes + k;
        const double p = std::exp(static_cast<double>(logp[at])) - targets.target(i, k);
        dx[at] = static_cast<C>(p * share * targets.weight(i));
      }
    }
    dx.store();
  });
}

struct Kind {
  const char *domain, *name, *gradient;
  int since;
  bool sparse;
};

void add(OpTable& t, const Kind& k) {
  const auto labels = [&](OpDef& d) {
    if (!k.sparse) return void(d.in("label", "T", types::floats));
    d.in("label", "Tind", types::indices).in("weight", "T", types::floats, Arity::optional);
  };
  OpDef loss(k.domain, k.name, k.since);
  loss.in("logits", "T", types::floats);
  labels(loss);
  loss.out("Y", "T", types::floats).out("log_prob", "T", types::floats, Arity::optional).attrs<LossGradAttrs>();
  t.add(std::move(loss).infer_with(infer_loss).run_with(run_loss));
  OpDef gradient(k.domain, k.gradient, k.since);
  gradient.in("dY log_prob", "T", types::floats);
  labels(gradient);
  gradient.out("d_logits", "T", types::floats).attrs<LossGradAttrs>();
  t.add(std::move(gradient).infer_with(infer_gradient).run_with(run_gradient));
}

}  // namespace

void register_cross_entropy_last_axis(OpTable& t) {
  add(t, {"com.microsoft", "SoftmaxCrossEntropy", "SoftmaxCrossEntropyGrad", 1, false});
  add(t, {"", "SparseSoftmaxCrossEntropy", "SparseSoftmaxCrossEntropyGrad", 9, true});
}

}  // namespace sdx::ops
