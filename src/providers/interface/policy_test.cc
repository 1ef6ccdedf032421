#include "providers/interface/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/suggest.h"
#include "support/errors.h"

namespace sdx {
namespace {

using Names = std::vector<std::string>;

struct Machine {
  MachineFacts facts;
  std::map<std::string, Names> available;  // provider -> devices
};

// Simulated machines: what each vendor's runtime would answer there.
Machine machine(const std::string& name) {
  Machine m;
  m.available["cpu"] = {"CPU"};
  if (name.starts_with("windows")) m.facts.platform = Platform::windows;
  if (name.starts_with("mac")) m.facts.platform = Platform::macos;
  if (name == "linux-nvidia" || name == "windows-nvidia") {
    m.facts.nvidia_gpus = {"NVIDIA RTX"};
    m.available["tensorrt"] = m.available["cuda"] = {"NVIDIA RTX"};
  }
  if (name == "linux-nvidia-no-tensorrt") {
    m.facts.nvidia_gpus = {"NVIDIA RTX"};
    m.available["cuda"] = {"NVIDIA RTX"};
  }
  if (name == "linux-amd") {
    m.facts.amd_gpus = {"AMD Instinct"};
    m.available["migraphx"] = m.available["rocm"] = {"AMD Instinct"};
  }
  if (name == "linux-intel" || name == "windows-intel") {
    m.facts.intel_gpus = {"Intel Arc"};
    m.available["openvino"] = {"CPU", "GPU.0: Intel Arc", "NPU"};
  }
  if (name == "linux-webgpu") {  // a GPU that nothing but WebGPU's plugin reaches
    m.facts.amd_gpus = {"AMD Radeon"};
    m.available["webgpu"] = {"GPU: AMD"};
  }
  if (name == "linux-both") {
    m.facts.intel_gpus = {"Intel Arc"};
    m.available["openvino"] = {"CPU", "GPU.0: Intel Arc"};
    m.available["webgpu"] = {"GPU: Intel"};
  }
  if (name == "linux-simulators") {  // a software driver of Vulkan, and Qualcomm's simulator
    m.facts.render_nodes = true;
    m.available["webgpu"] = m.available["qnn"] = {"CPU: AMD"};
  }
  if (name == "linux-intel-npu") {
    m.facts.npus = {"Intel NPU"};
    m.available["openvino"] = {"CPU", "NPU"};
  }
  if (name == "linux-openvino-cpu") m.available["openvino"] = {"CPU"};
  if (name == "linux-vulkan") m.available["vulkan"] = {"GPU: Radeon"};
  if (name == "linux-vulkan" || name == "linux-webgpu") m.available["webgpu"] = {"GPU"};
  if (name.starts_with("windows") && name != "windows-cpu") m.available["directml"] = {"GPU"};
  if (name == "windows-amd") {
    m.facts.amd_gpus = {"AMD Radeon"};
    m.available["vitisai"] = {"NPU"};
  }
  if (name == "mac-arm") {
    m.facts.arm = true;
    m.available["coreml"] = {"Apple Neural Engine"};
  }
  for (const auto& [provider, devices] : std::map<std::string, Names>(m.available)) m.available["ort:" + provider] = devices;
  return m;
}

PolicyInput input_on(const std::string& name, Names asked = {}) {
  PolicyInput in;
  const Machine m = machine(name);
  in.machine = m.facts;
  in.asked = std::move(asked);
  in.probe = [m](const std::string& provider) {
    ProviderInfo info;
    info.name = provider;
    const auto it = m.available.find(provider);
    info.available = it != m.available.end();
    if (info.available) info.devices = it->second;
    if (!info.available) info.reason = "not on this machine";
    return info;
  };
  return in;
}

std::string text(const Chain& chain) {
  Names names;
  for (const ChainLink& l : chain.links) names.push_back(l.provider + (l.device.empty() ? "" : "(" + l.device + ")"));
  return join(names, " ");
}

TEST(Policy, WebGpuIsNotEvenLookedForWhereItIsNotNeeded) {
  const auto looked_at = [](const std::string& machine, Names asked) {
    PolicyInput in = input_on(machine, std::move(asked));
    auto seen = std::make_shared<Names>();
    in.probe = [seen, probe = in.probe](const std::string& provider) {
      seen->push_back(provider);
      return probe(provider);
    };
    decide_chain(in);
    return std::count(seen->begin(), seen->end(), "webgpu");
  };
  EXPECT_EQ(looked_at("linux-cpu", {}), 0);
  EXPECT_EQ(looked_at("linux-both", {"gpu"}), 0);
  EXPECT_EQ(looked_at("linux-intel-npu", {"npu", "gpu"}), 1);  // the NPU stands in for no GPU
  EXPECT_EQ(looked_at("linux-webgpu", {}), 1);
  EXPECT_EQ(looked_at("linux-cpu", {"gpu"}), 1);  // a driver without a device on the bus, under WSL
}

TEST(Policy, TableOfPlatformsAndIntents) {
  struct Row {
    const char* machine;
    const char* asked;
    const char* chain;
  };
  const Row rows[] = {
      {"linux-cpu", "auto", "cpu"},
      {"linux-cpu", "gpu", "cpu"},
      {"linux-cpu", "npu", "cpu"},
      {"linux-cpu", "cuda", "cpu"},
      {"linux-cpu", "tensorrt", "cpu"},
      {"linux-cpu", "rocm", "cpu"},
      {"linux-cpu", "directml", "cpu"},
      {"linux-cpu", "metal", "cpu"},
      {"linux-cpu", "vulkan", "cpu"},
      {"linux-vulkan", "vulkan", "vulkan cpu"},  // and no webgpu behind it
      {"linux-vulkan", "webgpu", "webgpu cpu"},
      {"linux-vulkan", "gpu", "vulkan cpu"},
      {"linux-vulkan", "auto", "cpu"},
      {"linux-webgpu", "vulkan", "webgpu cpu"},
      {"linux-nvidia", "auto", "tensorrt cuda cpu"},
      {"linux-nvidia", "gpu", "tensorrt cuda cpu"},
      {"linux-nvidia", "npu", "cpu"},
      {"linux-nvidia", "cuda", "cuda cpu"},
      {"linux-nvidia", "tensorrt", "tensorrt cuda cpu"},
      {"linux-nvidia", "cpu", "cpu"},
      {"linux-nvidia", "rocm", "cpu"},
      {"linux-nvidia-no-tensorrt", "auto", "cuda cpu"},
      {"linux-nvidia-no-tensorrt", "tensorrt", "cuda cpu"},
      {"linux-amd", "auto", "migraphx rocm cpu"},
      {"linux-amd", "gpu", "migraphx rocm cpu"},
      {"linux-amd", "rocm", "migraphx rocm cpu"},
      {"linux-amd", "migraphx", "migraphx cpu"},
      {"linux-amd", "cuda", "cpu"},
      {"linux-intel", "auto", "openvino cpu"},
      {"linux-intel", "gpu", "openvino(GPU) cpu"},
      {"linux-intel", "npu", "openvino(NPU) cpu"},
      {"linux-intel", "openvino", "openvino cpu"},
      {"linux-openvino-cpu", "auto", "cpu"},  // our own engine uses that CPU already
      {"linux-openvino-cpu", "gpu", "cpu"},
      {"linux-openvino-cpu", "npu", "cpu"},
      {"linux-openvino-cpu", "openvino", "openvino cpu"},  // asked for by name it counts
      {"linux-webgpu", "auto", "webgpu cpu"},
      {"linux-webgpu", "gpu", "webgpu cpu"},
      {"linux-webgpu", "vulkan", "webgpu cpu"},
      {"linux-both", "auto", "openvino cpu"},  // one provider for one GPU
      {"linux-both", "gpu", "openvino(GPU) cpu"},
      {"linux-both", "webgpu", "webgpu cpu"},
      {"linux-simulators", "auto", "cpu"},
      {"linux-simulators", "gpu", "cpu"},
      {"linux-simulators", "npu", "cpu"},
      {"linux-simulators", "webgpu", "webgpu cpu"},  // named, they count
      {"linux-simulators", "vulkan", "cpu"},
      {"linux-simulators", "qnn", "qnn cpu"},
      {"windows-cpu", "auto", "cpu"},
      {"windows-nvidia", "auto", "tensorrt cuda directml cpu"},
      {"windows-nvidia", "gpu", "tensorrt cuda directml cpu"},
      {"windows-nvidia", "directml", "directml cpu"},
      {"windows-intel", "auto", "directml openvino cpu"},
      {"windows-intel", "npu", "directml openvino(NPU) cpu"},
      {"windows-amd", "auto", "directml vitisai cpu"},
      {"windows-amd", "gpu", "directml cpu"},
      {"windows-amd", "npu", "vitisai directml cpu"},
      {"mac-arm", "auto", "coreml cpu"},
      {"mac-arm", "gpu", "coreml cpu"},
      {"mac-arm", "metal", "coreml cpu"},
      {"mac-arm", "npu", "cpu"},
      {"mac-intel", "auto", "cpu"},
  };
  for (const Row& r : rows) {
    EXPECT_EQ(text(decide_chain(input_on(r.machine, {r.asked}))), r.chain) << r.asked << " on " << r.machine;
  }
}

TEST(Policy, SeveralWordsReachEachDeviceOfAProvider) {
  const auto chain = [](const std::string& machine, Names asked) { return decide_chain(input_on(machine, std::move(asked))); };
  EXPECT_EQ(text(chain("linux-intel", {"gpu", "npu"})), "openvino(AUTO:GPU,NPU) cpu");
  EXPECT_EQ(text(chain("linux-intel", {"npu", "gpu"})), "openvino(AUTO:NPU,GPU) cpu");
  EXPECT_EQ(text(chain("linux-intel", {"npu", "gpu", "npu"})), "openvino(AUTO:NPU,GPU) cpu");
  EXPECT_EQ(text(chain("linux-intel", {"openvino", "npu"})), "openvino cpu");  // its own default comes first
  EXPECT_EQ(text(chain("linux-openvino-cpu", {"npu", "openvino"})), "openvino cpu");
  const Chain npu_only = chain("linux-intel-npu", {"gpu", "npu"});
  EXPECT_EQ(text(npu_only), "openvino(NPU) cpu");
  Names missing;
  for (const ChainGap& g : npu_only.gaps) {
    if (g.asked_for) missing.push_back(g.provider + ": " + g.reason);
  }
  const std::string openvino_gpu = "openvino: it has no GPU here; its devices: CPU, NPU";
  EXPECT_EQ(std::count(missing.begin(), missing.end(), openvino_gpu), 1) << join(missing);
  // A provider that is not there is said to be missing once.
  int openvino = 0;
  for (const ChainGap& g : chain("linux-cpu", {"gpu", "npu"}).gaps) openvino += g.provider == "openvino" ? 1 : 0;
  EXPECT_EQ(openvino, 1);
}

TEST(Policy, EmptyMeansAutoAndNobodyIsWarned) {
  const Chain chain = decide_chain(input_on("linux-cpu"));
  EXPECT_EQ(text(chain), "cpu");
  for (const ChainGap& g : chain.gaps) EXPECT_FALSE(g.asked_for) << g.provider;
}

TEST(Policy, WhatNobodyAskedForIsNotLookedForWithoutItsHardware) {
  PolicyInput in = input_on("linux-cpu");
  Names probed;
  const auto answer = in.probe;
  in.probe = [&](const std::string& name) {
    probed.push_back(name);
    return answer(name);
  };
  decide_chain(in);
  EXPECT_EQ(join(probed, " "), "cpu");
  probed.clear();
  in.asked = {"cuda"};
  decide_chain(in);
  EXPECT_EQ(join(probed, " "), "cuda");
}

TEST(Policy, TheUsersOrderWins) {
  EXPECT_EQ(text(decide_chain(input_on("linux-nvidia", {"CUDAExecutionProvider", "TRT"}))), "cuda tensorrt cpu");
  EXPECT_EQ(text(decide_chain(input_on("linux-nvidia", {"cpu", "cuda"}))), "cpu cuda");
  EXPECT_EQ(text(decide_chain(input_on("linux-nvidia-no-tensorrt", {"tensorrt", "cuda", "cpu"}))), "cuda cpu");
  EXPECT_EQ(text(decide_chain(input_on("linux-nvidia", {"cuda", "cuda"}))), "cuda cpu");
  EXPECT_EQ(text(decide_chain(input_on("linux-nvidia", {"ort:cuda", "ort:cpu"}))), "ort:cuda ort:cpu cpu");
}

TEST(Policy, GapsCarryTheReason) {
  const Chain chain = decide_chain(input_on("linux-cpu", {"cuda"}));
  ASSERT_EQ(chain.gaps.size(), 1U);
  EXPECT_EQ(chain.gaps[0].provider, "cuda");
  EXPECT_EQ(chain.gaps[0].reason, "not on this machine");
  EXPECT_TRUE(chain.gaps[0].asked_for);
  const Chain npu = decide_chain(input_on("linux-openvino-cpu", {"npu"}));
  ASSERT_EQ(npu.gaps.size(), 4U);
  EXPECT_EQ(npu.gaps[3].reason, "it has no NPU here; its devices: CPU");
  EXPECT_TRUE(npu.gaps[0].asked_for);  // the intent found nothing: that is worth a warning
}

TEST(Policy, AnIntentThatFindsNothingIsNeverSilent) {
  const auto warned = [](const std::string& where, Names asked, Runtime runtime = Runtime::automatic) {
    PolicyInput in = input_on(where, std::move(asked));
    in.runtime = runtime;
    Names names;
    for (const ChainGap& g : decide_chain(in).gaps) {
      if (g.asked_for) names.push_back(g.provider);
    }
    return join(names, " ");
  };
  EXPECT_EQ(warned("linux-cpu", {"npu"}), "vitisai qnn directml openvino");
  EXPECT_EQ(warned("linux-cpu", {"npu", "cpu"}), "vitisai qnn directml openvino");  // the CPU behind it does not hide it
  EXPECT_EQ(warned("linux-openvino-cpu", {"npu"}, Runtime::ort), "ort:vitisai ort:qnn ort:directml ort:openvino");
  EXPECT_EQ(warned("linux-nvidia-no-tensorrt", {"gpu"}), "");  // found one: enough
  EXPECT_EQ(warned("linux-nvidia", {"gpu", "npu"}), "openvino vitisai qnn directml");
  EXPECT_EQ(warned("linux-cpu", {"rocm"}), "migraphx rocm");
}

TEST(Policy, Strict) {
  const auto broken = [](const std::string& where, Names asked, Runtime runtime = Runtime::automatic) {
    PolicyInput in = input_on(where, std::move(asked));
    in.strict = true;
    in.runtime = runtime;
    return !decide_chain(in).broken.empty();
  };
  EXPECT_TRUE(broken("linux-cpu", {"cuda"}));
  EXPECT_TRUE(broken("linux-cpu", {"gpu"}));
  EXPECT_TRUE(broken("linux-cpu", {"npu"}));
  EXPECT_TRUE(broken("linux-nvidia-no-tensorrt", {"tensorrt"}));
  EXPECT_TRUE(broken("linux-nvidia-no-tensorrt", {"tensorrt", "cuda"}));
  EXPECT_TRUE(broken("linux-cpu", {"cuda"}, Runtime::native));
  EXPECT_FALSE(broken("linux-cpu", {"auto"}));
  EXPECT_FALSE(broken("linux-cpu", {"cpu"}));
  EXPECT_FALSE(broken("linux-nvidia-no-tensorrt", {"gpu"}));
  EXPECT_FALSE(broken("linux-nvidia", {"cuda"}));
  EXPECT_FALSE(broken("linux-nvidia-no-tensorrt", {"cuda", "tensorrt"}));  // what stands first is there
}

TEST(Policy, Runtimes) {
  PolicyInput in = input_on("linux-nvidia", {"cuda"});
  in.runtime = Runtime::native;
  const Chain native = decide_chain(in);
  EXPECT_EQ(text(native), "cpu");
  ASSERT_EQ(native.gaps.size(), 1U);
  EXPECT_NE(native.gaps[0].reason.find("native"), std::string::npos);

  in.runtime = Runtime::ort;
  EXPECT_EQ(text(decide_chain(in)), "ort:cuda ort:cpu cpu");
  in.asked = {};
  EXPECT_EQ(text(decide_chain(in)), "ort:tensorrt ort:cuda ort:cpu cpu");

  // Asked for the runtime alone, and it is not there: said, and run natively; an error if strict.
  in.probe = [](const std::string& name) {
    ProviderInfo info;
    info.available = name == "cpu";
    info.reason = "no library";
    return info;
  };
  const Chain none = decide_chain(in);
  EXPECT_EQ(text(none), "cpu");
  EXPECT_TRUE(none.gaps.back().asked_for);
  in.strict = true;
  EXPECT_FALSE(decide_chain(in).broken.empty());
}

TEST(Policy, Configuration) {
  PolicyInput in = input_on("linux-nvidia");
  in.provider_priority = {"cuda", "TensorrtExecutionProvider"};
  EXPECT_EQ(text(decide_chain(in)), "cuda tensorrt cpu");
  in.provider_priority = {};
  in.platform_defaults = {{"linux_amd", "migraphx"}, {"linux_nvidia", "cuda"}};
  EXPECT_EQ(text(decide_chain(in)), "cuda tensorrt cpu");
  in.provider_priority = {"cpu"};
  EXPECT_EQ(text(decide_chain(in)), "cuda cpu");
  in.asked = {"tensorrt"};  // what a user asks for beats what is configured
  EXPECT_EQ(text(decide_chain(in)), "tensorrt cuda cpu");

  PolicyInput amd = input_on("linux-amd");
  amd.platform_defaults = {{"linux_amd", "rocm"}};
  EXPECT_EQ(text(decide_chain(amd)), "rocm migraphx cpu");
  amd.platform_defaults = {{"linux_amd", "cudda"}};
  EXPECT_THROW(decide_chain(amd), Error);
}

TEST(Policy, UnknownNames) {
  testing::expect_error([&] { decide_chain(input_on("linux-cpu", {"cudda"})); }, {"did you mean 'cuda'", "openvino"});
}

}  // namespace
}  // namespace sdx
