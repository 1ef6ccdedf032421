#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

#include <sdx/train/trainer.hpp>

#include "train/c/checkpoint.h"

namespace {

using sdx::session::guarded;
using sdx::session::require;
using namespace sdx::train;

struct Settings {
  TrainerOptions trainer;
  OptimizerOptions optimizer;
  bool optimizer_given = false;
};

template <class T>
T number(std::string_view key, std::string_view text, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least && value <= most)) {
    sdx::fail(sdx::ErrorCode::invalid_argument, "{} is a number from {} to {}; received '{}'", key, least, most, text);
  }
  return value;
}

constexpr float kMost = 1e30F;
constexpr std::int64_t kMostSteps = std::int64_t{1} << 60;

// Members that are numbers, with their ranges.
bool set_float(Settings& s, std::string_view key, std::string_view value) {
  const std::pair<std::string_view, float*> of_optimizer[] = {
      {"weight_decay", &s.optimizer.weight_decay}, {"beta1", &s.optimizer.beta1},       {"beta2", &s.optimizer.beta2},
      {"epsilon", &s.optimizer.epsilon},           {"momentum", &s.optimizer.momentum}, {"clip_norm", &s.optimizer.clip_norm}};
  if (key == "learning_rate") {
    s.trainer.learning_rate = number(key, value, 0.0F, kMost);
    return true;
  }
  for (const auto& [name, member] : of_optimizer) {
    if (key != name) continue;
    *member = number(key, value, 0.0F, key.starts_with("beta") || key == "momentum" ? 1.0F : kMost);
    s.optimizer_given = true;
    return true;
  }
  return false;
}

bool set_whole(Settings& s, std::string_view key, std::string_view value) {
  if (key == "warmup") {
    s.trainer.schedule.warmup = number<std::int64_t>(key, value, 0, kMostSteps);
  } else if (key == "total") {
    s.trainer.schedule.total = number<std::int64_t>(key, value, 0, kMostSteps);
  } else if (key == "accumulate") {
    s.trainer.accumulate = number<std::int64_t>(key, value, 1, kMostSteps);
  } else if (key == "threads") {
    s.trainer.threads = number(key, value, 0, 4096);
  } else if (key == "seed") {
    s.trainer.seed = number<std::uint64_t>(key, value, 0, std::numeric_limits<std::uint64_t>::max());
  } else if (key == "bfloat16") {
    s.trainer.bfloat16 = number(key, value, 0, 1) != 0;
  } else if (key == "refuse_non_finite") {
    s.trainer.refuse_non_finite = number(key, value, 0, 1) != 0;
  } else {
    return false;
  }
  return true;
}

void set(Settings& s, std::string_view key, std::string_view value) {
  if (set_float(s, key, value) || set_whole(s, key, value)) return;
  if (key == "optimizer") {
    s.optimizer.kind = optimizer_named(value);
    s.optimizer_given = true;
  } else if (key == "schedule") {
    const std::string_view names[] = {"constant", "linear", "cosine"};
    const auto* at = std::find(std::begin(names), std::end(names), value);
    if (at == std::end(names)) {
      sdx::fail(sdx::ErrorCode::invalid_argument, "schedule is constant, linear or cosine; received '{}'", value);
    }
    s.trainer.schedule.kind = static_cast<ScheduleKind>(at - std::begin(names));
  } else {
    sdx::fail(sdx::ErrorCode::invalid_argument,
              "a trainer has no setting '{}'; known: optimizer, learning_rate, weight_decay, beta1, beta2, epsilon, momentum, "
              "clip_norm, schedule, warmup, total, accumulate, threads, seed, bfloat16, refuse_non_finite",
              key);
  }
}

TrainerOptions options_of(std::string_view settings) {
  Settings s;
  while (!settings.empty()) {
    const std::string_view one = settings.substr(0, settings.find(','));
    settings.remove_prefix(std::min(settings.size(), one.size() + 1));
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos) {
      sdx::fail(sdx::ErrorCode::invalid_argument, "settings are key=value, separated by commas; received '{}'", one);
    }
    set(s, one.substr(0, equals), one.substr(equals + 1));
  }
  if (s.optimizer_given) s.trainer.optimizer = s.optimizer;
  return s.trainer;
}

std::vector<sdx::Tensor> tensors_of(const sdx_tensor* const* inputs, size_t count) {
  std::vector<sdx::Tensor> list;
  for (size_t i = 0; i < count; ++i) list.push_back(require(require(inputs + i, "inputs"), "an input").tensor);
  return list;
}

}  // namespace

struct sdx_trainer {
  std::shared_ptr<CheckpointState> state;  // outlives the trainer
  Trainer trainer;
};

sdx_status sdx_trainer_open(const char* artifacts, sdx_checkpoint* checkpoint, const char* settings, sdx_trainer** out) {
  if (out != nullptr) *out = nullptr;
  return guarded([&] {
    sdx_trainer*& made = require(out, "out");
    const std::shared_ptr<CheckpointState> state = require(checkpoint, "checkpoint").state;
    Trainer trainer(&require(artifacts, "artifacts"), *state, options_of(settings == nullptr ? "" : settings));
    made = new sdx_trainer{state, std::move(trainer)};
  });
}

void sdx_trainer_free(sdx_trainer* trainer) { delete trainer; }

size_t sdx_trainer_input_count(const sdx_trainer* trainer) {
  return trainer == nullptr ? 0 : trainer->trainer.input_names().size();
}

const char* sdx_trainer_input_name(const sdx_trainer* trainer, size_t index) {
  return index < sdx_trainer_input_count(trainer) ? trainer->trainer.input_names()[index].c_str() : nullptr;
}

size_t sdx_trainer_output_count(const sdx_trainer* trainer) {
  return trainer == nullptr ? 0 : trainer->trainer.output_names().size();
}

const char* sdx_trainer_output_name(const sdx_trainer* trainer, size_t index) {
  return index < sdx_trainer_output_count(trainer) ? trainer->trainer.output_names()[index].c_str() : nullptr;
}

sdx_status sdx_trainer_train_step(sdx_trainer* trainer, const sdx_tensor* const* inputs, size_t count, float* loss) {
  return guarded([&] {
    const float found = require(trainer, "trainer").trainer.train_step(tensors_of(inputs, count));
    if (loss != nullptr) *loss = found;
  });
}

sdx_status sdx_trainer_last_output(const sdx_trainer* trainer, size_t index, sdx_tensor** out) {
  if (out != nullptr) *out = nullptr;
  return guarded([&] {
    const std::vector<sdx::Tensor>& outputs = require(trainer, "trainer").trainer.last_outputs();
    sdx_tensor*& made = require(out, "out");
    if (index >= outputs.size()) {
      sdx::fail(sdx::ErrorCode::invalid_argument, "there is no output {}: the last step gave {}", index, outputs.size());
    }
    made = new sdx_tensor{outputs[index].clone()};
  });
}

sdx_status sdx_trainer_eval_step(sdx_trainer* trainer, const sdx_tensor* const* inputs, size_t count, sdx_tensor** outputs,
                                 size_t capacity, size_t* made) {
  for (size_t i = 0; outputs != nullptr && i < capacity; ++i) outputs[i] = nullptr;
  if (made != nullptr) *made = 0;
  std::vector<std::unique_ptr<sdx_tensor>> results;
  const sdx_status status = guarded([&] {
    if (capacity != 0) require(outputs, "outputs");
    for (sdx::Tensor& t : require(trainer, "trainer").trainer.eval_step(tensors_of(inputs, count))) {
      if (results.size() < capacity) results.push_back(std::make_unique<sdx_tensor>(sdx_tensor{std::move(t)}));
    }
  });
  if (status != SDX_OK) return status;
  for (size_t i = 0; outputs != nullptr && i < results.size(); ++i) outputs[i] = results[i].release();
  if (made != nullptr) *made = results.size();
  return SDX_OK;
}

float sdx_trainer_learning_rate(const sdx_trainer* trainer) { return trainer == nullptr ? 0 : trainer->trainer.learning_rate(); }

sdx_status sdx_trainer_set_learning_rate(sdx_trainer* trainer, float rate) {
  return guarded([&] {
    if (!(rate >= 0 && rate <= kMost))
      sdx::fail(sdx::ErrorCode::invalid_argument, "a learning rate must be at least 0; received {}", rate);
    require(trainer, "trainer").trainer.set_learning_rate(rate);
  });
}

int64_t sdx_trainer_steps(const sdx_trainer* trainer) { return trainer == nullptr ? 0 : trainer->trainer.steps(); }

sdx_status sdx_trainer_save_checkpoint(const sdx_trainer* trainer, const char* path) {
  return guarded([&] { require(trainer, "trainer").trainer.save_checkpoint(&require(path, "path")); });
}

sdx_status sdx_trainer_export(const sdx_trainer* trainer, const char* path, const char* const* outputs, size_t count) {
  return guarded([&] {
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) names.emplace_back(&require(require(outputs + i, "outputs"), "an output's name"));
    require(trainer, "trainer").trainer.export_model_for_inferencing(&require(path, "path"), names);
  });
}
