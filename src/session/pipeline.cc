#include "session/pipeline.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/suggest.h"
#include "cache/folder.h"
#include "cache/pack_store.h"
#include "cache/tuned.h"
#include "onnx/functions.h"
#include "ops/control/element_types.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "passes/expand_gradients.h"
#include "passes/pass.h"
#include "passes/training_nodes.h"
#include "providers/table.h"
#include "session/custom_ops.h"
#include "session/provider_settings.h"
#include "session/quantize_at_load.h"

namespace sdx::session {
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

void check_known(const Graph& graph) {
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.node(id);
    if (node.removed || ops::find(node) != nullptr) continue;
    fail(ErrorCode::not_implemented, "{} is not an operator of this build", graph.describe(id));
  }
  check_nodes(graph);
}

std::vector<std::string> check_and_infer(Graph& graph, bool allow_unknown) {
  ops::InferOptions options;
  options.allow_unknown = allow_unknown;
  check_nodes(graph);  // before inference: counts and attributes, on which inference functions rely
  std::vector<std::string> warnings = ops::infer_in_place(graph, options);
  if (ops::note_element_types(graph, options)) ops::infer_in_place(graph, options);
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
    if (used[i]) continue;
    const std::string near = closest(dimensions[i].first, symbols);
    fail(ErrorCode::invalid_argument, "the model's inputs have no dimension '{}'{}: {}", dimensions[i].first,
         near.empty() ? "; they have" : ", did you mean '" + near + "'? They have", symbols.empty() ? "none" : join(symbols));
  }
}

namespace {

// Returns whether it changed anything.
bool replace_initializers(Graph& graph, const std::vector<std::pair<std::string, Tensor>>& initializers) {
  bool changed = false;
  for (const auto& [name, tensor] : initializers) {
    const std::optional<ValueId> id = graph.find(name);
    if (!id || !graph.value(*id).constant) continue;
    Tensor& held = *graph.value(*id).constant;
    if (held.dtype() != tensor.dtype() || held.shape() != tensor.shape()) {
      fail(ErrorCode::invalid_argument, "initializer '{}' of the model is {}; its replacement is {}", name, held.type_string(),
           tensor.type_string());
    }
    held = tensor;
    changed = true;
  }
  return changed;
}

void fix_extents(Graph& graph, const std::vector<FixedExtent>& extents) {
  for (const auto& [input, axis, extent] : extents) {
    const std::optional<ValueId> id = graph.find(input);
    if (!id || !graph.value(*id).is_input) continue;
    ValueInfo& info = graph.value(*id);
    if (!info.declared.shape || axis >= info.declared.shape->size()) continue;
    if (extent < 0) fail(ErrorCode::invalid_argument, "extent {} of input '{}' cannot be {}", axis, input, extent);
    (*info.declared.shape)[axis] = Dim(extent);
    info.type = info.declared;
  }
}

}  // namespace

bool prepare(Model& model, const SessionOptions& options, bool allow_unknown, const InternalOptions& internal) {
  const bool quantized = options.quantize == Quantize::dynamic;
  if (quantized) quantize_at_load(model, options, internal);
  inline_functions(model);
  CustomOps custom_ops = load_custom_ops(options.custom_ops);
  custom_ops.insert(custom_ops.begin(), internal.operators.begin(), internal.operators.end());
  const bool changed = !quantized && replace_initializers(model.graph, internal.initializers);  // quantising has done so
  bind_custom_ops(model.graph, custom_ops);
  bind_dimensions(model.graph, options.dimensions);
  fix_extents(model.graph, internal.extents);
  const bool settled = settle_training_nodes(model.graph);
  for (std::string& w : check_and_infer(model.graph, allow_unknown)) model.warnings.push_back(std::move(w));
  if (!expand_gradients(model.graph)) return !settled && !changed && !quantized;
  bind_custom_ops(model.graph, custom_ops);  // a library's gradient may use its other operators
  check_and_infer(model.graph, allow_unknown);
  return false;
}

bool compiles_regions(const Selection& selection) {
  return std::any_of(selection.chain.begin(), selection.chain.end(), [](const Provider* p) { return p->compiles_regions(); });
}

namespace {

std::unique_ptr<plan::Program> lower(Graph graph, const Selection& selection, const SessionOptions& options,
                                     plan::Regions regions, cache::PackStore& packs) {
  cache::TunedChoices tuned(options.tune && options.cache ? cache::cache_file(options.cache_folder, "tuned.json")
                                                          : std::filesystem::path());
  return std::make_unique<plan::Program>(std::move(graph), selection.chain, options.plan_cache_size, std::move(regions),
                                         LowerOptions{options.tune, &tuned, &packs});
}

// The one provider that gets every node which no region takes; null where there are several, because what one of them makes of a
// graph the others would not know.
const Provider* runs_the_rest(const Selection& selection) {
  const Provider* rest = nullptr;
  for (const Provider* p : selection.chain) {
    if (p->compiles_regions()) continue;
    if (rest != nullptr) return nullptr;
    rest = p;
  }
  return rest;
}

bool regions_want_optimized(const Selection& selection) {
  return std::all_of(selection.chain.begin(), selection.chain.end(),
                     [](const Provider* p) { return !p->compiles_regions() || p->wants_optimized(); });
}

std::vector<Pass> all_passes() {
  std::vector<Pass> all(passes().begin(), passes().end());
  for (const Provider* p : own_providers()) all.insert(all.end(), p->passes().begin(), p->passes().end());
  return all;
}

}  // namespace

std::unique_ptr<plan::Program> load_compiled(const cache::CompiledModel& compiled, const Selection& selection,
                                             const SessionOptions& options) {
  try {
    cache::PackStore store(&compiled);
    auto program = lower(compiled.graph(), selection, options, {}, store);
    log::debug("'{}': {} packed weights were not in it", compiled.path().string(), store.misses());
    return program;
  } catch (const Error& e) {
    log::info("'{}' is not used: {}", compiled.path().string(), e.what());
    return nullptr;
  }
}

std::unique_ptr<plan::Program> compile(Graph graph, const Selection& selection, const SessionOptions& options,
                                       const Origin& origin, std::vector<std::string>& fallbacks, cache::Recording* recording) {
  plan::Regions regions;
  const bool optimized_first = compiles_regions(selection) && regions_want_optimized(selection);
  if (optimized_first) {
    sink_constants(graph);
    PassOptions for_all;
    for_all.disabled = options.disabled_passes;
    if (options.optimize) run_passes(graph, for_all);
  }
  if (compiles_regions(selection)) {
    std::vector<plan::ChosenProvider> chosen = chosen_providers(selection, options);
    for (plan::ChosenProvider& c : chosen) c.settings.reject_nan = origin.reject_nan;
    const ModelSource* source = optimized_first ? nullptr : origin.source;
    regions = plan::form_regions(graph, *origin.model, source, chosen, options.strict, origin.compiling);
    fallbacks.insert(fallbacks.end(), regions.failures.begin(), regions.failures.end());
  }
  sink_constants(graph);
  if (options.optimize) {
    PassOptions pass_options;
    pass_options.disabled = options.disabled_passes;
    if (const Provider* rest = runs_the_rest(selection)) pass_options.last = rest->passes();
    run_passes(graph, pass_options);
  }
  if (recording != nullptr) recording->graph = graph;
  cache::PackStore store(nullptr, recording != nullptr);
  auto program = lower(std::move(graph), selection, options, std::move(regions), store);
  if (recording != nullptr) recording->packs = store.made();
  return program;
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

}  // namespace sdx::session

namespace sdx {

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass& p : session::all_passes()) names.emplace_back(p.name);
  return names;
}

}  // namespace sdx
