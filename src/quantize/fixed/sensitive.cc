#include "quantize/fixed/sensitive.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "quantize/model/model_file.h"

namespace sdx::quantize {
namespace {

struct Layer {
  std::string name, op;
  double damage = 0;
};

class Search {
 public:
  Search(const Model& prepared, const Calibration& calibration, const Recorded& expected, CalibrationDataReader& data,
         const StaticQuantOptions& options)
      : prepared_(prepared), calibration_(calibration), expected_(expected), data_(data), options_(options) {}

  // On the recorded batches, and on all data.
  double loss(const QuantSelection& selection) const { return outputs_against(made(selection), expected_, options_).loss; }
  double whole_loss(const QuantSelection& selection) const {
    return outputs_between(prepared_, made(selection), data_, options_).loss;
  }

 private:
  Model made(const QuantSelection& selection) const {
    StaticQuantOptions o = options_;
    static_cast<QuantSelection&>(o) = selection;
    Model model = prepared_;
    QuantReport ignored;
    const StaticPlan plan = plan_static(model.graph, o, ignored);
    make_static(model, plan, calibration_, o, ignored);
    finish_quantized(model);
    return model;
  }

  const Model& prepared_;
  const Calibration& calibration_;
  const Recorded& expected_;
  CalibrationDataReader& data_;
  const StaticQuantOptions& options_;
};

std::vector<Layer> weighted_layers(const Graph& graph, const StaticPlan& plan) {
  std::vector<Layer> layers;
  for (NodeId id = 0; id < plan.nodes.size(); ++id) {
    const Node& n = graph.node(id);
    if (plan.nodes[id] && static_kind(n) == StaticKind::weighted) layers.push_back({node_name(graph, n), n.op_type, 0});
  }
  return layers;
}

}  // namespace

std::set<std::string> sensitive_nodes(const Model& prepared, const StaticPlan& plan, const Calibration& calibration,
                                      const Recorded& expected, CalibrationDataReader& data, const StaticQuantOptions& options,
                                      double most, QuantReport& report) {
  const Search search(prepared, calibration, expected, data, options);
  if (search.whole_loss(options) <= most) return {};
  std::vector<Layer> layers = weighted_layers(prepared.graph, plan);
  for (Layer& l : layers) {
    QuantSelection alone = options;
    alone.nodes_to_quantize = {l.name};
    l.damage = search.loss(alone);
  }
  std::stable_sort(layers.begin(), layers.end(), [](const Layer& a, const Layer& b) { return a.damage > b.damage; });
  const auto without = [&](std::size_t count) {
    QuantSelection s = options;
    for (std::size_t i = 0; i < count; ++i) s.nodes_to_exclude.push_back(layers[i].name);
    return s;
  };
  std::size_t low = 0, high = layers.size();  // `low` too few; `high` enough, as far as the recorded batches say
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (search.loss(without(middle)) <= most ? high : low) = middle;
  }
  while (search.whole_loss(without(high)) > most) {
    if (high == layers.size()) {
      fail(ErrorCode::invalid_argument, "the loss stays above {} even with all {} layers with weights in float", most,
           layers.size());
    }
    high = std::min(layers.size(), high + std::max<std::size_t>(1, high / 4));
  }
  std::set<std::string> out;
  for (std::size_t i = 0; i < high; ++i) {
    out.insert(layers[i].name);
    report.kept.push_back({layers[i].name, layers[i].op, fmt::format("alone it costs {:.3g}", layers[i].damage)});
  }
  return out;
}

}  // namespace sdx::quantize
