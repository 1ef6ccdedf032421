#include "train/artifacts/parameters.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "ops/op.h"
#include "train/artifacts/model_edit.h"
#include "train/artifacts/names.h"
#include "train/artifacts/training_form.h"

namespace sdx::train {
namespace {

// Inputs that say how something is computed: floats, but no weights.
struct Setting {
  std::string_view op;
  std::size_t first, last;
};
constexpr std::array kSettings{Setting{"BatchNormalization", 3, 4},
                               Setting{"Clip", 1, 2},
                               Setting{"DequantizeLinear", 1, 2},
                               Setting{"Dropout", 1, 2},
                               Setting{"NonMaxSuppression", 3, 4},
                               Setting{"OneHot", 1, 2},
                               Setting{"Pad", 1, 3},
                               Setting{"QuantizeLinear", 1, 2},
                               Setting{"Range", 0, 2},
                               Setting{"Resize", 1, 3},
                               Setting{"Upsample", 1, 1}};

bool is_setting(const Node& n, std::size_t input) {
  return std::any_of(kSettings.begin(), kSettings.end(),
                     [&](const Setting& s) { return s.op == n.op_type && input >= s.first && input <= s.last; });
}

// Whether a node uses the value as an operand of its computation.
std::vector<bool> computed_with(const Graph& graph) {
  std::vector<bool> out(graph.values().size(), false);
  for (const Node& n : graph.nodes()) {
    if (n.removed) continue;
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      if (n.inputs[i] != kNoValue && !is_setting(n, i)) out[n.inputs[i]] = true;
    }
    for (const Subgraph& s : n.subgraphs) {
      for (const ValueId v : s.captures) out[v] = true;
    }
  }
  return out;
}

bool names_it(const std::vector<std::string>& patterns, const std::string& name) {
  return std::find(patterns.begin(), patterns.end(), name) != patterns.end();
}

bool is_weight(const Tensor& t) { return t.dtype() == DataType::float32 && !t.shape().empty() && t.size() > 1; }

// Constant nodes whose output is given by its very name become initializers. So do all that hold weights where the model has no
// weights elsewhere: some exporters write nothing else.
void lift_constant_nodes(Graph& graph, const ArtifactOptions& options) {
  const auto holds_weights = [](const ValueInfo& v) { return v.constant && is_weight(*v.constant); };
  const bool all = std::none_of(graph.values().begin(), graph.values().end(), holds_weights);
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    const Node& n = graph.node(id);
    if (n.removed || n.op_type != "Constant" || !n.domain.empty() || !n.attributes.has("value")) continue;
    const ValueId out = n.outputs.at(0);
    const std::string name = graph.value(out).name;
    const bool lift = all && is_weight(n.attributes.get_tensor("value"));
    if (!lift && !names_it(options.requires_grad, name) && !names_it(options.frozen, name)) continue;
    const ValueId lifted = graph.add_constant(name, n.attributes.get_tensor("value"));
    graph.replace_uses(out, lifted);
    graph.remove_node(id);
    take_name(graph, lifted, name);
  }
}

// The readers of a value, including those of Identity nodes that some exporters write in place of further initializers.
struct Places {
  std::vector<std::pair<NodeId, std::size_t>> all;  // node, number of the input
  bool statistic = false;                           // one of them is a running statistic
};

void collect_places(const Graph& graph, const std::vector<std::vector<NodeId>>& uses, ValueId v, Places& places) {
  for (const NodeId id : uses[v]) {
    const Node& n = graph.node(id);
    if (n.op_type == "Identity" && n.domain.empty()) {
      collect_places(graph, uses, n.outputs.at(0), places);
      continue;
    }
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      if (n.inputs[i] != v || n.op_type == "Shape" || n.op_type == "Size") continue;
      const bool statistic = n.op_type == "BatchNormalization" && i >= 3;
      if (is_setting(n, i) && !statistic) continue;
      places.all.emplace_back(id, i);
      places.statistic = places.statistic || statistic;
    }
    for (const Subgraph& s : n.subgraphs) {
      const bool captured = std::find(s.captures.begin(), s.captures.end(), v) != s.captures.end();
      if (captured) places.all.emplace_back(id, n.inputs.size());
    }
  }
}

// Gates that are cut out of one matrix are parts of one parameter.
bool is_cut_up(const Graph& graph, const Places& places) {
  return std::all_of(places.all.begin(), places.all.end(), [&](const auto& p) {
    const std::string& op = graph.node(p.first).op_type;
    return op == "Slice" || op == "Split";
  });
}

std::string described(const Graph& graph, const Places& places) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, places.all.size()); ++i) {
    const auto& [node, input] = places.all[i];
    text += (i == 0 ? "" : ", ") + ("input " + std::to_string(input) + " of ") + graph.describe(node);
  }
  return places.all.size() > kMost ? text + ", …" : text;
}

// Exporters join initializers of equal values, such as the zeros of two biases; a warning names parameters that would be trained
// as one.
void warn_of_joined(const Graph& graph, const std::vector<ChosenParameter>& chosen) {
  const auto uses = graph.uses();
  std::size_t count = 0;
  std::string first;
  for (const ChosenParameter& p : chosen) {
    const std::optional<ValueId> v = graph.find(p.name);
    if (!v) continue;
    Places places;
    collect_places(graph, uses, *v, places);
    const bool joined = places.all.size() > 1 && (p.trained || places.statistic) && !is_cut_up(graph, places);
    if (joined && ++count == 1) first = "'" + p.name + "' (" + described(graph, places) + ")";
  }
  if (count == 0) return;
  log::warning(
      "{} is read in several places{} and trained as one parameter. Exporters join parameters whose values are equal: where the "
      "model does not share them, export it so that each has an initializer of its own (PyTorch: docs/converting.md, \"For "
      "training\")",
      first, count == 1 ? "" : ", as " + std::to_string(count - 1) + " others are,");
}

class Choice {
 public:
  Choice(const Graph& graph, const ArtifactOptions& options, const std::vector<std::string>& added)
      : graph_(graph), options_(options), added_(added) {
    const auto used = computed_with(graph);
    const auto users = graph.uses();
    for (ValueId v = 0; v < graph.values().size(); ++v) {
      const ValueInfo& info = graph.value(v);
      if (!info.constant || users[v].empty()) continue;
      ids_.push_back(v);
      names_.push_back(info.name);
      is_weight_.push_back(used[v]);
    }
    for (const ValueId v : running_statistics(graph)) statistics_.insert(v);
  }

  std::vector<ChosenParameter> run() const {
    const std::vector<bool> frozen = matched(options_.frozen, names_, "frozen");
    const bool open = options_.requires_grad.empty();
    const bool all = open && added_.empty();
    const std::vector<bool> wanted =
        open ? std::vector<bool>(names_.size(), all) : matched(options_.requires_grad, names_, "requires_grad");
    std::vector<ChosenParameter> out;
    bool any = false;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const bool asked = names_it(options_.requires_grad, names_[i]);
      const bool trained = !frozen[i] && (names_it(added_, names_[i]) || (wanted[i] && may_be_trained(i, asked)));
      any = any || trained;
      const bool freeze = frozen[i] && (is_float(i) || names_it(options_.frozen, names_[i]));
      const bool keep = trained || freeze || (!added_.empty() && may_be_trained(i, false));
      if (keep || (options_.train_batch_norm && statistics_.contains(ids_[i]))) {
        out.push_back({names_[i], *graph_.value(ids_[i]).constant, trained, asked});
      }
    }
    if (!any) {
      fail(ErrorCode::invalid_argument, "there is nothing to train: {}",
           all ? "the model has no float32 initializer that is not frozen"
               : "everything that requires_grad names is frozen or not float32");
    }
    return out;
  }

 private:
  const Tensor& tensor(std::size_t i) const { return *graph_.value(ids_[i]).constant; }
  bool is_float(std::size_t i) const { return (ops::types::floats & ops::bit(tensor(i).dtype())) != 0; }

  bool may_be_trained(std::size_t i, bool asked) const {
    const bool statistics = statistics_.contains(ids_[i]);
    if (asked) {
      if (statistics) {
        fail(ErrorCode::invalid_argument,
             "requires_grad: '{}' is a running statistic of BatchNormalization: no gradient reaches it", names_[i]);
      }
      if (tensor(i).dtype() != DataType::float32) {
        fail(ErrorCode::invalid_argument, "requires_grad: '{}' is {}; expected float32", names_[i],
             graph_.value(ids_[i]).type.str());
      }
      return true;
    }
    // A number is a constant of a formula rather than a weight.
    return tensor(i).dtype() == DataType::float32 && !statistics && is_weight_[i] && !tensor(i).shape().empty();
  }

  const Graph& graph_;
  const ArtifactOptions& options_;
  const std::vector<std::string>& added_;
  std::vector<ValueId> ids_;
  std::vector<std::string> names_;
  std::vector<bool> is_weight_;
  std::set<ValueId> statistics_;
};

}  // namespace

std::vector<ChosenParameter> choose_parameters(Graph& graph, const ArtifactOptions& options,
                                               const std::vector<std::string>& added) {
  lift_constant_nodes(graph, options);
  std::vector<ChosenParameter> chosen = Choice(graph, options, added).run();
  if (!options.shares_parameters) warn_of_joined(graph, chosen);
  return chosen;
}

}  // namespace sdx::train
