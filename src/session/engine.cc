#include "session/engine.h"

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"
#include "session/pipeline.h"

namespace sdx {

Engine::Engine(std::shared_ptr<Core> core, Selection chain) : core_(std::move(core)), chain_(std::move(chain)) {
  const BudgetScope charge(core_->budget);
  const PoolScope threads(core_->pool ? *core_->pool : *ThreadPool::shared());
  variants_[0] = make_variant(0);
  std::vector<std::string> running;
  for (const Step& step : variants_[0]->steps()) {
    if (std::find(running.begin(), running.end(), step.provider) == running.end()) running.push_back(step.provider);
  }
  providers_ = join(running, ",");
  runtime_ = runtime_of(running, chain_);
}

// The caller holds mutex_, or is alone.
std::unique_ptr<Program> Engine::make_variant(std::size_t which) const {
  const Model& model = core_->model;
  Graph graph = model.graph;
  if ((which & kOverrides) != 0) {
    for (const ValueId v : graph.inputs()) graph.value(v).constant.reset();
  } else {
    for (std::size_t i = core_->inputs.size(); i-- > 0;) {
      if (core_->inputs[i].has_default) graph.remove_input(i);
    }
  }
  if ((which & kOtherExtents) != 0) {
    for (const ValueId v : graph.inputs()) {
      ValueInfo& info = graph.value(v);
      if (info.declared.shape) info.declared.shape->assign(info.declared.shape->size(), Dim::unknown());
    }
  }
  if (which != 0) check_and_infer(graph, core_->allow_unknown);
  const bool as_in_file = (which & kOtherExtents) == 0 && core_->options.dimensions.empty();
  const Origin origin{&model, as_in_file ? &core_->source : nullptr, core_->reject_nan};
  return compile(std::move(graph), chain_, core_->options, origin, failures_);
}

const Program& Engine::variant(std::size_t which) const {
  if (which == 0) return *variants_[0];
  const std::lock_guard lock(mutex_);
  if (!variants_[which]) variants_[which] = make_variant(which);
  return *variants_[which];
}

std::vector<Value> Engine::run(const Request& request, RunEnv& env) const {
  const BudgetScope charge(core_->budget);
  const PoolScope threads(core_->pool ? *core_->pool : *ThreadPool::shared());
  env.profiler = core_->profiler.get();
  env.run = request.number;
  env.seed = &core_->seed;
  const Program& program = variant(request.which);
  std::vector<Value> passed;
  if ((request.which & kOverrides) != 0) {
    passed = request.values;
  } else {
    passed.reserve(core_->plain_inputs.size());
    for (const std::size_t i : core_->plain_inputs) passed.push_back(request.values[i]);
  }
  return program.run(std::move(passed), env, request.wanted);
}

std::string Engine::label() const { return label_of(chain_); }

bool Engine::runs(const std::string& provider) const {
  const auto& steps = variants_[0]->steps();
  return std::any_of(steps.begin(), steps.end(), [&](const Step& s) { return s.provider == provider; });
}

std::vector<std::string> Engine::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

}  // namespace sdx
