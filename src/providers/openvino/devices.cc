#include "providers/openvino/devices.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.h"

namespace sdx::openvino {
namespace {

Diagnosis why_no_gpu(const MachineFacts& m, const LoaderView& view) {
  if (m.intel_gpus.empty() && !m.render_nodes)
    return {"no Intel GPU is on the PCI bus, and there is no /dev/dri", "use device_type=CPU"};
  if (m.intel_gpus.empty()) return {"no Intel GPU is on the PCI bus; OpenVINO uses no other", "use device_type=CPU"};
  if (!m.render_nodes) {
    return {fmt::format("{} is there, but no /dev/dri/renderD* to reach it through", join(m.intel_gpus)),
            "in a container: `docker run --device /dev/dri`"};
  }
  if (find_library("libOpenCL.so.1", view).empty()) {
    return {"the OpenCL loader libOpenCL.so.1 is not found", "install " + package_of("libOpenCL.so.1") + " and intel-opencl-icd"};
  }
  return {fmt::format("OpenVINO does not see {}", join(m.intel_gpus)), "install the package intel-opencl-icd"};
}

Diagnosis why_no_npu(const MachineFacts& m, const LoaderView& view) {
  if (m.npus.empty()) return {"no Intel NPU is found", "use device_type=CPU or GPU"};
  if (find_library("libze_loader.so.1", view).empty()) {
    return {"the Level Zero loader libze_loader.so.1 is not found",
            "install " + package_of("libze_loader.so.1") +
                " and Intel's NPU driver (intel-driver-compiler-npu, intel-level-zero-npu)"};
  }
  return {fmt::format("OpenVINO does not see {}", join(m.npus)),
          "install Intel's NPU driver (intel-driver-compiler-npu, intel-level-zero-npu); in a container: `docker run --device "
          "/dev/accel`"};
}

}  // namespace

Diagnosis missing_device(const std::string& wanted, std::span<const Device> present, const MachineFacts& machine,
                         const LoaderView& view) {
  const std::size_t colon = wanted.find(':');
  const std::string list = colon == std::string::npos ? wanted : wanted.substr(colon + 1);
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string one = list.substr(at, end - at);
    at = end + 1;
    const auto is_it = [&](const Device& d) { return d.name == one || d.name.starts_with(one + ".") || one == d.name + ".0"; };
    if (one == "AUTO" || std::any_of(present.begin(), present.end(), is_it)) continue;
    const std::string kind = one.substr(0, one.find('.'));
    const bool others = std::any_of(present.begin(), present.end(), [&](const Device& d) { return d.name.starts_with(kind); });
    Diagnosis found;
    if (others) {
      found = {"there are only " + join(describe(present)), "choose one of these by device_type"};
    } else if (kind == "GPU") {
      found = why_no_gpu(machine, view);
    } else if (kind == "NPU") {
      found = why_no_npu(machine, view);
    } else {
      found = {"its plugin is not found beside the library", "`pip install openvino` anew"};
    }
    found.reason = fmt::format("OpenVINO has no device {} here: {}", one, found.reason);
    return found;
  }
  return {};
}

std::vector<std::string> describe(std::span<const Device> devices) {
  std::vector<std::string> out;
  for (const Device& d : devices) out.push_back(d.full_name.empty() ? d.name : d.name + ": " + d.full_name);
  return out;
}

}  // namespace sdx::openvino
