#include "providers/interface/diagnose.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"

namespace sdx {
namespace {

bool is(const ProviderName& p, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), p.name) != names.end();
}

class Findings {
 public:
  explicit Findings(bool quick) : quick_(quick) {}
  // Nothing more is wanted.
  bool enough() const { return quick_ && !reasons_.empty(); }
  void add(std::string reason, std::string hint) {
    if (enough()) return;
    reasons_.push_back(std::move(reason));
    if (hint_.empty()) hint_ = std::move(hint);
  }
  Diagnosis take() { return {join(reasons_, "; "), std::move(hint_)}; }

 private:
  bool quick_;
  std::vector<std::string> reasons_;
  std::string hint_;
};

constexpr const char* kContainer = "in a container, start it with the GPU: `docker run --gpus all`";

void check_nvidia(const MachineFacts& m, const RuntimeFacts& r, Findings& out) {
  if (m.platform != Platform::linux_os) {
    if (m.nvidia_gpus.empty()) out.add("no NVIDIA GPU is found", "use a machine with an NVIDIA GPU");
    return;
  }
  const bool driver = !m.nvidia_driver.empty();
  if (m.nvidia_gpus.empty() && !m.nvidia_nodes && !driver) {
    out.add("no NVIDIA GPU: none on the PCI bus, no /dev/nvidia0, no driver in the kernel (/proc/driver/nvidia/version)",
            fmt::format("use a machine with an NVIDIA GPU and its driver; {}", kContainer));
    return;
  }
  if (!driver && !m.nvidia_nodes) {
    out.add(fmt::format("the NVIDIA driver is missing: {} is there, but /proc/driver/nvidia/version is not",
                        m.nvidia_gpus.empty() ? "a GPU" : join(m.nvidia_gpus)),
            "install the NVIDIA driver (the package nvidia-driver) and restart, or `modprobe nvidia`");
  } else if (!m.nvidia_nodes) {
    out.add(fmt::format("NVIDIA driver {} is loaded, but there is no device /dev/nvidia0", m.nvidia_driver),
            fmt::format("{}; otherwise `nvidia-modprobe`", kContainer));
  }
  if (m.cuda_driver_library.empty()) {
    out.add("the driver's library libcuda.so.1 is not found", "install " + package_of("libcuda.so.1"));
  }
  const int cuda = r.provider_library.empty() ? 0 : cuda_of(r.provider_library);
  const std::string oldest = oldest_driver(cuda);
  if (driver && !oldest.empty() && version_below(m.nvidia_driver, oldest)) {
    out.add(fmt::format("NVIDIA driver {} is too old: {} needs CUDA {}, and that needs driver {} or newer", m.nvidia_driver,
                        r.provider_library_name, cuda, oldest),
            fmt::format("update the driver to {} or newer, or take a build for an older CUDA", oldest));
  }
}

void check_amd_gpu(const MachineFacts& m, Findings& out) {
  if (m.amd_gpus.empty() && !m.amd_node) {
    out.add("no AMD GPU: none on the PCI bus, no /dev/kfd", "use a machine with an AMD GPU that ROCm supports");
  } else if (!m.amd_node) {
    out.add(
        fmt::format("the compute driver is missing: {} is there, but /dev/kfd is not", join(m.amd_gpus)),
        "install the kernel driver (the package amdgpu-dkms); in a container: `docker run --device /dev/kfd --device /dev/dri`");
  } else if (!m.render_nodes) {
    out.add("no /dev/dri/renderD* to reach the AMD GPU through",
            "in a container: `docker run --device /dev/kfd --device /dev/dri`");
  }
}

void check_hardware(const ProviderName& p, const MachineFacts& m, const RuntimeFacts& r, Findings& out) {
  if (is(p, {"cuda", "tensorrt"})) check_nvidia(m, r, out);
  if (m.platform == Platform::linux_os && is(p, {"rocm", "migraphx"})) check_amd_gpu(m, out);
  if (p.name == "coreml" && !m.arm) out.add("Core ML's accelerators need Apple silicon; this is an Intel Mac", "use cpu");
  if (p.name == "vitisai" && m.npus.empty()) out.add("no AMD Ryzen AI NPU is found", "use a machine with a Ryzen AI processor");
}

void check_runtime(const ProviderName& p, const RuntimeFacts& r, const LoaderView& view, Findings& out) {
  const std::string package = ort_package(p.name);
  if (r.library.empty() || !r.library_problem.empty()) {
    out.add(
        fmt::format("{}'s library {}", r.runtime,
                    r.library_problem.empty() ? "is not found"
                                              : (r.library.empty() ? "is not found: " : "cannot be used: ") + r.library_problem),
        r.runtime == "ONNX Runtime"
            ? fmt::format("`pip install {}`, or set SDX_ORT_LIB to the library", package.empty() ? "onnxruntime" : package)
            : "");
    return;
  }
  const bool listed = std::find(r.built_in.begin(), r.built_in.end(), p.ort_name) != r.built_in.end();
  if (!listed) {
    out.add(fmt::format("not built in: {} ({} {}) has no {}; it has {}", r.library, r.runtime, r.version, p.ort_name,
                        r.built_in.empty() ? "none" : join(r.built_in)),
            package.empty() ? std::string("build ONNX Runtime with this provider and set SDX_ORT_LIB to its library")
                            : fmt::format("`pip install {}`", package));
    return;
  }
  if (r.provider_library_name.empty()) return;
  if (r.provider_library.empty()) {
    out.add(fmt::format("{} is not found beside {}", r.provider_library_name, r.library),
            fmt::format("`pip install {}` anew", package));
    return;
  }
  const LibraryFinding finding = explain_library(r.provider_library, view);
  if (finding.loadable) return;
  std::string hint = finding.hint;
  if (p.name == "cuda" && hint.find("CUDA") != std::string::npos)
    hint += ". All at once: `pip install onnxruntime-gpu[cuda,cudnn]`";
  out.add(finding.reason, std::move(hint));
}

}  // namespace

int cuda_of(const std::string& library) {
  try {
    for (const std::string& soname : read_elf(std::filesystem::path(library)).needed) {
      const VersionedName v = split_soname(soname);
      // These two count as CUDA itself does.
      if ((v.stem == "libcudart.so" || v.stem == "libcublas.so" || v.stem == "libcublasLt.so") && v.major > 0) return v.major;
    }
  } catch (const Error&) {  // said elsewhere: explain_library
  }
  return 0;
}

std::string oldest_driver(int cuda) {
  switch (cuda) {
    case 11: return "450.80.02";
    case 12: return "525.60.13";
    case 13: return "580.65.06";
    default: return "";
  }
}

std::string ort_package(std::string_view provider) {
  if (provider == "cuda" || provider == "tensorrt") return "onnxruntime-gpu";
  if (provider == "openvino") return "onnxruntime-openvino";
  if (provider == "directml") return "onnxruntime-directml";
  if (provider == "migraphx") return "onnxruntime-migraphx";
  if (provider == "rocm") return "onnxruntime-rocm";
  if (provider == "qnn") return "onnxruntime onnxruntime-qnn";  // plugins
  if (provider == "webgpu") return "onnxruntime onnxruntime-ep-webgpu";
  if (provider == "cpu" || provider == "coreml" || provider == "azure") return "onnxruntime";
  return "";
}

Diagnosis diagnose(const ProviderName& p, const MachineFacts& machine, const RuntimeFacts& runtime, const LoaderView& view,
                   bool quick) {
  Findings out(quick);
  const std::string_view here = platform_name(machine.platform);
  if (p.platforms != "all" && p.platforms.find(here) == std::string::npos) {
    out.add(fmt::format("wrong platform: {} exists on {} only, this is {}", p.ort_name, p.platforms, here),
            "use one of the providers for " + std::string(here) + ": `sdx providers`");
    return out.take();
  }
  if (p.name == "azure") {
    out.add(
        "it only calls models in Azure's cloud through its own operators; all other nodes would run on ONNX Runtime's CPU "
        "kernels",
        "use cpu, or ort:cpu for ONNX Runtime's kernels");
    return out.take();
  }
  check_hardware(p, machine, runtime, out);
  if (!out.enough()) check_runtime(p, runtime, view, out);
  return out.take();
}

}  // namespace sdx
