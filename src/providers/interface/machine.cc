#include "providers/interface/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "base/system/dynlib.h"
#include "base/system/process.h"

namespace sdx {
namespace fs = std::filesystem;
namespace {

// PCI vendors and device classes (PCI Code and ID Assignment Specification): 03 display, 12 processing accelerator, 11 80 signal
// processing (AMD's XDNA).
constexpr std::string_view kNvidia = "10de", kAmd = "1002", kAmdCpu = "1022", kIntel = "8086";

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line.substr(0, 256);
}

// "0x10de" -> "10de"
std::string hex_digits(const std::string& text) { return text.starts_with("0x") ? text.substr(2) : text; }

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    paths.push_back(it->path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void read_pci(const fs::path& root, MachineFacts& m) {
  for (const fs::path& device : entries(root / "sys/bus/pci/devices")) {
    const std::string vendor = hex_digits(first_line(device / "vendor"));
    const std::string kind = hex_digits(first_line(device / "class"));
    const std::string id = fmt::format("[{}:{}]", vendor, hex_digits(first_line(device / "device")));
    const bool display = kind.starts_with("03");
    const bool accelerator = kind.starts_with("12");
    if (vendor == kNvidia && (display || accelerator)) m.nvidia_gpus.push_back("NVIDIA " + id);
    if (vendor == kAmd && (display || accelerator)) m.amd_gpus.push_back("AMD " + id);
    if (vendor == kAmdCpu && (accelerator || kind.starts_with("1180"))) m.npus.push_back("AMD Ryzen AI " + id);
    if (vendor == kIntel && display) m.intel_gpus.push_back("Intel " + id);
    if (vendor == kIntel && accelerator) m.npus.push_back("Intel NPU " + id);
  }
}

// The first thing in the text that looks like 535.104.05.
std::string version_in(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9' || (i > 0 && text[i - 1] != ' ')) continue;
    const std::size_t end = std::min(text.find_first_not_of("0123456789.", i), text.size());
    std::string word = text.substr(i, end - i);
    if (word.find('.') != std::string::npos) return word;
    i = end;
  }
  return {};
}

void read_nvidia(const fs::path& root, MachineFacts& m) {
  m.nvidia_driver = version_in(first_line(root / "proc/driver/nvidia/version"));
  std::vector<std::string> models;
  for (const fs::path& gpu : entries(root / "proc/driver/nvidia/gpus")) {
    const std::string line = first_line(gpu / "information");  // "Model: \t\t NVIDIA H100 80GB HBM3"
    const std::size_t at = line.find_first_not_of(" \t", line.find(':') == std::string::npos ? 0 : line.find(':') + 1);
    if (line.starts_with("Model") && at != std::string::npos) models.push_back(line.substr(at));
  }
  if (!models.empty()) m.nvidia_gpus = models;
  for (const fs::path& node : entries(root / "dev")) {
    const std::string name = node.filename().string();
    const bool numbered = name.starts_with("nvidia") && name.size() > 6 && name[6] >= '0' && name[6] <= '9';
    m.nvidia_nodes = m.nvidia_nodes || numbered || name == "dxg";
    m.amd_node = m.amd_node || name == "kfd";
  }
  for (const fs::path& node : entries(root / "dev/dri")) {
    m.render_nodes = m.render_nodes || node.filename().string().starts_with("renderD");
  }
}

}  // namespace

Platform this_platform() noexcept {
  static const Platform platform = [] {
    const std::string system = system_names().system;
    if (system == "Windows") return Platform::windows;
    return system == "Darwin" ? Platform::macos : Platform::linux_os;
  }();
  return platform;
}

std::string_view platform_name(Platform platform) noexcept {
  switch (platform) {
    case Platform::linux_os: return "Linux";
    case Platform::windows: return "Windows";
    case Platform::macos: return "macOS";
  }
  return "";
}

MachineFacts machine_facts(const std::string& root) {
  MachineFacts m;
  m.platform = this_platform();
#if defined(__aarch64__)
  m.arm = true;
#endif
  if (m.platform == Platform::linux_os) {
    read_pci(root, m);
    read_nvidia(root, m);
    // Reading the loader's cache takes an eighth of the time of `sdx inspect` for a small model.
    if (m.nvidia_gpus.empty() && !m.nvidia_nodes && m.nvidia_driver.empty()) return m;
    m.cuda_driver_library = find_library("libcuda.so.1");
    // Under WSL the driver's library is here; in some distributions ldconfig does not know this folder.
    const fs::path wsl = fs::path(root) / "usr/lib/wsl/lib/libcuda.so.1";
    std::error_code ignored;
    if (m.cuda_driver_library.empty() && fs::exists(wsl, ignored)) m.cuda_driver_library = wsl.string();
  }
  return m;
}

const MachineFacts& this_machine() {
  static const MachineFacts facts = machine_facts();
  return facts;
}

bool version_below(std::string_view have, std::string_view need) {
  const auto next = [](std::string_view& text, int& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.empty() && text.front() == '.') text.remove_prefix(1);
    return true;
  };
  if (have.empty()) return false;
  while (!need.empty()) {
    int h = 0, n = 0;
    if (!next(need, n)) return false;
    if (!have.empty() && !next(have, h)) return false;
    if (h != n) return h < n;
  }
  return false;
}

}  // namespace sdx
