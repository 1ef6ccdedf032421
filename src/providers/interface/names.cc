#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text/ascii.h"
#include "providers/interface/policy.h"
#include "providers/interface/provider.h"

namespace sdx {
namespace {

// Tables are never destroyed: a compiler that was left behind may still be at work when the process ends.
const std::vector<ProviderName>& names() {
  static const auto& table = *new const std::vector<ProviderName>{
      {"cpu", "CPUExecutionProvider", "any CPU", {}, "all"},
      {"cuda", "CUDAExecutionProvider", "NVIDIA GPU", {}, "Linux, Windows"},
      {"tensorrt", "TensorrtExecutionProvider", "NVIDIA GPU", {"trt"}, "Linux, Windows"},
      {"rocm", "ROCMExecutionProvider", "AMD GPU", {}, "Linux"},
      {"migraphx", "MIGraphXExecutionProvider", "AMD Instinct, Radeon", {}, "Linux"},
      {"coreml", "CoreMLExecutionProvider", "Apple silicon", {}, "macOS"},
      {"directml", "DmlExecutionProvider", "any DirectX 12 GPU or NPU", {"dml", "directmlexecutionprovider"}, "Windows"},
      {"openvino", "OpenVINOExecutionProvider", "Intel CPU, GPU, NPU", {}, "all"},
      {"vitisai", "VitisAIExecutionProvider", "AMD Ryzen AI NPU", {}, "Windows"},
      {"qnn", "QNNExecutionProvider", "Qualcomm NPU", {}, "Linux, Windows, Android"},
      {"nnapi", "NnapiExecutionProvider", "Android accelerators", {}, "Android"},
      {"xnnpack", "XnnpackExecutionProvider", "any CPU", {}, "all"},
      {"webgpu", "WebGpuExecutionProvider", "any GPU with WebGPU", {}, "all"},
      {"vulkan", "VulkanExecutionProvider", "any GPU with Vulkan", {}, "Linux"},
      {"dnnl", "DnnlExecutionProvider", "x86 and ARM CPU", {}, "Linux, Windows"},
      {"azure", "AzureExecutionProvider", "remote", {}, "all"},
      {"fault", "FaultExecutionProvider", "none: fails on demand", {}, "all"},  // the last: see test_provider_enabled()
  };
  return table;
}

struct Intent {
  std::string_view name;
  std::vector<std::string> chain;
};

const std::vector<Intent>& intents() {
  static const auto& table = *new const std::vector<Intent>{
      {"auto", auto_order(this_platform(), true)},
      {"gpu", gpu_order(this_platform())},
      {"npu", {"vitisai", "qnn", "directml", "openvino"}},
      {"metal", {"coreml"}},
      {"vulkan", {"vulkan", "webgpu"}},
      {"tensorrt", {"tensorrt", "cuda"}},
      {"rocm", {"migraphx", "rocm"}},
  };
  return table;
}

}  // namespace

bool test_provider_enabled() {
  const char* value = std::getenv("SDX_TEST_PROVIDER");
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

std::span<const ProviderName> provider_names() {
  const std::span<const ProviderName> all(names());
  return test_provider_enabled() ? all : all.first(all.size() - 1);
}

std::string canonical_provider(std::string_view text) {
  const std::string wanted = ascii_lower(text);
  if (wanted.starts_with("ort:") && wanted.size() > 4) return "ort:" + canonical_provider(wanted.substr(4));
  std::vector<std::string> known;
  for (const ProviderName& p : provider_names()) {
    if (wanted == p.name || wanted == ascii_lower(p.ort_name)) return p.name;
    if (std::find(p.aliases.begin(), p.aliases.end(), wanted) != p.aliases.end()) return p.name;
    known.push_back(p.name);
  }
  for (const Intent& i : intents()) {
    if (wanted == i.name) return std::string(i.name);
    if (std::find(known.begin(), known.end(), i.name) == known.end()) known.emplace_back(i.name);
  }
  const std::string near = closest(wanted, known);
  fail(ErrorCode::invalid_argument, "unknown provider '{}'{} Known: {}", text,
       near.empty() ? "." : "; did you mean '" + near + "'?", join(known));
}

std::vector<std::string> provider_chain(std::span<const std::string> asked, bool strict) {
  std::vector<std::string> chain;
  const auto add = [&](const std::string& name) {
    if (std::find(chain.begin(), chain.end(), name) == chain.end()) chain.push_back(name);
  };
  for (const std::string& text : asked) {
    const std::string name = canonical_provider(text);
    const auto intent = std::find_if(intents().begin(), intents().end(), [&](const Intent& i) { return i.name == name; });
    // In an explicit list each name means only itself; alone, or as an intent, it means its chain.
    const bool expand = intent != intents().end() && (asked.size() == 1 || name == "auto" || name == "gpu" || name == "npu" ||
                                                      name == "metal" || name == "vulkan");
    if (expand) {
      for (const std::string& p : intent->chain) add(p);
      if (!strict || name == "auto") add("cpu");
    } else {
      add(name);
    }
  }
  if (!strict || chain.empty()) add("cpu");
  return chain;
}

}  // namespace sdx
