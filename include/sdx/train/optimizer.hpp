#pragma once
// Optimisers and learning-rate schedules.

#include <cstdint>
#include <string_view>

#include <sdx/export.hpp>

namespace sdx::train {

enum class OptimizerKind {
  adamw,  // Loshchilov and Hutter 2019, as com.microsoft AdamWOptimizer: adam_mode 0 decays before the update (PyTorch), 1 after
          // it (Hugging Face)
  adam,   // Kingma and Ba 2015; weight_decay adds to the gradient
  sgd,    // with momentum, dampening and Nesterov's, as torch.optim.SGD
  rmsprop,  // as torch.optim.RMSprop: alpha, momentum
  adagrad,  // as torch.optim.Adagrad
  lion,     // Chen and others 2023
};
// "adamw" and so on. Throws Error(invalid_argument) with the permitted words.
SDX_API OptimizerKind optimizer_named(std::string_view name);
SDX_API const char* to_string(OptimizerKind kind);

// Defaults of AdamW are ONNX Runtime 1.19's.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adamw;
  float beta1 = 0.9F, beta2 = 0.999F;  // adamw, adam, lion
  float epsilon = 1e-6F;               // adamw, adam, rmsprop, adagrad
  float weight_decay = 0;
  std::int64_t adam_mode = 1;     // adamw
  bool correct_bias = true;       // adamw, adam
  float momentum = 0;             // sgd, rmsprop
  float dampening = 0;            // sgd
  bool nesterov = false;          // sgd
  float alpha = 0.99F;            // rmsprop
  float initial_accumulator = 0;  // adagrad
  // 0: no clipping. Otherwise scales gradients so that their global norm is at most this (torch's clip_grad_norm_).
  float clip_norm = 0;
};

enum class ScheduleKind { constant, linear, cosine };

// The rate's factor after `step` updates: rises from 0 to 1 in `warmup` updates, then falls to `end` at `total`. Past `total` it
// stays there. `linear` with end 0 is ONNX Runtime's LinearLRScheduler.
struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  std::int64_t warmup = 0, total = 0;
  float end = 0;
};
SDX_API double factor_at(const Schedule& schedule, std::int64_t step);

}  // namespace sdx::train
