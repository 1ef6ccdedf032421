#include "providers/vulkan/vulkan_provider.h"

#include <algorithm>

#include "base/error.h"
#include "providers/vulkan/devices.h"
#include "providers/vulkan/operators.h"
#include "providers/vulkan/region_kernel.h"

namespace sdx::vulkan {
namespace {

constexpr const char* kInstallLoader =
    "install Vulkan's loader and a driver: on Debian, libvulkan1 and mesa-vulkan-drivers, or NVIDIA's driver";

std::shared_ptr<const Gpu> open_gpu(const ProviderSettings& settings) {
  const Settings wanted = settings_of(settings);
  const std::vector<DeviceFacts> devices = list_devices();
  const Choice choice = choose_device(devices, wanted);
  if (!choice.reason.empty()) fail(ErrorCode::provider_unavailable, "{}", choice.reason);
  return std::make_shared<const Gpu>(choice.index, devices[choice.index], settings.cache, wanted.memory_limit);
}

class VulkanProvider : public Provider {
 public:
  std::string_view name() const override { return "vulkan"; }
  bool compiles_regions() const override { return true; }
  bool wants_optimized() const override { return true; }
  void check_options(const ProviderSettings& settings) const override { settings_of(settings); }

  ProviderInfo probe(const ProviderSettings& settings, Effort) const override {
    ProviderInfo info;
    info.name = name();
    try {
      const Settings wanted = settings_of(settings);
      const std::vector<DeviceFacts> devices = list_devices();
      for (const DeviceFacts& d : devices) info.devices.push_back(describe(d));
      Choice choice = choose_device(devices, wanted);
      info.accelerator =
          std::any_of(devices.begin(), devices.end(), [](const DeviceFacts& d) { return d.type != DeviceType::cpu; });
      info.reason = std::move(choice.reason);
      info.hint = std::move(choice.hint);
      if (!devices.empty()) info.version = fmt::format("{}.{}", devices[choice.index].api_major, devices[choice.index].api_minor);
    } catch (const Error& e) {
      info.reason = e.message();
      if (e.code() == ErrorCode::provider_unavailable) info.hint = kInstallLoader;
    }
    info.available = info.reason.empty();
    return info;
  }

  std::vector<Claim> claim(const Graph& graph, const ProviderSettings&) const override {
    const std::vector<std::string> reasons = refusals(graph);
    std::vector<Claim> claims(reasons.size());
    for (NodeId id = 0; id < claims.size(); ++id) claims[id] = {reasons[id].empty(), reasons[id]};
    return claims;
  }

  // What the host knew of the whole graph it may not know of a part of it: the nodes concerned are refused.
  RegionResult compile(const Region& region, const ProviderSettings& settings) const override {
    RegionResult result;
    const Graph& graph = *region.graph;
    const std::vector<std::string> reasons = refusals(graph);
    for (NodeId id = 0; id < reasons.size(); ++id) {
      if (!reasons[id].empty()) result.refused.emplace_back(id, reasons[id]);
    }
    // Nothing but extents: no work for a device.
    const std::vector<bool> on_host = values_on_host(graph);
    const bool idle =
        std::all_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& n) { return runs_on_host(n, on_host); });
    if (result.refused.empty() && idle) {
      for (NodeId id = 0; id < graph.nodes().size(); ++id) result.refused.emplace_back(id, "it only computes extents");
    }
    if (result.refused.empty()) result.kernel = make_region_kernel(graph, open_gpu(settings));
    return result;
  }
};

}  // namespace

const Provider* find(std::string_view name) {
  static const VulkanProvider& instance = *new const VulkanProvider;
  return name == "vulkan" ? &instance : nullptr;
}

}  // namespace sdx::vulkan
