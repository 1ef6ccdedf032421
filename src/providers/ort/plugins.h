#pragma once
// Execution providers in libraries of their own that any ONNX Runtime from 1.22 on can load ("plugins").

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "providers/ort/library.h"

namespace sdx::ort {

// The files of plugins: those that SDX_ORT_EP_LIBS lists (separated by colons), and those of installed Python packages whose
// names begin with onnxruntime_ ("onnxruntime_ep_webgpu", "onnxruntime_qnn"). Absolute paths, without links in their folders;
// each file once, even if links give it several names. Loads nothing.
std::vector<std::filesystem::path> plugin_candidates();

// One of them is for this provider: its file name contains the short name.
bool has_plugin(std::string_view provider);

struct PluginDevice {
  const c::EpDevice* device = nullptr;  // belongs to the library
  std::string provider;                 // "OpenVINOExecutionProvider"
  std::string kind;                     // "CPU", "GPU", "NPU"
  std::string vendor;                   // of the hardware; may be empty
};

// The devices that plugins offer for this provider. Where the library knows none, loads, once, the plugins whose file names
// contain `provider` ("openvino"), of several with the same name the first that can be loaded; one that cannot is a line of
// `problems`.
std::vector<PluginDevice> plugin_devices(const Library& library, std::string_view provider, std::vector<std::string>& problems);

// The first device of a kind; without a kind, an NPU before a GPU before the CPU. Null: there is none.
const PluginDevice* choose_device(const std::vector<PluginDevice>& devices, std::string_view kind);

// Adds the provider on the device that the option `device_type` names ("GPU"). Without it choose_device() chooses, except for
// OpenVINO, whose default is the CPU. Throws Error(provider_unavailable).
void append_plugin(const Library& library, c::SessionOptions* options, std::string_view provider,
                   std::vector<std::pair<std::string, std::string>> pairs);

}  // namespace sdx::ort
