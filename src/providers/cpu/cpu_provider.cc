#include "providers/cpu/cpu_provider.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/error.h"
#include "base/suggest.h"
#include "base/system/control_group.h"
#include "base/system/cpu_features.h"
#include "kernels/cpu/conv/blocked/blocked_layout.h"
#include "ops/custom.h"
#include "ops/op.h"
#include "providers/cpu/custom_kernel.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/layout/block_channels.h"
#include "providers/cpu/layout/channels_last.h"
#include "providers/cpu/layout/join_transposes.h"
#include "providers/cpu/tune.h"

namespace sdx::cpu {
namespace {

bool blocked(Graph& graph) { return block_channels(graph, channel_block()); }

constexpr Pass kPasses[] = {
    // Before block-channels, which would take these convolutions between transpositions.
    {"channels-last", channels_last, "convolves channels where they lie last"},
    {"block-channels", blocked, "keeps convolution networks in blocks of channels that fill vectors"},
    {"join-transposes", join_transposes, "lets products read transposed matrices in place"},
};

// SDX_CPU_KERNEL; null: all kernels are offered. Throws Error(invalid_argument) for one that there is not.
const char* kernel_of_environment() {
  const char* const only = std::getenv("SDX_CPU_KERNEL");
  if (only == nullptr || *only == '\0') return nullptr;
  std::vector<std::string> names{"reference"};
  for (const KernelEntry& entry : kernel_table().all()) names.push_back(entry.name);
  if (std::find(names.begin(), names.end(), only) != names.end()) return only;
  const std::string near = closest(only, names);
  fail(ErrorCode::invalid_argument, "SDX_CPU_KERNEL: there is no kernel '{}'{}; `sdx explain` shows the kernels of a model", only,
       near.empty() ? "" : ", did you mean '" + near + "'?");
}

class CpuProvider : public Provider {
 public:
  std::string_view name() const override { return "cpu"; }

  ProviderInfo probe(const ProviderSettings&, Effort) const override {
    ProviderInfo info;
    info.name = "cpu";
    info.available = true;
    const std::string processor = processor_name();
    info.devices = {fmt::format("{} ({} threads, {})", processor.empty() ? "CPU" : processor, usable_cpus(), cpu_sets())};
    return info;
  }

  void check_options(const ProviderSettings& settings) const override {
    const std::vector<std::string> known(ignored_options().begin(), ignored_options().end());
    for (const auto& [key, value] : settings.options) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      const std::string near = closest(key, known);
      fail(ErrorCode::invalid_argument, "provider 'cpu' has no option '{}'{} Accepted, without effect: {}", key,
           near.empty() ? "." : "; did you mean '" + near + "'?", join(known));
    }
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
    static const char* const only = kernel_of_environment();
    const Node& node = graph.node(id);
    Step step;
    if (node.custom && node.custom->make != nullptr) {
      step.kernel = make_runner(graph, node);
      return step;
    }
    for (const KernelEntry* entry : kernel_table().find(node.domain, node.op_type)) {
      if (only != nullptr && entry->name != only) continue;
      const std::string measured = options.tune ? tuned_kernel(graph, id, *entry, options.tuned, step.timed) : "";
      LowerContext context(graph, id, options.packs, measured);
      step.kernel = entry->make(context);
      if (step.kernel) return step;
      step.refused.push_back({entry->name, context.reason()});
    }
    step.kernel = make_reference(node);
    return step;
  }

  std::span<const Pass> passes() const override { return kPasses; }
};

}  // namespace

const Provider& provider() {
  static const CpuProvider instance;
  return instance;
}

const Provider* find(std::string_view name) { return name == "cpu" ? &provider() : nullptr; }

std::span<const std::string_view> ignored_options() {
  static constexpr std::array<std::string_view, 8> kNames{"arena_extend_strategy",
                                                          "enable_cpu_mem_arena",
                                                          "initial_chunk_size_bytes",
                                                          "initial_growth_chunk_size_bytes",
                                                          "max_dead_bytes_per_chunk",
                                                          "max_power_of_two_extend_bytes",
                                                          "max_mem",
                                                          "use_arena"};
  return kNames;
}

}  // namespace sdx::cpu
