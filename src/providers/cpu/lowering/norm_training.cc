// com.microsoft BatchNormInternal and BatchNormalizationGrad, ai.onnx BatchNormalization in training (opset 14 and later), and
// MaxPoolGrad, in float32.

#include <cmath>

#include "kernels/cpu/image/max_pool_places.h"
#include "kernels/cpu/rows/batch_norm.h"
#include "kernels/cpu/rows/norm.h"
#include "ops/norm/signatures.h"
#include "ops/tensor/axes.h"
#include "ops/training/ort/signatures.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

BatchNormSizes sizes_of(const Shape& x) { return {x[0], x[1], ops::product(x, 2, x.size())}; }

void check_channels(const ResolveContext& c, std::size_t x, std::size_t first, std::size_t last) {
  const Shape images = c.input_shape(x);
  for (std::size_t i = first; i <= last; ++i) {
    if (c.input_shape(i) == Shape{images[1]}) continue;
    fail(ErrorCode::runtime_failure, "input {} must have shape [{}] for X {}, received {}", i, images[1], to_string(images),
         to_string(c.input_shape(i)));
  }
}

// Normalises by the statistics of the batch. Outputs: the result, the running mean and variance, and (BatchNormInternal) the
// batch's mean and inverse deviation. Running statistics of both operators use the variance of the population.
class BatchNormKernel : public Kernel {
 public:
  BatchNormKernel(float epsilon, float momentum) : epsilon_(epsilon), momentum_(momentum) {}
  std::string_view name() const override { return "batch-norm-training-f32"; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    check_channels(c, 0, 1, 4);
    c.workspace_bytes = to_bytes(4 * c.input_shape(0)[1]);
    return nullptr;
  }
  void run(const KernelContext& c) const override {
    const BatchNormSizes s = sizes_of(c.input(0).shape());
    auto* const mean = static_cast<float*>(c.workspace);
    float* const variance = mean + s.channels;
    float* const factor = variance + s.channels;
    float* const shift = factor + s.channels;
    batch_moments_f32(s, c.in<float>(0), mean, variance);
    const auto *scale = c.in<float>(1), *bias = c.in<float>(2);
    for (std::int64_t i = 0; i < s.channels; ++i) {
      const double inverse = inverse_of(variance[i]);
      const double f = static_cast<double>(scale[i]) * inverse;
      factor[i] = static_cast<float>(f);
      shift[i] = static_cast<float>(static_cast<double>(bias[i]) - static_cast<double>(mean[i]) * f);
      put(c, 4, i, static_cast<float>(inverse));
    }
    channel_affine_f32(c.in<float>(0), factor, shift, {}, c.out<float>(0), s.batch, s.channels, s.inner);
    for (std::int64_t i = 0; i < s.channels; ++i) {
      put(c, 1, i, c.in<float>(3)[i] * momentum_ + mean[i] * (1 - momentum_));
      put(c, 2, i, c.in<float>(4)[i] * momentum_ + variance[i] * (1 - momentum_));
      put(c, 3, i, mean[i]);
    }
  }

 private:
  static std::size_t to_bytes(std::int64_t floats) { return static_cast<std::size_t>(floats) * sizeof(float); }
  double inverse_of(float variance) const { return 1 / std::sqrt(static_cast<double>(variance) + static_cast<double>(epsilon_)); }
  static void put(const KernelContext& c, std::size_t output, std::int64_t i, float value) {
    if (c.has_output(output)) c.out<float>(output)[i] = value;
  }

  float epsilon_, momentum_;
};

// Tells whether inputs [0, count) are float32 and input 0 has a batch and channels; false after a refusal.
bool takes(LowerContext& c, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (c.dtype(i) != DataType::float32) return c.refuse("not float32"), false;
  }
  if (c.shape(0) == nullptr || c.shape(0)->size() < 2) return c.refuse("rank unknown or below 2"), false;
  return true;
}

std::unique_ptr<Kernel> make_internal(LowerContext& c) {
  if (!takes(c, 5)) return nullptr;
  const auto attr = ops::parse<ops::BatchNormInternalAttrs>(c);
  if (!attr.training_mode) return c.refuse("not in training");
  return std::make_unique<BatchNormKernel>(attr.epsilon, attr.momentum);
}

std::unique_ptr<Kernel> make_batch_norm(LowerContext& c) {
  if (!takes(c, 5)) return nullptr;
  const auto attr = ops::parse<ops::BatchNormAttrs>(c);
  if (c.node().version < 14 || !attr.training_mode) return c.refuse("not in training");
  return std::make_unique<BatchNormKernel>(attr.epsilon, attr.momentum);
}

class BatchNormGradKernel : public Kernel {
 public:
  std::string_view name() const override { return "batch-norm-grad-f32"; }
  int in_place() const override { return 0; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    check_channels(c, ops::BatchNormGradIn::kX, ops::BatchNormGradIn::kScale, ops::BatchNormGradIn::kInverse);
    if (c.input_shape(0) != c.input_shape(1)) {
      fail(ErrorCode::runtime_failure, "dY {} and X {} must have one shape", to_string(c.input_shape(0)),
           to_string(c.input_shape(1)));
    }
    c.workspace_bytes = 2 * static_cast<std::size_t>(c.input_shape(1)[1]) * sizeof(float);
    return nullptr;
  }
  void run(const KernelContext& c) const override {
    using enum ops::BatchNormGradIn::Slot;
    const BatchNormSizes s = sizes_of(c.input(kX).shape());
    auto* const spare = static_cast<float*>(c.workspace);
    BatchNormGradArgs g;
    g.dy = c.in<float>(kDy), g.x = c.in<float>(kX);
    g.scale = c.in<float>(kScale), g.mean = c.in<float>(kMean), g.inverse = c.in<float>(kInverse);
    g.dx = c.out<float>(0);
    g.dscale = c.has_output(1) ? c.out<float>(1) : spare;
    g.dbias = c.has_output(2) ? c.out<float>(2) : spare + s.channels;
    batch_norm_grad_f32(s, g);
  }
};

std::unique_ptr<Kernel> make_batch_norm_grad(LowerContext& c) {
  if (!takes(c, 5)) return nullptr;
  if (!c.has_output(0)) return c.refuse("no gradient of X");
  return std::make_unique<BatchNormGradKernel>();
}

class MaxPoolGradKernel : public Kernel {
 public:
  std::string_view name() const override { return "max-pool-grad-f32"; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    const Shape dy = c.input_shape(0), dx = c.output_shape(0);
    if (c.input_shape(1) != dy || dx.size() != dy.size() || dx[0] != dy[0] || dx[1] != dy[1]) {
      fail(ErrorCode::runtime_failure, "dY {}, Indices {} and the result's shape {} do not fit", to_string(dy),
           to_string(c.input_shape(1)), to_string(dx));
    }
    return nullptr;
  }
  void run(const KernelContext& c) const override {
    const Shape &dy = c.input(0).shape(), &dx = c.output(0).shape();
    const std::int64_t at = add_at_places_f32(dx[0] * dx[1], ops::product(dx, 2, dx.size()), ops::product(dy, 2, dy.size()),
                                              c.in<float>(0), c.in<std::int64_t>(1), c.out<float>(0));
    if (at != -1) fail(ErrorCode::runtime_failure, "index {} lies outside a tensor of {} elements", at, c.output(0).size());
  }
};

std::unique_ptr<Kernel> make_max_pool_grad(LowerContext& c) {
  if (c.dtype(0) != DataType::float32) return c.refuse("not float32");
  if (c.shape(0) == nullptr || c.shape(0)->size() < 3) return c.refuse("rank unknown or below 3");
  return std::make_unique<MaxPoolGradKernel>();
}

}  // namespace

void register_kernels_norm_training(KernelTable& t) {
  t.add("com.microsoft", "BatchNormInternal", "batch-norm-training-f32", 10, make_internal);
  t.add("", "BatchNormalization", "batch-norm-training-f32", 20, make_batch_norm);
  t.add("com.microsoft", "BatchNormalizationGrad", "batch-norm-grad-f32", 10, make_batch_norm_grad);
  t.add("", "MaxPoolGrad", "max-pool-grad-f32", 10, make_max_pool_grad);
}

}  // namespace sdx::cpu
