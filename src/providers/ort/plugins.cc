#include "providers/ort/plugins.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "base/error.h"
#include "base/suggest.h"
#include "providers/ort/options.h"
#include "providers/vendor/search.h"

namespace sdx::ort {
namespace {

namespace fs = std::filesystem;

// OrtHardwareDeviceType
const char* kind_name(int type) { return type == 0 ? "CPU" : type == 1 ? "GPU" : "NPU"; }

// "libonnxruntime_providers_openvino_plugin.so", without the same under names with versions.
bool is_plugin(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.starts_with("lib") && name.ends_with(".so") && name.find("onnxruntime_providers_") != std::string::npos &&
         name.find("_shared") == std::string::npos;
}

// A plugin's file that was handed to an ONNX Runtime, or could not be.
struct Attempt {
  const Library* library;
  fs::path file;
  std::string problem;  // empty: it is loaded
};

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code missing;
  return a == b || fs::equivalent(a, b, missing);
}

// Registers a file at most once, and one file of a name. ONNX Runtime starts a plugin before it looks whether it has the name,
// and then ends the plugin that it had: its devices are left dangling. Nor can a plugin, whose functions go to the ONNX Runtime
// that started it last, serve two of them. Returns why the file cannot be used; empty where it, or another of its name, can.
std::string register_once(const Library& library, const fs::path& file, std::vector<Attempt>& attempts) {
  const fs::path stem = file.stem();
  int refused = 0;
  for (const Attempt& a : attempts) {
    if (same_file(a.file, file)) {
      if (a.library == &library) return a.problem;
      if (!a.problem.empty()) continue;
      return fmt::format("ONNX Runtime {} ('{}') has it in this process, and a plugin serves one ONNX Runtime only",
                         a.library->version(), a.library->path().string());
    }
    if (a.library != &library || a.file.stem() != stem) continue;
    if (a.problem.empty()) return {};
    ++refused;
  }
  Attempt made{&library, file, ""};
  try {
    const LibraryFinding finding = explain_library(file);
    if (!finding.loadable) fail(ErrorCode::provider_unavailable, "{}", finding.reason);
    const std::string name = refused == 0 ? stem.string() : fmt::format("{}-{}", stem.string(), refused + 1);
    library.check(library.f().register_plugin(const_cast<c::Env*>(library.env()), name.c_str(), file.c_str()),
                  ErrorCode::provider_unavailable);
  } catch (const Error& e) {
    made.problem = e.message();
  }
  attempts.push_back(made);
  return made.problem;
}

std::mutex g_mutex;

}  // namespace

std::vector<fs::path> plugin_candidates() {
  std::vector<fs::path> out;
  std::error_code none;
  if (const char* v = std::getenv("SDX_ORT_EP_LIBS"); v != nullptr) {
    const std::string list = v;
    for (std::size_t at = 0; at < list.size();) {
      const std::size_t end = std::min(list.find(':', at), list.size());
      if (end > at) add_distinct(list.substr(at, end - at), out);
      at = end + 1;
    }
  }
  for (const fs::path& site : site_packages()) {
    for (const auto& package : fs::directory_iterator(site, none)) {
      if (!package.path().filename().string().starts_with("onnxruntime_ep_")) continue;
      for (const auto& file : fs::directory_iterator(package.path(), none)) {
        if (is_plugin(file.path())) add_distinct(file.path(), out);
      }
    }
  }
  return out;
}

bool has_plugin(std::string_view provider) {
  const std::vector<fs::path> files = plugin_candidates();
  return std::any_of(files.begin(), files.end(),
                     [&](const fs::path& f) { return f.filename().string().find(provider) != std::string::npos; });
}

std::vector<PluginDevice> plugin_devices(const Library& library, std::string_view provider, std::vector<std::string>& problems) {
  const Functions& f = library.f();
  if (f.register_plugin == nullptr || f.ep_devices == nullptr) return {};
  const std::lock_guard lock(g_mutex);
  // Never forgotten: plugins stay loaded, as the libraries do.
  static auto* const attempts = new std::vector<Attempt>;
  for (const fs::path& file : plugin_candidates()) {
    if (file.filename().string().find(provider) == std::string::npos) continue;
    const std::string problem = register_once(library, file, *attempts);
    if (!problem.empty()) problems.push_back(fmt::format("plugin '{}': {}", file.string(), problem));
  }
  const c::EpDevice* const* devices = nullptr;
  std::size_t count = 0;
  library.check(f.ep_devices(library.env(), &devices, &count), ErrorCode::provider_unavailable);
  std::vector<PluginDevice> out;
  for (std::size_t i = 0; i < count; ++i) {
    PluginDevice d;
    d.device = devices[i];
    d.provider = f.ep_name(devices[i]);
    const c::HardwareDevice* hardware = f.ep_device(devices[i]);
    d.kind = kind_name(f.device_type(hardware));
    if (const char* vendor = f.device_vendor(hardware)) d.vendor = vendor;
    // A plugin may offer several providers ("OpenVINOExecutionProvider.AUTO").
    if (d.provider == vendor_name(provider)) out.push_back(std::move(d));
  }
  return out;
}

void append_plugin(const Library& library, c::SessionOptions* options, std::string_view provider,
                   std::vector<std::pair<std::string, std::string>> pairs) {
  std::vector<std::string> problems;
  const std::vector<PluginDevice> devices = plugin_devices(library, provider, problems);
  std::string wanted = provider == "openvino" ? "CPU" : "";
  // The device is chosen here: plugins do not take it as an option.
  std::erase_if(pairs, [&](const auto& p) {
    if (p.first != "device_type") return false;
    wanted = p.second.substr(0, p.second.find('.'));
    return true;
  });
  const PluginDevice* chosen = nullptr;
  for (const PluginDevice& d : devices) {
    if (!wanted.empty() && d.kind != wanted) continue;
    if (chosen == nullptr || (chosen->kind == "CPU" && d.kind != "CPU")) chosen = &d;
  }
  if (chosen == nullptr) {
    std::vector<std::string> kinds;
    for (const PluginDevice& d : devices) kinds.push_back(d.kind);
    fail(ErrorCode::provider_unavailable, "the plugin of {} has no device {}; it has: {}", vendor_name(provider),
         wanted.empty() ? "at all" : wanted, kinds.empty() ? "none" : join(kinds));
  }
  std::vector<const char*> keys, values;
  for (const auto& [k, v] : pairs) {
    keys.push_back(k.c_str());
    values.push_back(v.c_str());
  }
  library.check(library.f().append_devices(options, const_cast<c::Env*>(library.env()), &chosen->device, 1, keys.data(),
                                           values.data(), pairs.size()),
                ErrorCode::provider_unavailable);
}

}  // namespace sdx::ort
