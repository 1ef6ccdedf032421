#pragma once
// The machine's accelerators and their drivers: read from files, without loading anything.

#include <string>
#include <string_view>
#include <vector>

namespace sdx {

enum class Platform { linux_os, windows, macos };
Platform this_platform() noexcept;
// "Linux", "Windows", "macOS": as in ProviderName::platforms.
std::string_view platform_name(Platform platform) noexcept;

// Plain data, so that tests can describe any machine.
struct MachineFacts {
  Platform platform = Platform::linux_os;
  bool arm = false;  // AArch64 instead of x86-64
  // One name per device: the driver's where it tells one, else "NVIDIA [10de:2330]" from the PCI bus.
  std::vector<std::string> nvidia_gpus, amd_gpus, intel_gpus;
  std::vector<std::string> npus;

  std::string nvidia_driver;        // "535.104.05"; empty: the kernel module is not loaded
  bool nvidia_nodes = false;        // /dev/nvidia0 and the like, or /dev/dxg under WSL
  std::string cuda_driver_library;  // path of libcuda.so.1; empty: not found, or nothing else speaks of NVIDIA
  bool amd_node = false;            // /dev/kfd
  bool render_nodes = false;        // /dev/dri/renderD*
};

// Reads /sys/bus/pci, /proc/driver/nvidia and /dev below `root`, and asks the loader's search for the driver's library. Never
// throws; unreadable files count as missing. Costs some ten file accesses.
MachineFacts machine_facts(const std::string& root = "/");
// The accelerators of this machine, read once in a process.
const MachineFacts& this_machine();

// True when version `have` ("535.104.05") is below `need`, part by part as numbers. False for a text that is not a version.
bool version_below(std::string_view have, std::string_view need);

}  // namespace sdx
