#include "plan/regions.h"

#include <algorithm>
#include <unordered_map>

#include "base/counted.h"
#include "base/error.h"
#include "base/log.h"
#include "graph/edit.h"
#include "ops/infer.h"
#include "plan/guarded_kernel.h"

namespace sdx::plan {
namespace {

// A provider that keeps refusing single nodes is asked this often before it gets none.
constexpr int kMaxAttempts = 64;

Type without_shape(Type type) {
  type.shape.reset();
  return type;
}

class Former {
 public:
  Former(Graph& graph, const Model& model, const ModelSource* source, bool strict)
      : graph_(graph), model_(model), source_(source), strict_(strict) {}

  Regions run(std::span<const ChosenProvider> chain, const std::function<void(int)>& compiling);

 private:
  struct Group {
    std::vector<NodeId> nodes;
    std::vector<ValueId> inputs, outputs;  // of the enclosing graph
    std::vector<bool> stays;               // per output: see Region::stays
    std::unique_ptr<Graph> graph;
    std::unique_ptr<Kernel> kernel;
  };

  void offer(std::span<const ChosenProvider> chain, std::size_t at);
  std::vector<Group> compile_groups(const ChosenProvider& chosen,
                                    const std::vector<std::pair<const Provider*, ProviderSettings>>& followers,
                                    std::vector<bool>& wanted);
  bool compile(Group& group, const ChosenProvider& chosen,
               const std::vector<std::pair<const Provider*, ProviderSettings>>& followers, std::vector<bool>& wanted);
  std::vector<Group> cut(const std::vector<bool>& wanted) const;
  void extract(Group& group, const std::vector<bool>& wanted) const;
  void replace(Group group, const std::string& provider, std::shared_ptr<const std::atomic<bool>> reject_nan);
  void refuse(NodeId id, const std::string& provider, const std::string& reason);
  template <class F>
  void for_each_use(const Node& node, F&& fn) const {
    for (const ValueId v : node.inputs) {
      if (v != kNoValue) fn(v);
    }
    for (const Subgraph& s : node.subgraphs) {
      for (const ValueId v : s.captures) fn(v);
    }
  }

  Graph& graph_;
  const Model& model_;
  const ModelSource* source_;
  bool strict_;
  std::vector<bool> taken_;  // by NodeId: an earlier provider runs it
  Regions result_;
};

void Former::refuse(NodeId id, const std::string& provider, const std::string& reason) {
  const Node& node = graph_.node(id);
  if (node.outputs.empty() || node.outputs[0] == kNoValue) return;
  auto& list = result_.refused[graph_.value(node.outputs[0]).name];
  const auto same = std::find_if(list.begin(), list.end(), [&](const Refusal& r) { return r.kernel == provider; });
  if (same == list.end()) list.push_back({provider, reason});
}

// Nodes of one group lie between the same results of nodes outside: each path through an outside node leads to a later group, so
// that a group never waits for itself.
std::vector<Former::Group> Former::cut(const std::vector<bool>& wanted) const {
  std::vector<int> depth(graph_.values().size(), 0);
  std::vector<Group> groups;
  for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
    const Node& node = graph_.node(id);
    if (node.removed) continue;
    int at = 0;
    for_each_use(node, [&](ValueId v) {
      const NodeId producer = graph_.value(v).producer;
      if (producer == kNoNode) return;
      at = std::max(at, depth[v] + (wanted[id] && !wanted[producer] ? 1 : 0));
    });
    for (const ValueId v : node.outputs) {
      if (v != kNoValue) depth[v] = at;
    }
    if (!wanted[id]) continue;
    if (groups.size() <= static_cast<std::size_t>(at)) groups.resize(static_cast<std::size_t>(at) + 1);
    groups[static_cast<std::size_t>(at)].nodes.push_back(id);
  }
  std::erase_if(groups, [](const Group& g) { return g.nodes.empty(); });
  return groups;
}

// The group as a graph of its own.
void Former::extract(Group& group, const std::vector<bool>& wanted) const {
  group.inputs.clear();
  group.outputs.clear();
  group.stays.clear();
  group.graph = std::make_unique<Graph>();
  Graph& out = *group.graph;
  out.name = graph_.name.empty() ? "region" : graph_.name;
  std::vector<bool> inside(graph_.nodes().size(), false);
  for (const NodeId id : group.nodes) inside[id] = true;
  std::unordered_map<ValueId, ValueId> map;
  const auto value = [&](ValueId v) {
    if (v == kNoValue) return kNoValue;
    if (const auto it = map.find(v); it != map.end()) return it->second;
    const ValueInfo& info = graph_.value(v);
    ValueId made = kNoValue;
    if (info.constant && !info.is_input) {
      made = out.add_constant(info.name, *info.constant);
    } else if (info.producer != kNoNode && inside[info.producer]) {
      made = out.add_value(info.name, info.type);
    } else {
      made = out.add_input(info.name, info.type);
      group.inputs.push_back(v);
    }
    out.value(made).declared = info.declared;
    map.emplace(v, made);
    return made;
  };
  for (const NodeId id : group.nodes) {
    Node node = graph_.node(id);
    for (ValueId& v : node.inputs) v = value(v);
    for (Subgraph& s : node.subgraphs) {
      for (ValueId& v : s.captures) v = value(v);
    }
    for (ValueId& v : node.outputs) v = value(v);
    out.add_node(std::move(node));
  }
  std::vector<bool> needed(graph_.values().size(), false), on_host(graph_.values().size(), false);
  for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
    if (inside[id] || graph_.node(id).removed) continue;
    for_each_use(graph_.node(id), [&](ValueId v) {
      needed[v] = true;
      if (!wanted[id]) on_host[v] = true;
    });
  }
  for (const ValueId v : graph_.outputs()) needed[v] = on_host[v] = true;
  for (const NodeId id : group.nodes) {
    for (const ValueId v : graph_.node(id).outputs) {
      if (v == kNoValue || !needed[v]) continue;
      group.outputs.push_back(v);
      group.stays.push_back(!on_host[v]);
      out.add_output(map.at(v));
    }
  }
}

// True when the group has its kernel; false when `wanted` has shrunk, or the provider failed and gets nothing.
bool Former::compile(Group& group, const ChosenProvider& chosen,
                     const std::vector<std::pair<const Provider*, ProviderSettings>>& followers, std::vector<bool>& wanted) {
  extract(group, wanted);
  Region region;
  region.graph = group.graph.get();
  region.model = &model_;
  region.followers = followers;
  if (!chosen.settings.reject_nan) region.stays = group.stays;  // looking for NaN, the host reads them all
  const auto count = std::count_if(graph_.nodes().begin(), graph_.nodes().end(), [](const Node& n) { return !n.removed; });
  if (static_cast<std::size_t>(count) == group.nodes.size() && source_ != nullptr && !source_->empty()) region.source = source_;
  const std::string name(chosen.provider->name());
  try {
    RegionResult result = chosen.provider->compile(region, chosen.settings);
    if (result.kernel) {
      group.kernel = std::move(result.kernel);
      return true;
    }
    if (result.refused.empty()) fail(ErrorCode::internal, "provider '{}' neither compiled nor refused a region", name);
    for (const auto& [inner, reason] : result.refused) {
      const NodeId id = group.nodes.at(inner);
      wanted[id] = false;
      refuse(id, name, reason);
    }
  } catch (const Error& e) {
    if (strict_ || e.code() == ErrorCode::invalid_argument || e.code() == ErrorCode::internal) throw;
    result_.failures.push_back(
        fmt::format("{} cannot compile {}: {}", name, counted(static_cast<std::int64_t>(group.nodes.size()), "node"), e.what()));
    log::warning("{}", result_.failures.back());
    for (const NodeId id : group.nodes) {
      wanted[id] = false;
      refuse(id, name, e.message());
    }
  }
  return false;
}

std::vector<Former::Group> Former::compile_groups(const ChosenProvider& chosen,
                                                  const std::vector<std::pair<const Provider*, ProviderSettings>>& followers,
                                                  std::vector<bool>& wanted) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    std::vector<Group> groups = cut(wanted);
    bool complete = true;
    for (Group& g : groups) {
      complete = compile(g, chosen, followers, wanted);
      if (!complete) break;  // the others may look different without these nodes
    }
    if (complete) return groups;
  }
  result_.failures.push_back(fmt::format("{} refused one node after the other and runs nothing", chosen.provider->name()));
  return {};
}

void Former::replace(Group group, const std::string& provider, std::shared_ptr<const std::atomic<bool>> reject_nan) {
  const std::size_t number = result_.compiled.size();
  Node node = make_node(fmt::format("{}.{}", provider, number), "Region", 1, group.inputs,
                        {{"region", static_cast<std::int64_t>(number)}}, ops::kRegionDomain);
  node.outputs = group.outputs;
  for (const NodeId id : group.nodes) {
    graph_.node(id).subgraphs.clear();
    graph_.remove_node(id);
  }
  for (const ValueId v : group.outputs) graph_.value(v).declared = without_shape(graph_.value(v).type);
  graph_.add_node(std::move(node));
  result_.compiled.push_back({guard_results(std::move(group.kernel), *group.graph, provider, std::move(reject_nan)), provider});
}

void Former::offer(std::span<const ChosenProvider> chain, std::size_t at) {
  const ChosenProvider& chosen = chain[at];
  const std::string name(chosen.provider->name());
  const std::vector<Claim> claims = chosen.provider->claim(graph_, chosen.settings);
  std::vector<bool> wanted(graph_.nodes().size(), false);
  bool any = false;
  for (NodeId id = 0; id < wanted.size(); ++id) {
    if (graph_.node(id).removed || taken_[id] || graph_.node(id).domain == ops::kRegionDomain) continue;
    wanted[id] = claims[id].taken;
    any = any || wanted[id];
    if (!wanted[id]) refuse(id, name, claims[id].reason);
  }
  if (!any) return;
  if (!chosen.provider->compiles_regions()) {
    for (NodeId id = 0; id < wanted.size(); ++id) taken_[id] = taken_[id] || wanted[id];
    return;
  }
  std::vector<std::pair<const Provider*, ProviderSettings>> followers;
  for (std::size_t i = at + 1; i < chain.size() && !chosen.provider->family().empty(); ++i) {
    if (chain[i].provider->family() != chosen.provider->family()) break;
    followers.emplace_back(chain[i].provider, chain[i].settings);
  }
  std::vector<Group> groups = compile_groups(chosen, followers, wanted);
  if (groups.empty()) return;
  for (Group& g : groups) replace(std::move(g), name, chosen.settings.reject_nan);
  const std::vector<NodeId> moved = graph_.compact();
  std::vector<bool> taken(graph_.nodes().size(), false);
  for (NodeId id = 0; id < taken_.size() && id < moved.size(); ++id) {
    if (moved[id] != kNoNode) taken[moved[id]] = taken_[id];
  }
  taken_ = std::move(taken);
}

Regions Former::run(std::span<const ChosenProvider> chain, const std::function<void(int)>& compiling) {
  taken_.assign(graph_.nodes().size(), false);
  std::size_t last = 0;  // providers after the last one with regions do not matter
  for (std::size_t i = 0; i < chain.size(); ++i) {
    if (chain[i].provider->compiles_regions()) last = i + 1;
  }
  for (std::size_t i = 0; i < last; ++i) {
    if (compiling) compiling(chain[i].provider->compiles_regions() ? static_cast<int>(i) : -1);
    offer(chain, i);
  }
  if (compiling) compiling(-1);
  if (!result_.compiled.empty()) graph_.drop_unused_values();
  return std::move(result_);
}

}  // namespace

Regions form_regions(Graph& graph, const Model& model, const ModelSource* source, std::span<const ChosenProvider> chain,
                     bool strict, const std::function<void(int)>& compiling) {
  return Former(graph, model, source, strict).run(chain, compiling);
}

}  // namespace sdx::plan
