#include "session/pipeline.h"

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"
#include "onnx/functions.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "passes/pass.h"

namespace sdx {
namespace {

void check_nodes(const Graph& graph) {
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.node(id);
    if (node.removed) continue;
    try {
      if (const ops::OpDef* def = ops::find(node)) ops::check_node(graph, node, *def);
      for (const Subgraph& s : node.subgraphs) check_nodes(*s.graph);
    } catch (Error& e) {
      e.add_context("in " + graph.describe(id));
      throw;
    }
  }
}

}  // namespace

std::vector<std::string> check_and_infer(Graph& graph) {
  check_nodes(graph);  // before inference: counts and attributes, on which inference functions rely
  std::vector<std::string> warnings = ops::infer_in_place(graph);
  check_nodes(graph);  // and with types
  return warnings;
}

void bind_dimensions(Graph& graph, const std::vector<std::pair<std::string, std::int64_t>>& dimensions) {
  if (dimensions.empty()) return;
  std::vector<std::string> symbols;
  std::vector<bool> used(dimensions.size(), false);
  for (const ValueId v : graph.inputs()) {
    ValueInfo& info = graph.value(v);
    if (!info.declared.shape) continue;
    for (Dim& d : *info.declared.shape) {
      const std::string symbol = d.symbol_name();
      if (symbol.empty()) continue;
      if (std::find(symbols.begin(), symbols.end(), symbol) == symbols.end()) symbols.push_back(symbol);
      for (std::size_t i = 0; i < dimensions.size(); ++i) {
        if (dimensions[i].first != symbol) continue;
        if (dimensions[i].second < 0)
          fail(ErrorCode::invalid_argument, "dimension '{}' cannot be {}", symbol, dimensions[i].second);
        d = Dim(dimensions[i].second);
        used[i] = true;
      }
    }
    info.type = info.declared;
  }
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (!used[i]) {
      fail(ErrorCode::invalid_argument, "the model's inputs have no dimension '{}'; they have: {}", dimensions[i].first,
           symbols.empty() ? "none" : join(symbols));
    }
  }
}

void prepare(Model& model, const SessionOptions& options) {
  inline_functions(model);
  bind_dimensions(model.graph, options.dimensions);
  for (std::string& w : check_and_infer(model.graph)) model.warnings.push_back(std::move(w));
}

std::unique_ptr<Program> compile(Graph graph, const Selection& selection, const SessionOptions& options) {
  sink_constants(graph);
  if (options.optimize) {
    PassOptions pass_options;
    pass_options.disabled = options.disabled_passes;
    run_passes(graph, pass_options);
  }
  return std::make_unique<Program>(std::move(graph), selection.chain, options.plan_cache_size);
}

std::string dump_claims(const Graph& graph, const Selection& selection) {
  std::string out;
  std::vector<std::vector<Claim>> claims;
  for (const Provider* p : selection.chain) claims.push_back(p->claim(graph, {}));
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    std::string taker = "nobody";
    std::string reasons;
    for (std::size_t i = 0; i < claims.size(); ++i) {
      if (claims[i][id].taken) {
        taker = selection.chain[i]->name();
        break;
      }
      reasons += " (" + std::string(selection.chain[i]->name()) + ": " + claims[i][id].reason + ")";
    }
    out += fmt::format("{}: {}{}\n", graph.describe(id), taker, reasons);
  }
  return out;
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass& p : passes()) names.emplace_back(p.name);
  return names;
}

}  // namespace sdx
