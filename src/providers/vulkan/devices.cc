#include "providers/vulkan/devices.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/quantity.h"
#include "base/suggest.h"
#include "base/text/ascii.h"

namespace sdx::vulkan {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 4 && text.find_first_not_of("0123456789") == std::string::npos;
}

bool on_cpu(const DeviceFacts& d) { return d.type == DeviceType::cpu; }

// The order among devices of one type: what computes fastest first.
int rank_of(const DeviceFacts& d) {
  switch (d.type) {
    case DeviceType::discrete: return 0;
    case DeviceType::integrated: return 1;
    case DeviceType::virtual_gpu: return 2;
    default: return 3;
  }
}

std::string join_names(const std::vector<DeviceFacts>& devices) {
  std::vector<std::string> names;
  for (const DeviceFacts& d : devices) names.emplace_back(d.name);
  return join(names);
}

}  // namespace

Settings settings_of(const ProviderSettings& settings) {
  static const std::vector<std::string> known{"device_id", "device_type", "gpu_mem_limit"};
  Settings out;
  if (const char* named = std::getenv("SDX_VULKAN_DEVICE"); named != nullptr) out.device = named;
  for (const auto& [key, value] : settings.options) {
    if (key == "device_id") {
      if (value.empty())
        fail(ErrorCode::invalid_argument, "option 'device_id' of provider 'vulkan' must be a number or a part of a name");
      out.device = value;
    } else if (key == "device_type") {
      if (value != "GPU" && value != "CPU") {
        fail(ErrorCode::invalid_argument, "option 'device_type' of provider 'vulkan' must be GPU or CPU, received '{}'", value);
      }
      out.cpu_type = value == "CPU";
    } else if (key == "gpu_mem_limit") {
      const std::optional<std::uint64_t> bytes = size_from_text(value);
      if (!bytes) {
        fail(ErrorCode::invalid_argument,
             "option 'gpu_mem_limit' of provider 'vulkan' must be a number of bytes, such as 512MB, received '{}'", value);
      }
      out.memory_limit = *bytes;
    } else {
      const std::string near = closest(key, known);
      fail(ErrorCode::invalid_argument, "provider 'vulkan' has no option '{}'{} Known: {}", key,
           near.empty() ? "." : "; did you mean '" + near + "'?", join(known));
    }
  }
  return out;
}

std::string describe(const DeviceFacts& d) {
  std::string text = fmt::format("{}: {} ({}", on_cpu(d) ? "CPU" : "GPU", d.name, d.driver);
  if (d.memory > 0) text += fmt::format(", {:.1f} GiB", static_cast<double>(d.memory) / (1 << 30));
  if (d.lacks[0] != '\0') text += fmt::format("; lacks {}", d.lacks);
  return text + ")";
}

Choice choose_device(const std::vector<DeviceFacts>& devices, const Settings& settings) {
  Choice choice;
  if (devices.empty()) {
    choice.reason = "no driver for Vulkan offers a device";
    choice.hint = "install the graphics card's driver with Vulkan; on Debian, mesa-vulkan-drivers has those of AMD and Intel";
    return choice;
  }
  const bool named = !settings.device.empty() && !is_number(settings.device);
  std::vector<std::size_t> fit;
  std::string lacking;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const DeviceFacts& d = devices[i];
    if (named ? ascii_lower(d.name).find(ascii_lower(settings.device)) == std::string::npos : on_cpu(d) != settings.cpu_type)
      continue;
    if (d.lacks[0] != '\0') {
      lacking += fmt::format("{}{} lacks {}", lacking.empty() ? "" : "; ", d.name, d.lacks);
    } else {
      fit.push_back(i);
    }
  }
  std::stable_sort(fit.begin(), fit.end(),
                   [&](std::size_t a, std::size_t b) { return rank_of(devices[a]) < rank_of(devices[b]); });
  const std::size_t at = is_number(settings.device) ? std::strtoul(settings.device.c_str(), nullptr, 10) : 0;
  if (at < fit.size()) {
    choice.index = fit[at];
    return choice;
  }
  if (!lacking.empty()) {
    choice.reason = lacking;
  } else if (named) {
    choice.reason = fmt::format("no device is named '{}'; there are: {}", settings.device, join_names(devices));
  } else if (!fit.empty()) {
    choice.reason = fmt::format("there is no device {}: the last is {}", at, fit.size() - 1);
  } else if (!settings.cpu_type) {
    choice.reason = "there is no GPU, only a driver that computes on the CPU: " + join_names(devices);
    choice.hint = "device_type=CPU asks for it, which is slower than provider cpu";
  } else {
    choice.reason = "no driver that computes on the CPU is installed";
    choice.hint = "on Debian, mesa-vulkan-drivers has one";
  }
  return choice;
}

}  // namespace sdx::vulkan
