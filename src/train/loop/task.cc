#include "train/loop/task.h"

#include <algorithm>

#include "base/error.h"
#include "base/words.h"
#include "onnx/reader.h"
#include "session/specs.h"

namespace sdx::train::loop {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTraining = "training_model.onnx";

fs::path existing(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) ? path : fs::path();
}

// Skips nodes that only change the type, the shape or the name of a value.
ValueId source_of(const Graph& graph, ValueId v) {
  constexpr std::string_view passing = "Cast Identity Reshape Squeeze Unsqueeze Flatten";
  for (int steps = 0; steps < 100; ++steps) {
    const NodeId producer = graph.value(v).producer;
    if (producer == kNoNode) return v;
    const Node& n = graph.node(producer);
    if (n.inputs.empty() || n.inputs[0] == kNoValue || !has_word(passing, n.op_type)) return v;
    v = n.inputs[0];
  }
  return v;
}

bool is_label_name(std::string_view name) {
  constexpr std::string_view names = "labels label target targets y y_true";
  return has_word(names, name);
}

void read_loss(const Graph& graph, Task& task) {
  for (const Node& n : graph.nodes()) {
    const bool loss = n.op_type == "SoftmaxCrossEntropyLoss" || n.op_type == "SoftmaxCrossEntropyLossInternal" ||
                      n.op_type == "NegativeLogLikelihoodLoss";
    if (n.removed || !loss || n.inputs.size() < 2 || n.inputs[0] == kNoValue || n.inputs[1] == kNoValue) continue;
    const std::string& labels = graph.value(source_of(graph, n.inputs[1])).name;
    for (std::size_t i = 0; i < task.inputs.size(); ++i) {
      if (task.inputs[i].name != labels) continue;
      task.label = i;
      task.classification = true;
      task.scores = graph.value(n.inputs[0]).name;
      const Type& type = graph.value(n.inputs[0]).type;
      if (type.shape && type.shape->size() > 1 && (*type.shape)[1].is_const()) task.classes = (*type.shape)[1].value();
      if (const AttributeValue* ignored = n.attributes.find("ignore_index")) {
        if (const auto* value = std::get_if<std::int64_t>(ignored)) task.ignored = *value;
      }
      return;
    }
  }
}

}  // namespace

ArtifactPaths find_artifacts(const fs::path& given) {
  constexpr const char* kHow = "`sdx artifacts MODEL -o DIR` creates them from a model";
  std::error_code ignored;
  ArtifactPaths paths;
  std::string prefix;
  if (fs::is_directory(given, ignored)) {
    std::vector<fs::path> found;
    for (const fs::directory_entry& e : fs::directory_iterator(given, ignored)) {
      if (e.path().filename().string().ends_with(kTraining)) found.push_back(e.path());
    }
    if (found.empty()) fail(ErrorCode::io, "'{}' has no {}; {}", given.string(), kTraining, kHow);
    if (found.size() > 1) {
      fail(ErrorCode::invalid_argument, "'{}' has {} training models; name one of them, such as '{}'", given.string(),
           found.size(), std::min_element(found.begin(), found.end())->string());
    }
    paths.training = found[0];
  } else if (fs::exists(given, ignored)) {
    paths.training = given;
  } else {
    fail(ErrorCode::io, "'{}' does not exist; {}", given.string(), kHow);
  }
  paths.folder = paths.training.parent_path();
  const std::string file = paths.training.filename().string();
  if (file.ends_with(kTraining)) prefix = file.substr(0, file.size() - kTraining.size());
  paths.eval = existing(paths.folder / (prefix + "eval_model.onnx"));
  paths.optimizer = existing(paths.folder / (prefix + "optimizer_model.onnx"));
  paths.checkpoint = existing(paths.folder / (prefix + "checkpoint"));
  if (paths.checkpoint.empty()) paths.checkpoint = existing(paths.folder / (prefix + "checkpoint.ckpt"));
  return paths;
}

std::vector<std::size_t> Task::features() const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (i != label) out.push_back(i);
  }
  return out;
}

bool is_users_input(std::string_view name, const CheckpointState& state) {
  return name != "lazy_reset_grad" && !name.ends_with(".accumulation.buffer") && state.find(name) == nullptr;
}

Task read_task(const Model& model, const CheckpointState& state) {
  Task task;
  for (ValueSpec& spec : session::input_specs(model.graph)) {
    if (is_users_input(spec.name, state)) task.inputs.push_back(std::move(spec));
  }
  if (task.inputs.empty()) fail(ErrorCode::invalid_model, "the training model '{}' has no input for data", model.path);
  task.label = task.inputs.size() - 1;
  for (std::size_t i = 0; i < task.inputs.size(); ++i) {
    if (is_label_name(task.inputs[i].name)) task.label = i;
  }
  read_loss(model.graph, task);
  const ValueSpec& first = task.inputs[task.label == 0 && task.inputs.size() > 1 ? 1 : 0];
  if (first.has_shape && !first.shape.empty() && first.shape[0] > 0) task.batch = first.shape[0];
  return task;
}

int show_value(Graph& graph, const std::string& value) {
  const std::optional<ValueId> id = graph.find(value);
  if (!id) return -1;
  struct Output {
    ValueId value;
    std::string name;
  };
  std::vector<Output> outputs;
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    if (graph.outputs()[i] == *id) return static_cast<int>(i);
    outputs.push_back({graph.outputs()[i], graph.output_names()[i]});
  }
  const auto place =
      std::find_if(outputs.begin(), outputs.end(), [](const Output& o) { return o.name.ends_with(".accumulation.out"); });
  const int index = static_cast<int>(place - outputs.begin());
  outputs.insert(place, {*id, graph.value(*id).name});
  while (!graph.outputs().empty()) graph.remove_output(graph.outputs().size() - 1);
  for (Output& o : outputs) graph.add_output(o.value, std::move(o.name));
  return index;
}

}  // namespace sdx::train::loop
