#include "train/loop/prepare.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/suggest.h"
#include "base/system/new_file.h"
#include "onnx/reader.h"
#include "session/pipeline.h"
#include "train/loop/features.h"
#include "train/loop/place.h"
#include "train/loop/settings.h"
#include "train/loop/work_folder.h"
#include "train/step/rule.h"

namespace sdx::train::loop {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kUsualBatch = 32;
constexpr const char* kClassesProperty = "sdx.classes";

std::unique_ptr<CheckpointState> load_state(const Request& r, Prepared& p) {
  std::error_code ignored;
  if (r.resume && fs::exists(p.fit.checkpoint, ignored)) {
    return std::make_unique<CheckpointState>(CheckpointState::load(p.fit.checkpoint));
  }
  if (r.resume) {
    p.notes.push_back("there is no checkpoint '" + p.fit.checkpoint.string() +
                      "' to continue from: training starts from the beginning");
  }
  if (p.paths.checkpoint.empty()) {
    fail(ErrorCode::io, "'{}' has no file 'checkpoint' with the parameters; `sdx artifacts MODEL -o DIR` creates one",
         p.paths.folder.string());
  }
  return std::make_unique<CheckpointState>(CheckpointState::load(p.paths.checkpoint));
}

// With inferred types.
Model inferred(const fs::path& path) {
  Model model = read_model(path);
  session::prepare(model, {});
  return model;
}

// The training model says which inputs there are, the eval model how many classes: its types can be inferred by any build.
Task task_of(const ArtifactPaths& paths, const CheckpointState& state) {
  Task task = read_task(read_model(paths.training), state);
  if (paths.eval.empty()) return task;
  const Task eval = read_task(inferred(paths.eval), state);
  for (std::size_t i = 0; i < task.inputs.size(); ++i) {
    if (task.inputs[i].name == eval.label_input().name) task.label = i;
  }
  task.classification = eval.classification;
  task.classes = eval.classes;
  task.ignored = eval.ignored;
  task.scores = eval.scores;
  return task;
}

std::int64_t batch_of(const Request& r, const Task& task, const OpenedData& data) {
  if (task.batch > 0 && r.batch > 0 && r.batch != task.batch) {
    fail(ErrorCode::invalid_argument, "--batch {}: the model accepts only batches of {}", r.batch, task.batch);
  }
  if (task.batch > 0) return task.batch;
  if (r.batch > 0) return r.batch;
  return data.batch > 0 ? data.batch : kUsualBatch;
}

OptimizerOptions optimizer_of(const Settings& s, const ArtifactPaths& paths) {
  OptimizerOptions o;
  if (s.kind) {
    o.kind = *s.kind;
  } else if (!paths.optimizer.empty()) {
    o = read_optimizer_model(paths.optimizer);
  }
  if (s.weight_decay) o.weight_decay = *s.weight_decay;
  if (s.clip) o.clip_norm = *s.clip;
  return o;
}

using OnFeatures = std::function<void(std::int64_t done, std::int64_t total)>;

// The models to train with, which may differ from the artifacts: they also give the scores, so that right answers can be counted.
struct Models {
  Model training;
  std::optional<Model> eval;
};

std::unique_ptr<Trainer> trainer_of(Prepared& p, Models models) {
  AccuracyPlaces& a = p.fit.accuracy;
  const WorkFolder folder;
  if (p.task.classification && !p.task.scores.empty()) {
    a.ignored = p.task.ignored;
    a.training_scores = show_value(models.training.graph, p.task.scores);
    if (models.eval) a.eval_scores = show_value(models.eval->graph, p.task.scores);
  }
  folder.write(models.training, "training_model.onnx");
  if (models.eval) folder.write(*models.eval, "eval_model.onnx");
  auto trainer = std::make_unique<Trainer>(folder.path(), *p.state, p.trainer_options);
  const std::vector<std::string>& names = trainer->input_names();
  const auto label = std::find(names.begin(), names.end(), p.task.label_input().name);
  if (p.task.classification && label != names.end()) a.labels = static_cast<int>(label - names.begin());
  return trainer;
}

Session session_of(const Model& model, const WorkFolder& folder, const char* name, int threads) {
  folder.write(model, name);
  SessionOptions options;
  options.threads = threads;
  return Session::open(folder.path() / name, options);
}

// Cuts the models, and replaces the data by the frozen parts' results.
Models with_features(const Request& r, Prepared& p, const DataSettings& data, const OnFeatures& on_features) {
  const std::string& label = p.task.label_input().name;
  SplitModel training = split_model(inferred(p.paths.training), *p.state, label);
  Models models{std::move(training.rest), std::nullopt};
  std::vector<std::string> given, wanted;
  for (const ValueSpec& s : p.task.inputs) given.push_back(s.name);
  for (const ValueId v : models.training.graph.inputs()) {
    if (is_users_input(models.training.graph.value(v).name, *p.state)) wanted.push_back(models.training.graph.value(v).name);
  }
  const WorkFolder folder;
  FeatureOptions o{p.fit.batch, p.task.batch > 0, r.threads, data.memory, on_features};
  const Session frozen = session_of(training.frozen, folder, "frozen.onnx", r.threads);
  p.data.train = feature_data(*p.data.train, given, frozen, training.features, wanted, o);
  if (p.paths.eval.empty()) return models;
  SplitModel eval = split_model_at(inferred(p.paths.eval), *p.state, training.features);
  const Session frozen_eval = session_of(eval.frozen, folder, "frozen_eval.onnx", r.threads);
  if (p.data.validation) p.data.validation = feature_data(*p.data.validation, given, frozen_eval, eval.features, wanted, o);
  models.eval = std::move(eval.rest);
  return models;
}

std::unique_ptr<Trainer> make_trainer(const Request& r, Prepared& p, const DataSettings& data, const OnFeatures& on_features) {
  // A dry run computes no features: whether the models can be trained shows without them.
  if (r.cache_features && !r.dry_run) return trainer_of(p, with_features(r, p, data, on_features));
  Models models{read_model(p.paths.training), std::nullopt};
  if (!p.paths.eval.empty()) models.eval = read_model(p.paths.eval);
  return trainer_of(p, std::move(models));
}

// Checks destinations before training, not after days of it.
void check_destinations(const Request& r, const std::filesystem::path& checkpoint) {
  for (const auto& file : {checkpoint, r.export_model, r.labels, r.report}) {
    if (!file.empty()) NewFile::check(file);
  }
}

void check_labels_file(const Request& r, const OpenedData& data) {
  if (r.labels.empty() || !data.classes.empty()) return;
  fail(ErrorCode::invalid_argument, "--labels {}: the data name no classes, their labels are numbers", r.labels.string());
}

// The number of batches at which an earlier process stopped.
std::int64_t batches_done(const CheckpointState& state) {
  const auto it = state.properties.find(kPlaceProperty);
  if (it == state.properties.end() || !std::holds_alternative<std::string>(it->second)) return 0;
  return place_from(std::get<std::string>(it->second)).batches_done;
}

// The same numbers must mean the same classes.
void check_classes(const CheckpointState& state, const std::vector<std::string>& classes) {
  const auto it = state.properties.find(kClassesProperty);
  if (it == state.properties.end() || classes.empty()) return;
  const std::string* saved = std::get_if<std::string>(&it->second);
  if (saved != nullptr && *saved == nlohmann::json(classes).dump()) return;
  fail(ErrorCode::invalid_argument,
       "the checkpoint was made with the classes {}, and the data have {}: training cannot continue; use the same data, or start "
       "again without --resume",
       saved == nullptr ? "of other data" : *saved, nlohmann::json(classes).dump());
}

// Values that are computed without the label, and that nodes read which are not.
std::vector<std::string> read_by_loss(const Graph& graph, const std::string& label) {
  std::vector<bool> of_label(graph.values().size(), false), of_data(graph.values().size(), false);
  for (const ValueId v : graph.inputs()) (graph.value(v).name == label ? of_label : of_data)[v] = true;
  std::set<std::string> found;
  for (const Node& n : graph.nodes()) {
    if (n.removed) continue;
    bool label_here = false, data_here = false;
    for (const ValueId v : n.inputs) {
      if (v == kNoValue) continue;
      label_here = label_here || of_label[v];
      data_here = data_here || of_data[v];
    }
    for (const ValueId v : n.inputs) {
      if (label_here && v != kNoValue && of_data[v] && !of_label[v] && graph.value(v).producer != kNoNode) {
        found.insert(graph.value(v).name);
      }
    }
    for (const ValueId v : n.outputs) {
      if (v == kNoValue) continue;
      of_label[v] = label_here;
      of_data[v] = data_here && !label_here;
    }
  }
  return {found.begin(), found.end()};
}

void check_outputs(const Graph& graph, const std::vector<std::string>& outputs) {
  for (const std::string& name : outputs) {
    if (graph.find(name)) continue;
    std::vector<std::string> names;
    for (const ValueInfo& v : graph.values()) names.push_back(v.name);
    const std::string near = closest(name, names);
    fail(ErrorCode::invalid_argument, "--outputs {}: the eval model has no such value{}", name,
         near.empty() ? "" : "; did you mean '" + near + "'?");
  }
}

// The outputs of the exported model. They are checked before training, not after hours of it.
std::vector<std::string> outputs_of(const Request& r, const Prepared& p) {
  if (r.export_model.empty()) return {};
  if (p.paths.eval.empty()) {
    fail(ErrorCode::invalid_argument, "'{}' has no eval_model.onnx, which --export needs", p.paths.folder.string());
  }
  const Model eval = read_model(p.paths.eval);
  if (!r.outputs.empty()) {
    check_outputs(eval.graph, r.outputs);
    return r.outputs;
  }
  if (!p.task.scores.empty()) return {p.task.scores};
  std::vector<std::string> found = read_by_loss(eval.graph, p.task.label_input().name);
  if (found.size() == 1) return found;
  std::vector<std::string> all;
  for (const Node& n : eval.graph.nodes()) {
    for (const ValueId v : n.outputs) {
      if (v != kNoValue && all.size() < 20) all.push_back(eval.graph.value(v).name);
    }
  }
  fail(ErrorCode::invalid_argument, "--export: name the model's outputs with --outputs; the eval model computes {}", join(all));
}

}  // namespace

Prepared prepare(const Request& request, const OnFeatures& features) {
  const Settings s = settings_of(request);
  Prepared p;
  p.paths = find_artifacts(request.artifacts);
  p.fit = s.fit;
  if (p.fit.checkpoint.empty()) p.fit.checkpoint = p.paths.folder / "trained";
  check_destinations(request, p.fit.checkpoint);
  p.state = load_state(request, p);
  p.task = task_of(p.paths, *p.state);
  p.data = open_data(p.task, s.data);
  p.notes.insert(p.notes.end(), p.data.notes.begin(), p.data.notes.end());
  check_labels_file(request, p.data);
  if (p.data.validation && p.paths.eval.empty()) {
    fail(ErrorCode::invalid_argument, "'{}' has no eval_model.onnx, which validation needs", p.paths.folder.string());
  }
  p.outputs = outputs_of(request, p);
  p.fit.batch = batch_of(request, p.task, p.data);
  p.fit.drop_last = p.fit.drop_last || p.task.batch > 0;
  p.trainer_options = s.trainer;
  p.trainer_options.optimizer = optimizer_of(s, p.paths);
  p.trainer_options.schedule.total = updates_per_epoch(p.data.train->size(), p.fit) * p.fit.epochs;
  if (request.resume) {
    p.batches_done = batches_done(*p.state);
  } else {
    p.state->properties.erase(kPlaceProperty);
  }
  if (request.resume && p.batches_done > 0) check_classes(*p.state, p.data.classes);
  if (!p.data.classes.empty()) p.state->properties[kClassesProperty] = nlohmann::json(p.data.classes).dump();
  p.trainer = make_trainer(request, p, s.data, features);
  return p;
}

}  // namespace sdx::train::loop
