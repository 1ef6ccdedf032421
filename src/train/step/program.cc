#include "train/step/program.h"

#include <chrono>

#include "base/error.h"

namespace sdx::train {

void ProgramCache::make_key(std::span<const Tensor> inputs, std::int64_t variant) {
  key_.clear();
  key_.push_back(variant);
  for (const Tensor& t : inputs) {
    key_.push_back(static_cast<std::int64_t>(t.dtype()));
    key_.push_back(static_cast<std::int64_t>(t.rank()));
    key_.insert(key_.end(), t.shape().begin(), t.shape().end());
  }
}

void ProgramCache::keep_only(std::int64_t variant) {
  std::erase_if(entries_, [&](const Compiled& c) { return c.key[0] != variant; });
}

namespace {

std::uint64_t clock_seed() { return static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()); }

}  // namespace

Runner::Runner(int threads, std::uint64_t seed)
    : pool_(threads > 0 ? std::make_unique<ThreadPool>(threads) : nullptr), seed_(seed != 0 ? seed : clock_seed()) {}

std::vector<Value> Runner::run(const plan::Program& program, std::vector<Value> inputs, const std::vector<Value>& bound) {
  const PoolScope threads(pool());
  std::atomic<std::uint64_t> seed = seed_;
  plan::RunEnv env;
  env.seed = &seed;
  std::vector<Value> results = program.run(std::move(inputs), env, {}, bound);
  seed_ = seed;  // a failed step draws the same numbers again
  return results;
}

std::vector<Value> input_values(const TrainingGraph& model, std::span<const Tensor> inputs, CheckpointState& state) {
  check_parameters(model, state);
  std::vector<Value> values;
  values.reserve(inputs.size() + model.parameters.size() + 4);
  values.insert(values.end(), inputs.begin(), inputs.end());
  for (const std::size_t number : model.parameters) values.emplace_back(state.parameters[number].value);
  return values;
}

void check_parameters(const TrainingGraph& model, const CheckpointState& state) {
  for (std::size_t i = 0; i < model.parameters.size(); ++i) {
    const std::size_t number = model.parameters[i];
    const ValueInfo& expected = model.graph.value(model.graph.inputs()[model.inputs.size() + i]);
    if (number >= state.parameters.size() || state.parameters[number].name != expected.name) {
      fail(ErrorCode::invalid_argument, "parameter '{}' is no longer number {} of the state; its order must stay", expected.name,
           number);
    }
    const Parameter& p = state.parameters[number];
    if (!compatible(expected.declared, Type::tensor(p.value.dtype(), to_sym(p.value.shape())))) {
      fail(ErrorCode::invalid_argument, "parameter '{}' must be {}, and is now {}", p.name, expected.declared.str(),
           p.value.type_string());
    }
  }
}

const Parameter* first_not_finite(const CheckpointState& state) {
  for (const Parameter& p : state.parameters) {
    if (!p.requires_grad || state.nominal || p.value.dtype() != DataType::float32) continue;
    float sum = 0;  // 0 unless one of them is not finite: x * 0
    for (const float v : p.value.values<float>()) sum += v * 0.0F;
    if (sum != 0) return &p;
  }
  return nullptr;
}

void own_parameters(const TrainingGraph& model, CheckpointState& state) {
  if (state.nominal) {
    fail(ErrorCode::invalid_argument,
         "the checkpoint is nominal: it has no values; load the full one, or copy parameters into it");
  }
  for (const std::size_t number : model.parameters) {
    if (number >= state.parameters.size()) continue;
    Tensor& value = state.parameters[number].value;
    if (!value.writable() || !value.is_aligned()) value = value.clone();
  }
}

}  // namespace sdx::train
