// Optimizer and LinearLRScheduler.

#include <cmath>

#include "base/error.h"
#include "train/step/in_place.h"
#include "train/step/module_impl.h"
#include "train/step/optimizer_impl.h"

namespace sdx::train {
namespace {

// The number of the first that has an element which is not finite.
std::size_t first_not_finite(std::span<const cpu::FloatSpan> gradients) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!std::isfinite(norm_of(gradients.subspan(i, 1)))) return i;
  }
  return 0;
}

}  // namespace

Optimizer::Impl::Impl(const OptimizerOptions& given, Module::Impl& of) : options(given), module(&of) {
  check_options(options);
  for (const std::size_t i : module->training.trained) trained.push_back(module->training.parameters[i]);
  if (!module->state->nominal) own_parameters(module->training, *module->state);
  rate = prepare_moments(*module->state, trained, options).initial_learning_rate;
}

void Optimizer::Impl::step() {
  if (module->gradients.empty()) {
    fail(ErrorCode::invalid_argument, "there are no gradients yet: call train_step() before the optimizer's step()");
  }
  CheckpointState& state = *module->state;
  check_parameters(module->training, state);
  own_parameters(module->training, state);
  OptimizerState& group = prepare_moments(state, trained, options);
  cpu::UpdateRule rule = rule_for(options, rate, group.step + 1);
  std::vector<cpu::UpdateSlice> slices;
  std::vector<cpu::FloatSpan> spans;
  for (std::size_t i = 0; i < trained.size(); ++i) {
    float* gradient = module->gradients[i].mutable_values<float>().data();
    slices.push_back(slice_of(state.parameters[trained[i]], group, options, gradient));
    spans.push_back({gradient, slices.back().n});
  }
  const PoolScope threads(module->runner.pool());
  const auto norm = static_cast<double>(norm_of(spans));  // as in a trainer's program
  if (!std::isfinite(norm)) {
    fail(ErrorCode::runtime_failure,
         "the gradient of '{}' is not finite at step {}; the parameters are those from before it. Call lazy_reset_grad(), and "
         "check the inputs of the batches since the last update",
         state.parameters[trained[first_not_finite(spans)]].name, group.step + 1);
  }
  if (options.clip_norm > 0) rule.scale = clip_factor(norm, options.clip_norm);
  cpu::update_f32(rule, slices);
  ++group.step;
}

Optimizer::Optimizer(const std::filesystem::path& optimizer_model, Module& module)
    : Optimizer(read_optimizer_model(optimizer_model), module) {}
Optimizer::Optimizer(const OptimizerOptions& options, Module& module) : impl_(std::make_unique<Impl>(options, *module.impl_)) {}
Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;
Optimizer::~Optimizer() = default;

void Optimizer::step() { impl_->step(); }
void Optimizer::set_learning_rate(float rate) {
  if (!std::isfinite(rate)) fail(ErrorCode::invalid_argument, "the learning rate is {}; it must be a finite number", rate);
  impl_->rate = rate;
}
float Optimizer::learning_rate() const { return impl_->rate; }
float Optimizer::initial_learning_rate() const { return impl_->group().initial_learning_rate; }
std::int64_t Optimizer::steps() const { return impl_->group().step; }

LinearLRScheduler::LinearLRScheduler(Optimizer& optimizer, std::int64_t warmup, std::int64_t total,
                                     std::optional<float> initial_rate)
    : optimizer_(&optimizer), schedule_{ScheduleKind::linear, warmup, total, 0}, steps_(optimizer.steps()) {
  if (warmup < 0 || total <= 0 || warmup >= total) {
    fail(ErrorCode::invalid_argument,
         "{} steps of warmup and {} steps in all; expected at least 0 steps of warmup, and fewer than in all", warmup, total);
  }
  if (initial_rate) {
    optimizer.set_learning_rate(*initial_rate);
    optimizer.impl_->group().initial_learning_rate = *initial_rate;
  }
  apply();
}

void LinearLRScheduler::apply() {
  optimizer_->set_learning_rate(
      static_cast<float>(static_cast<double>(optimizer_->initial_learning_rate()) * factor_at(schedule_, steps_)));
}

void LinearLRScheduler::step() {
  ++steps_;
  apply();
}

}  // namespace sdx::train
