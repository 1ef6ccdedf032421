// Compatibility of compiled models with devices, the assignment of nodes, and tables for features that do not exist here: plugins
// of providers, and memory shared with graphics.

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <sdx/provider.hpp>

#include "dropin/devices/devices.h"
#include "dropin/status.h"
#include "dropin/table.h"
#include "onnx/reader.h"

namespace sdx::dropin {

struct OrtEpAssignedNode {
  std::string name, domain, op_type;
};
struct OrtEpAssignedSubgraph {
  std::string provider;
  std::vector<OrtEpAssignedNode> nodes;
  std::vector<const OrtEpAssignedNode*> listed;
};

namespace {

void give_compatibility(const Model& model, const char* provider, OrtAllocator* allocator, char** out) {
  const std::string key = std::string("ep_compatibility_info.") + &require(provider, "ep_type");
  for (const auto& [name, value] : model.metadata) {
    if (name == key) *out = copy_text(&require(allocator, "allocator"), value);
  }
}

OrtStatus* compatibility_of_file(const char* path, const char* provider, OrtAllocator* allocator, char** out) noexcept {
  return guarded([&] {
    require(out, "compatibility_info") = nullptr;
    give_compatibility(read_model(std::filesystem::path(&require(path, "model_path"))), provider, allocator, out);
  });
}

OrtStatus* compatibility_of_bytes(const void* bytes, std::size_t size, const char* provider, OrtAllocator* allocator,
                                  char** out) noexcept {
  return guarded([&] {
    require(out, "compatibility_info") = nullptr;
    const auto* data = &require(static_cast<const std::byte*>(bytes), "model_data");
    give_compatibility(read_model(std::span(data, size), nullptr, {}), provider, allocator, out);
  });
}

// 0: the provider has no part in it, which holds for the processor always.
OrtStatus* compatibility_for_devices(const OrtEpDevice* const* devices, std::size_t count, const char* info,
                                     std::int32_t* out) noexcept {
  return guarded([&] {
    if (devices == nullptr || count == 0)
      fail_ort(ORT_INVALID_ARGUMENT, "Invalid argument provided to GetModelCompatibilityForEpDevices.");
    require(info, "compatibility_info");
    require(out, "out_status") = 0;
  });
}

// Made at the first question, and kept as long as its session.
struct Assignment {
  std::vector<OrtEpAssignedSubgraph> parts;
  std::vector<const OrtEpAssignedSubgraph*> listed;
};

std::string provider_name(const std::string& ours) {
  if (ours == "cpu") return "CPUExecutionProvider";
  for (const ProviderInfo& p : providers()) {
    if (p.name == ours) return p.ort_name;
  }
  return ours;
}

std::shared_ptr<const Assignment> assignment_of(const Session& session) {
  auto made = std::make_shared<Assignment>();
  for (const NodeReport& node : session.report().nodes) {
    const std::size_t dot = node.op.rfind('.');
    OrtEpAssignedNode n{node.name, dot == std::string::npos ? "" : node.op.substr(0, dot),
                        dot == std::string::npos ? node.op : node.op.substr(dot + 1)};
    const std::string provider = provider_name(node.provider);
    auto it = std::find_if(made->parts.begin(), made->parts.end(), [&](const auto& p) { return p.provider == provider; });
    if (it == made->parts.end()) it = made->parts.insert(it, {provider, {}, {}});
    it->nodes.push_back(std::move(n));
  }
  for (OrtEpAssignedSubgraph& p : made->parts) {
    for (const OrtEpAssignedNode& n : p.nodes) p.listed.push_back(&n);
    made->listed.push_back(&p);
  }
  return made;
}

constexpr const char* kRecord = "session.record_ep_graph_assignment_info";
std::mutex g_assigning;

OrtStatus* graph_assignment(const OrtSession* session, const OrtEpAssignedSubgraph* const** out, std::size_t* count) noexcept {
  return guarded([&] {
    require(out, "ep_subgraphs") = nullptr;
    require(count, "num_ep_subgraphs") = 0;
    auto& s = const_cast<OrtSession&>(require(session, "session"));
    const auto asked = s.options.config.find(std::string_view(kRecord));
    if (asked == s.options.config.end() || asked->second != "1") {
      fail_ort(ORT_FAIL, std::string("Session configuration entry \"") + kRecord +
                             "\" must be set to \"1\" to retrieve EP graph assignment information.");
    }
    const std::shared_ptr<const Assignment> made = assignment_of(s.session);
    const std::lock_guard lock(g_assigning);
    s.kept.push_back(made);
    *out = made->listed.data();
    *count = made->listed.size();
  });
}

OrtStatus* subgraph_provider(const OrtEpAssignedSubgraph* part, const char** out) noexcept {
  return guarded([&] { require(out, "out") = require(part, "ep_subgraph").provider.c_str(); });
}
OrtStatus* subgraph_nodes(const OrtEpAssignedSubgraph* part, const OrtEpAssignedNode* const** out, std::size_t* count) noexcept {
  return guarded([&] {
    require(out, "ep_nodes") = require(part, "ep_subgraph").listed.data();
    require(count, "num_ep_nodes") = part->listed.size();
  });
}
OrtStatus* node_name(const OrtEpAssignedNode* node, const char** out) noexcept {
  return guarded([&] { require(out, "out") = require(node, "ep_node").name.c_str(); });
}
OrtStatus* node_domain(const OrtEpAssignedNode* node, const char** out) noexcept {
  return guarded([&] { require(out, "out") = require(node, "ep_node").domain.c_str(); });
}
OrtStatus* node_type(const OrtEpAssignedNode* node, const char** out) noexcept {
  return guarded([&] { require(out, "out") = require(node, "ep_node").op_type.c_str(); });
}

// Tables that plugins and programs with graphics call. ONNX Runtime's have fewer functions; the rest is room for newer ones.
OrtStatus* no_plugins() noexcept {
  return make_status(ORT_NOT_IMPLEMENTED, "Sardonyx loads no plugins of execution providers: their interface does nothing here");
}
OrtStatus* no_graphics() noexcept {
  return make_status(ORT_NOT_IMPLEMENTED, "Sardonyx shares no memory with graphics interfaces: CPUExecutionProvider has none");
}
void release_nothing() noexcept {}

constexpr std::size_t kPluginFunctions = 160, kGraphicsFunctions = 32;
using Function = Table::Function;

template <std::size_t n>
std::array<Function, n> all_of(OrtStatus* (*function)() noexcept) {
  std::array<Function, n> list;
  list.fill(reinterpret_cast<Function>(function));
  return list;
}

const void* plugin_table() noexcept {
  static const auto list = all_of<kPluginFunctions>(&no_plugins);
  return list.data();
}

const void* graphics_table() noexcept {
  static const auto list = [] {
    auto made = all_of<kGraphicsFunctions>(&no_graphics);
    for (const std::size_t release : {1, 4, 8}) made[release] = &release_nothing;  // importer, memory, semaphore
    return made;
  }();
  return list.data();
}

void* no_experiment(const char*) noexcept { return nullptr; }

}  // namespace

void fill_compatibility(Table& table) {
  table.set(Slot::GetCompatibilityInfoFromModel, &compatibility_of_file);
  table.set(Slot::GetCompatibilityInfoFromModelBytes, &compatibility_of_bytes);
  table.set(Slot::GetModelCompatibilityForEpDevices, &compatibility_for_devices);
  table.set(Slot::Session_GetEpGraphAssignmentInfo, &graph_assignment);
  table.set(Slot::EpAssignedSubgraph_GetEpName, &subgraph_provider);
  table.set(Slot::EpAssignedSubgraph_GetNodes, &subgraph_nodes);
  table.set(Slot::EpAssignedNode_GetName, &node_name);
  table.set(Slot::EpAssignedNode_GetDomain, &node_domain);
  table.set(Slot::EpAssignedNode_GetOperatorType, &node_type);
  table.set(Slot::GetEpApi, &plugin_table);
  table.set(Slot::GetInteropApi, &graphics_table);
  table.set(Slot::GetExperimentalFunction, &no_experiment);
}

}  // namespace sdx::dropin
