#include "train/artifacts/backward.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/suggest.h"
#include "ops/infer.h"
#include "passes/expand_gradients.h"
#include "passes/simplify/simplify.h"
#include "session/graphs/convert_opset.h"
#include "session/graphs/recompute.h"
#include "train/artifacts/model_edit.h"
#include "train/artifacts/names.h"
#include "train/artifacts/training_form.h"

namespace sdx::train {
namespace {

ValueId output_named(const Graph& graph, const std::string& name) {
  const auto& names = graph.output_names();
  const auto shown = std::find(names.begin(), names.end(), name);
  if (shown != names.end()) return graph.outputs()[static_cast<std::size_t>(shown - names.begin())];
  if (const auto found = graph.find(name)) return *found;
  const std::string near = closest(name, names);
  fail(ErrorCode::invalid_argument, "additional_outputs: the model has no output '{}'{}", name,
       near.empty() ? "; it has: " + join(names) : "; did you mean '" + near + "'?");
}

// Parameters become inputs after the user's; outputs: the loss, then the requested ones.
std::vector<ValueId> set_ends(Graph& g, const LossModel& from, const ArtifactOptions& options) {
  std::vector<ValueId> inputs;
  for (const ChosenParameter& p : from.parameters) inputs.push_back(constant_to_input(g, *g.find(p.name)));
  std::vector<std::pair<ValueId, std::string>> outputs{{from.loss, g.value(from.loss).name}};
  for (const std::string& name : options.additional_outputs) outputs.emplace_back(output_named(g, name), name);
  while (!g.outputs().empty()) g.remove_output(g.outputs().size() - 1);
  for (const auto& [value, name] : outputs) g.add_output(value, name);
  return inputs;
}

void finish(Model& model) {
  Graph& g = model.graph;
  g.compact();
  g.drop_unused_values();
  ops::infer_in_place(g);
}

class TrainingModel {
 public:
  TrainingModel(const LossModel& from, const ArtifactOptions& options) : from_(from), options_(options), model_(from.model) {}

  Model run(std::vector<std::string>& unreached) {
    Graph& g = model_.graph;
    inputs_ = set_ends(g, from_, options_);
    to_training_form(g, options_.train_batch_norm);
    simplify::remove_dead(g);
    convert_all();
    const auto forward = static_cast<ValueId>(g.values().size());
    differentiate();
    if (!check_reached(unreached)) return {};
    convert_all();
    simplify::remove_dead(g);
    g.compact();
    compute_again(forward);
    finish(model_);
    add_accumulators();
    return std::move(model_);
  }

 private:
  void compute_again(ValueId forward) {
    if (options_.recompute.empty()) return;
    const auto& asked = options_.recompute;
    const bool automatic = std::find(asked.begin(), asked.end(), "auto") != asked.end();
    std::vector<std::string> patterns;
    std::copy_if(asked.begin(), asked.end(), std::back_inserter(patterns), [](const std::string& s) { return s != "auto"; });
    Graph& g = model_.graph;
    std::vector<std::string> names;
    std::vector<ValueId> ids;
    for (ValueId v = 0; v < forward; ++v) {
      if (g.value(v).producer == kNoNode) continue;
      names.push_back(g.value(v).name);
      ids.push_back(v);
    }
    const std::vector<bool> met = matched(patterns, names, "recompute");
    std::vector<bool> wanted(forward, false);
    for (std::size_t i = 0; i < ids.size(); ++i) wanted[ids[i]] = met[i];
    session::recompute(g, forward, wanted, automatic);
  }

  void convert_all() {
    int& opset = model_.opsets.at("");
    opset = std::max(opset, kTrainingOpset);
    session::convert_opset(model_.graph, opset);
    ops::infer_in_place(model_.graph);
    model_.ir_version = std::max(model_.ir_version, kTrainingIrVersion);
  }

  void differentiate() {
    std::vector<ValueId> xs;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (from_.parameters[i].trained) xs.push_back(inputs_[i]);
    }
    GradientOptions options;
    options.fused = true;
    std::vector<ValueId> gradients = append_gradients(model_.graph, from_.loss, xs, options);
    name_gradients(xs, gradients);
  }

  // Named before anything else is made of the graph, so that they keep these names.
  void name_gradients(const std::vector<ValueId>& xs, const std::vector<ValueId>& gradients) {
    Graph& g = model_.graph;
    std::vector<ValueId> named;
    for (std::size_t i = 0; i < xs.size(); ++i) {
      ValueId value = gradients[i];
      if (value == kNoValue) {
        gradients_.push_back(kNoValue);
        continue;
      }
      // One value may be the gradient of two parameters, or belong to the forward part.
      const bool own = g.value(value).producer != kNoNode && std::find(named.begin(), named.end(), value) == named.end();
      if (!own) {
        const Type type = g.value(value).type;
        value = add_node(g, make_node({}, "Identity", kTrainingOpset, {value}), "gradient");
        g.value(value).type = type;
      }
      named.push_back(value);
      take_name(g, value, g.value(xs[i]).name + "_grad");
      gradients_.push_back(value);
      g.add_output(value);
    }
  }

  bool check_reached(std::vector<std::string>& unreached) const {
    std::size_t next = 0;
    for (const ChosenParameter& p : from_.parameters) {
      if (!p.trained || gradients_[next++] != kNoValue) continue;
      if (p.asked) {
        fail(ErrorCode::invalid_argument, "requires_grad: no gradient reaches '{}': '{}' does not depend on it", p.name,
             model_.graph.value(from_.loss).name);
      }
      unreached.push_back(p.name);
    }
    return unreached.empty();
  }

  // The last outputs are the gradients, in the order of the parameters.
  void add_accumulators() {
    Graph& g = model_.graph;
    const std::size_t kept = g.outputs().size() - gradients_.size();
    const std::vector<ValueId> gradients(g.outputs().begin() + static_cast<std::ptrdiff_t>(kept), g.outputs().end());
    while (g.outputs().size() > kept) g.remove_output(kept);
    std::vector<ValueId> buffers;
    std::vector<std::string> names;
    for (const ChosenParameter& p : from_.parameters) {
      if (!p.trained) continue;
      names.push_back(p.name + "_grad.accumulation");
      const Type type = Type::tensor(p.value.dtype(), to_sym(p.value.shape()));
      buffers.push_back(g.add_input(names.back() + ".buffer", type));
    }
    const Type flag = Type::tensor(DataType::boolean, {Dim(1)});
    const ValueId reset = g.add_input("lazy_reset_grad", flag);
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const ValueId out = add_node(
          g, make_node({}, "InPlaceAccumulatorV2", 1, {buffers[i], gradients[i], reset}, {}, "com.microsoft"), names[i] + ".out");
      g.value(out).type = flag;
      g.node(g.value(out).producer).name = "GradientAccumulator" + std::to_string(kept + i);
      g.add_output(out);
    }
  }

  const LossModel& from_;
  const ArtifactOptions& options_;
  Model model_;
  std::vector<ValueId> inputs_;     // by parameter
  std::vector<ValueId> gradients_;  // by trained parameter
};

}  // namespace

Model eval_model(const LossModel& from, const ArtifactOptions& options) {
  Model model = from.model;
  set_ends(model.graph, from, options);
  to_inference_form(model.graph);
  finish(model);
  return model;
}

Model training_model(const LossModel& from, const ArtifactOptions& options, std::vector<std::string>& unreached) {
  return TrainingModel(from, options).run(unreached);
}

}  // namespace sdx::train
