// SoftmaxCrossEntropyLoss and com.microsoft SoftmaxCrossEntropyLossGrad in float32.

#include <limits>

#include "kernels/cpu/rows/softmax.h"
#include "kernels/cpu/rows/softmax_grad.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/gather_index.h"
#include "ops/training/loss_parts.h"
#include "ops/training/ort/signatures.h"
#include "ops/training/signatures.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

// Where the loss and its gradient have the inputs that they share, and the attributes that both read.
struct Inputs {
  std::size_t scores, labels, weight;
  ops::Reduction reduction;
  std::optional<std::int64_t> ignored;
};

// Checks the shapes; returns the scores' as [batch, classes, inner].
ops::LossSizes check_shapes(const ResolveContext& c, const Inputs& in, bool weighted) {
  const Shape scores = c.input_shape(in.scores), expected = ops::sample_shape(scores);
  if (c.input_shape(in.labels) != expected) {
    fail(ErrorCode::runtime_failure, "labels must have shape {} for scores {}, received {}", to_string(expected),
         to_string(scores), to_string(c.input_shape(in.labels)));
  }
  if (weighted && element_count(c.input_shape(in.weight)) != scores[1]) {
    fail(ErrorCode::runtime_failure, "the weights must have shape [{}], received {}", scores[1],
         to_string(c.input_shape(in.weight)));
  }
  return {scores[0], scores[1], ops::product(scores, 2, scores.size())};
}

struct LossState : KernelState {
  ops::LossSizes sizes{};
};

// Reads labels as int64, with -1 for an ignored one. Returns the sum of their weights.
double read_labels(const KernelContext& c, const Inputs& in, const ops::LossSizes& s, std::int64_t* labels) {
  const float* weight = c.has_input(in.weight) ? c.in<float>(in.weight) : nullptr;
  double total = 0;
  ops::dispatch_index(c.input(in.labels), [&](const auto* given) {
    for (std::int64_t i = 0; i < s.samples(); ++i) {
      const std::int64_t l = given[i];
      labels[i] = l == in.ignored ? -1 : l;
      if (labels[i] < 0 && l != in.ignored) labels[i] = std::numeric_limits<std::int64_t>::max();
      if (labels[i] >= s.classes) {
        fail(ErrorCode::runtime_failure, "label {} is out of range; permitted: 0 to {}", l, s.classes - 1);
      }
      if (labels[i] >= 0) total += weight != nullptr ? static_cast<double>(weight[l]) : 1;
    }
  });
  return total;
}

std::size_t bytes_of(std::int64_t n, std::size_t element) { return static_cast<std::size_t>(n) * element; }

class LossKernel : public Kernel {
 public:
  LossKernel(const Inputs& in, bool weighted, bool log_prob) : in_(in), weighted_(weighted), log_prob_(log_prob) {}
  std::string_view name() const override { return "class-loss-f32"; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<LossState>();
    state->sizes = check_shapes(c, in_, weighted_);
    c.workspace_bytes = bytes_of(state->sizes.samples(), sizeof(std::int64_t));
    if (!log_prob_) c.workspace_bytes += bytes_of(element_count(c.input_shape(0)), sizeof(float));
    return state;
  }

  void run(const KernelContext& c) const override {
    const ops::LossSizes& s = static_cast<const LossState*>(c.state)->sizes;
    auto* const labels = static_cast<std::int64_t*>(c.workspace);
    float* const logp = log_prob_ ? c.out<float>(1) : reinterpret_cast<float*>(labels + s.samples());
    const double weights = read_labels(c, in_, s, labels);
    log_softmax_f32(c.in<float>(0), logp, s.batch, s.classes, s.inner);
    const float* weight = weighted_ ? c.in<float>(in_.weight) : nullptr;
    auto* const y = c.out<float>(0);
    double total = 0;
    for (std::int64_t i = 0; i < s.samples(); ++i) {
      const std::int64_t l = labels[i];
      double loss = l < 0 ? 0 : -static_cast<double>(logp[s.first(i) + l * s.inner]);
      if (weight != nullptr && l >= 0) loss *= static_cast<double>(weight[l]);
      if (in_.reduction == ops::Reduction::none) y[i] = static_cast<float>(loss);
      total += loss;
    }
    if (in_.reduction == ops::Reduction::sum) y[0] = static_cast<float>(total);
    if (in_.reduction == ops::Reduction::mean) y[0] = static_cast<float>(total / weights);
  }

 private:
  Inputs in_;
  bool weighted_, log_prob_;
};

// Tells whether scores and weights are float32 and labels of a known type; false after a refusal.
bool takes(LowerContext& c, const Inputs& in) {
  if (c.dtype(in.scores) != DataType::float32 || (c.has_input(in.weight) && c.dtype(in.weight) != DataType::float32)) {
    return c.refuse("not float32"), false;
  }
  if (c.shape(in.scores) == nullptr || c.shape(in.scores)->size() < 2) return c.refuse("rank unknown or below 2"), false;
  return true;
}

std::unique_ptr<Kernel> make_loss(LowerContext& c) {
  const auto attr = ops::parse<ops::LossAttrs>(c);
  const Inputs in{0, 1, 2, ops::read_reduction(attr.reduction), attr.ignore_index};
  if (!takes(c, in)) return nullptr;
  if (!c.has_output(0)) return c.refuse("no loss");
  return std::make_unique<LossKernel>(in, c.has_input(in.weight), c.has_output(1));
}

class LossGradKernel : public Kernel {
 public:
  LossGradKernel(const Inputs& in, bool weighted) : in_(in), weighted_(weighted) {}
  std::string_view name() const override { return "class-loss-grad-f32"; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<LossState>();
    state->sizes = check_shapes(c, in_, weighted_);
    const std::int64_t samples = state->sizes.samples();
    const std::int64_t upstream = in_.reduction == ops::Reduction::none ? samples : 1;
    if (element_count(c.input_shape(ops::LossGradIn::kDy)) != upstream) {
      fail(ErrorCode::runtime_failure, "dY must have {} elements, received shape {}", upstream,
           to_string(c.input_shape(ops::LossGradIn::kDy)));
    }
    c.workspace_bytes = bytes_of(samples, sizeof(std::int64_t) + sizeof(float));
    return state;
  }

  void run(const KernelContext& c) const override {
    const ops::LossSizes& s = static_cast<const LossState*>(c.state)->sizes;
    auto* const labels = static_cast<std::int64_t*>(c.workspace);
    auto* const shares = reinterpret_cast<float*>(labels + s.samples());
    const double weights = read_labels(c, in_, s, labels);
    const double divisor = in_.reduction == ops::Reduction::mean && weights != 0 ? weights : 1;
    const float* weight = weighted_ ? c.in<float>(in_.weight) : nullptr;
    const auto* dy = c.in<float>(ops::LossGradIn::kDy);
    for (std::int64_t i = 0; i < s.samples(); ++i) {
      const double g = static_cast<double>(dy[in_.reduction == ops::Reduction::none ? i : 0]) / divisor;
      const bool counts = weight != nullptr && labels[i] >= 0;
      shares[i] = static_cast<float>(counts ? g * static_cast<double>(weight[labels[i]]) : g);
    }
    class_loss_grad_f32({c.in<float>(in_.scores), labels, shares, c.out<float>(0)}, s.batch, s.classes, s.inner);
  }

 private:
  Inputs in_;
  bool weighted_;
};

std::unique_ptr<Kernel> make_loss_grad(LowerContext& c) {
  using enum ops::LossGradIn::Slot;
  const auto attr = ops::parse<ops::LossGradAttrs>(c);
  const Inputs in{kLogProb, kLabel, kWeight, ops::read_reduction(attr.reduction), attr.ignore_index};
  if (!takes(c, in) || c.dtype(kDy) != DataType::float32) return nullptr;
  return std::make_unique<LossGradKernel>(in, c.has_input(kWeight));
}

}  // namespace

void register_kernels_class_losses(KernelTable& t) {
  t.add("", "SoftmaxCrossEntropyLoss", "class-loss-f32", 10, make_loss);
  t.add("com.microsoft", "SoftmaxCrossEntropyLossGrad", "class-loss-grad-f32", 10, make_loss_grad);
}

}  // namespace sdx::cpu
