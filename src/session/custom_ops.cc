#include "session/custom_ops.h"

#include <system_error>

#include "base/error.h"
#include "base/system/dynlib.h"
#include "base/system/loader.h"
#include "session/ort_operators.h"

namespace sdx::session {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEntry = "sdx_register_operators";
constexpr const char* kOrtEntry = "RegisterCustomOps";

// The form of `path` decides where dlopen searches: it would look for a bare name in the system's folders.
fs::path checked_path(const fs::path& path) {
  std::error_code error;
  fs::path absolute = fs::absolute(path, error);
  if (path.empty() || error || !fs::exists(absolute, error)) {
    fail(ErrorCode::io, "there is no library of custom operators '{}'", path.string());
  }
  if (!fs::is_regular_file(absolute, error))
    fail(ErrorCode::io, "'{}' is not a file; expected a library of custom operators", path.string());
  return absolute;
}

CustomOps load_from(const fs::path& given) {
  if (!can_load_libraries()) {
    fail(ErrorCode::io, "cannot load the custom operators of '{}': {}", given.string(), why_no_libraries());
  }
  const fs::path path = checked_path(given);
  std::string reason;
  void* const loaded = load_library(path, LibraryUse::local, reason);
  if (loaded == nullptr) fail(ErrorCode::io, "cannot load the custom operators of '{}': {}", given.string(), reason);
  const std::shared_ptr<void> handle(loaded, [](void* h) { unload_library(h); });
  void* const entry = symbol_of(loaded, kEntry);
  if (entry == nullptr) {
    if (symbol_of(loaded, kOrtEntry) != nullptr) return read_ort_operators(handle, given.string());
    fail(ErrorCode::invalid_argument,
         "'{}' is not a library of custom operators: it exports neither {} (sdx/custom_op.h) nor {} (made for ONNX Runtime)",
         given.string(), kEntry, kOrtEntry);
  }
  return ops::register_custom(reinterpret_cast<sdx_register_operators_fn>(entry), given.string(), handle);
}

const std::shared_ptr<const ops::CustomOp>* find(const CustomOps& custom, const Node& node) {
  const std::shared_ptr<const ops::CustomOp>* best = nullptr;
  int oldest = 0;
  for (const auto& op : custom) {
    if (op->def.domain != node.domain || op->def.name != node.op_type) continue;
    if (oldest == 0 || op->def.since < oldest) oldest = op->def.since;
    if (op->def.since <= node.version && (best == nullptr || op->def.since > (*best)->def.since)) best = &op;
  }
  if (best == nullptr && oldest != 0) {
    fail(ErrorCode::invalid_model, "custom operator {}.{} needs opset {} of its domain; the model imports opset {}", node.domain,
         node.op_type, oldest, node.version);
  }
  return best;
}

}  // namespace

CustomOps load_custom_ops(const std::vector<fs::path>& libraries) {
  CustomOps all;
  for (const fs::path& path : libraries) {
    for (auto& op : load_from(path)) {
      for (const auto& other : all) {
        if (other->def.domain != op->def.domain || other->def.name != op->def.name || other->def.since != op->def.since) continue;
        fail(ErrorCode::invalid_argument, "libraries '{}' and '{}' both add operator {}.{}, version {}", other->library,
             op->library, op->def.domain, op->def.name, op->def.since);
      }
      all.push_back(std::move(op));
    }
  }
  return all;
}

void bind_custom_ops(Graph& graph, const CustomOps& custom) {
  if (custom.empty()) return;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    Node& node = graph.node(id);
    if (node.removed) continue;
    try {
      if (const auto* op = find(custom, node)) node.custom = *op;
      for (Subgraph& s : node.subgraphs) bind_custom_ops(*s.graph, custom);
    } catch (Error& e) {
      e.add_context("in " + graph.describe(id));
      throw;
    }
  }
}

}  // namespace sdx::session
