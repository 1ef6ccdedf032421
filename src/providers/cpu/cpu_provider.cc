#include "providers/cpu/cpu_provider.h"

#include <cstdlib>
#include <thread>

#include "base/cpu_features.h"
#include "base/error.h"
#include "ops/op.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/tune.h"

namespace sdx::cpu {
namespace {

class CpuProvider : public Provider {
 public:
  std::string_view name() const override { return "cpu"; }

  ProviderInfo probe(const ProviderSettings&, Effort) const override {
    ProviderInfo info;
    info.name = "cpu";
    info.available = true;
    const std::string processor = processor_name();
    info.devices = {fmt::format("{} ({} threads)", processor.empty() ? "CPU" : processor, std::thread::hardware_concurrency())};
    return info;
  }

  std::vector<Claim> claim(const Graph& graph, const ProviderSettings&) const override {
    std::vector<Claim> claims(graph.nodes().size());
    for (NodeId id = 0; id < graph.nodes().size(); ++id) {
      const Node& node = graph.node(id);
      if (node.removed) continue;
      claims[id].taken = ops::find(node) != nullptr;
      if (!claims[id].taken) claims[id].reason = fmt::format("no operator {} (opset {})", node.op_type, node.version);
    }
    return claims;
  }

  Step lower(const Graph& graph, NodeId id, const LowerOptions& options) const override {
    static const char* const only = std::getenv("SDX_CPU_KERNEL");
    const Node& node = graph.node(id);
    Step step;
    for (const KernelEntry* entry : kernel_table().find(node.domain, node.op_type)) {
      if (only != nullptr && entry->name != only) continue;
      const std::string measured = options.tune ? tuned_kernel(graph, id, *entry, options.tuned, step.timed) : "";
      LowerContext context(graph, id, measured);
      step.kernel = entry->make(context);
      if (step.kernel) return step;
      step.refused.push_back({entry->name, context.reason()});
    }
    step.kernel = make_reference(node);
    return step;
  }
};

}  // namespace

const Provider& provider() {
  static const CpuProvider instance;
  return instance;
}

}  // namespace sdx::cpu
