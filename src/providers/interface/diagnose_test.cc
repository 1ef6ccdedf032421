#include "providers/interface/diagnose.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/system/mapped_file.h"
#include "support/elf.h"
#include "support/temporary_folder.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

const ProviderName& named(const std::string& name) {
  for (const ProviderName& p : provider_names()) {
    if (p.name == name) return p;
  }
  throw std::out_of_range(name);
}

class Diagnose : public ::testing::Test {
 protected:
  Diagnose() {
    fs::create_directories(folder / "lib");
    view.system = {(folder / "lib").string()};
    nvidia.nvidia_gpus = {"NVIDIA RTX"};
    nvidia.nvidia_nodes = true;
    nvidia.nvidia_driver = "535.104.05";
    nvidia.cuda_driver_library = "/usr/lib/libcuda.so.1";
    ort.library = "/opt/libonnxruntime.so";
    ort.version = "1.23.2";
    ort.built_in = {"CUDAExecutionProvider", "CPUExecutionProvider"};
    ort.provider_library_name = "libonnxruntime_providers_cuda.so";
  }

  void provider_library(std::vector<std::string> needed) {
    ort.provider_library = (folder / "lib/libonnxruntime_providers_cuda.so").string();
    write_file_atomically(ort.provider_library, testing::elf_bytes({.needed = std::move(needed)}));
  }
  void library(const std::string& name) { write_file_atomically(folder / "lib" / name, testing::elf_bytes({})); }
  void file(const std::string& path, const std::string& content) { temporary.write(path, content + "\n"); }

  void expect(const std::string& reason, const std::string& hint, const std::string& provider = "cuda") {
    const Diagnosis d = diagnose(named(provider), nvidia, ort, view);
    EXPECT_NE(d.reason.find(reason), std::string::npos) << d.reason;
    EXPECT_NE(d.hint.find(hint), std::string::npos) << d.hint;
  }

  const testing::TemporaryFolder temporary;
  const fs::path& folder = temporary.path();
  LoaderView view;
  MachineFacts nvidia;
  RuntimeFacts ort;
};

TEST_F(Diagnose, NothingInTheWay) {
  provider_library({"libcudart.so.12"});
  library("libcudart.so.12");
  EXPECT_EQ(diagnose(named("cuda"), nvidia, ort, view).reason, "");
}

TEST_F(Diagnose, Platform) {
  expect("CoreMLExecutionProvider exists on macOS only, this is Linux", "sdx providers", "coreml");
  expect("DmlExecutionProvider exists on Windows only", "", "directml");
}

TEST_F(Diagnose, NvidiaStepByStep) {
  nvidia = {};
  expect("no NVIDIA GPU", "--gpus all");
  nvidia.nvidia_gpus = {"NVIDIA [10de:2330]"};
  expect("the NVIDIA driver is missing: NVIDIA [10de:2330] is there", "nvidia-driver");
  nvidia.nvidia_driver = "535.104.05";
  expect("there is no device /dev/nvidia0", "--gpus all");
  nvidia.nvidia_nodes = true;
  expect("libcuda.so.1 is not found", "nvidia-driver");
}

TEST_F(Diagnose, DriverTooOld) {
  provider_library({"libcudart.so.13"});
  library("libcudart.so.13");
  expect("NVIDIA driver 535.104.05 is too old: libonnxruntime_providers_cuda.so needs CUDA 13", "580.65.06 or newer");
}

TEST_F(Diagnose, VersionSkew) {
  provider_library({"libcudart.so.12", "libcudnn.so.9"});
  library("libcudart.so.13");
  library("libcudnn.so.9");
  expect("needs libcudart.so.12: not found; this machine has version 13", "nvidia-cuda-runtime-cu12");
}

TEST_F(Diagnose, CudnnMissing) {
  provider_library({"libcudart.so.12", "libcudnn.so.9"});
  library("libcudart.so.12");
  expect("libonnxruntime_providers_cuda.so needs libcudnn.so.9: not found", "libcudnn9-cuda-12");
}

TEST_F(Diagnose, Runtime) {
  expect("libonnxruntime_providers_cuda.so is not found beside /opt/libonnxruntime.so", "onnxruntime-gpu");
  ort.built_in = {"CPUExecutionProvider"};
  expect("not built in: /opt/libonnxruntime.so (ONNX Runtime 1.23.2) has no CUDAExecutionProvider; it has CPUExecutionProvider",
         "pip install onnxruntime-gpu");
  ort = {};
  expect("ONNX Runtime's library is not found", "SDX_ORT_LIB");
}

TEST_F(Diagnose, QuickStopsAtTheFirst) {
  nvidia = {};
  ort = {};
  EXPECT_NE(diagnose(named("cuda"), nvidia, ort, view, false).reason.find("ONNX Runtime"), std::string::npos);
  EXPECT_EQ(diagnose(named("cuda"), nvidia, ort, view, true).reason.find("ONNX Runtime"), std::string::npos);
}

TEST_F(Diagnose, AmdAndOthers) {
  nvidia = {};
  expect("no AMD GPU", "", "migraphx");
  nvidia.amd_gpus = {"AMD [1002:74a1]"};
  expect("AMD [1002:74a1] is there, but /dev/kfd is not", "amdgpu-dkms", "rocm");
  expect("has no QNNExecutionProvider", "pip install onnxruntime onnxruntime-qnn", "qnn");  // a simulator runs on x86-64
  nvidia.platform = Platform::windows;
  expect("no AMD Ryzen AI NPU", "", "vitisai");
}

#if defined(__linux__)
TEST_F(Diagnose, ReadsAMachine) {
  file("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de");
  file("sys/bus/pci/devices/0000:01:00.0/class", "0x030200");
  file("sys/bus/pci/devices/0000:01:00.0/device", "0x2330");
  file("sys/bus/pci/devices/0000:02:00.0/vendor", "0x1002");
  file("sys/bus/pci/devices/0000:02:00.0/class", "0x038000");
  file("sys/bus/pci/devices/0000:02:00.0/device", "0x74a1");
  file("sys/bus/pci/devices/0000:03:00.0/vendor", "0x8086");
  file("sys/bus/pci/devices/0000:03:00.0/class", "0x020000");  // a network card
  MachineFacts m = machine_facts(folder.string());
  EXPECT_EQ(m.nvidia_gpus, (std::vector<std::string>{"NVIDIA [10de:2330]"}));
  EXPECT_EQ(m.amd_gpus, (std::vector<std::string>{"AMD [1002:74a1]"}));
  EXPECT_TRUE(m.intel_gpus.empty());
  EXPECT_EQ(m.nvidia_driver, "");
  EXPECT_FALSE(m.nvidia_nodes);

  file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023");
  file("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H100 80GB HBM3");
  file("dev/nvidia0", "");
  m = machine_facts(folder.string());
  EXPECT_EQ(m.nvidia_driver, "535.104.05");
  EXPECT_EQ(m.nvidia_gpus, (std::vector<std::string>{"NVIDIA H100 80GB HBM3"}));
  EXPECT_TRUE(m.nvidia_nodes);
}
#endif

TEST(VersionBelow, ComparesNumbers) {
  EXPECT_TRUE(version_below("450.80.02", "525.60.13"));
  EXPECT_TRUE(version_below("525.60.2", "525.60.13"));
  EXPECT_FALSE(version_below("525.60.13", "525.60.13"));
  EXPECT_FALSE(version_below("580.1", "525.60.13"));
  EXPECT_TRUE(version_below("525", "525.60"));
  EXPECT_FALSE(version_below("", "525"));
  EXPECT_FALSE(version_below("unknown", "525"));
}

}  // namespace
}  // namespace sdx
