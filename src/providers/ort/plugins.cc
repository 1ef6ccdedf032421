#include "providers/ort/plugins.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "base/error.h"
#include "base/suggest.h"
#include "base/system/dynlib.h"
#include "base/system/files/library_name.h"
#include "base/system/processes/environment.h"
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
  const std::string any = shared_library_name("*");
  const std::size_t star = any.find('*');
  return name.starts_with(any.substr(0, star)) && name.ends_with(any.substr(star + 1)) &&
         name.find("onnxruntime_providers_") != std::string::npos && name.find("_shared") == std::string::npos;
}

// A plugin's file that was handed to an ONNX Runtime, or could not be.
struct Attempt {
  const Library* library;
  fs::path file;
  std::string base, name;  // the name that it was to get, and that it got: "QNNExecutionProvider", "QNNExecutionProvider-2"
  std::string problem;     // empty: it is loaded
};

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code missing;
  return a == b || fs::equivalent(a, b, missing);
}

// Qualcomm's plugin calls its provider by the name under which it is registered, so that a provider's own plugin gets the
// provider's name. Others ("libonnxruntime_providers_nv_tensorrt_rtx.so" for "tensorrt") get that of their file.
std::string name_for(const fs::path& file, std::string_view provider) {
  const std::string stem = file.stem().string();
  const std::string own = fs::path(shared_library_name(fmt::format("onnxruntime_providers_{}", provider))).stem().string();
  return stem == own || stem == own + "_plugin" ? std::string(vendor_name(provider)) : stem;
}

std::string serves_one(const std::string& has_it) {
  return fmt::format("{} has it in this process, and a plugin serves one ONNX Runtime only", has_it);
}

// Registers a file at most once, and one file of a name. ONNX Runtime starts a plugin before it looks whether it has the name,
// and then ends the plugin that it had: its devices are left dangling. Nor can a plugin, whose functions go to the ONNX Runtime
// that started it last, serve two of them. Returns why the file cannot be used; empty where it, or another of its name, can.
std::string register_once(const Library& library, const fs::path& file, std::string_view provider,
                          std::vector<Attempt>& attempts) {
  const std::string base = name_for(file, provider);
  int refused = 0;
  for (const Attempt& a : attempts) {
    if (same_file(a.file, file)) {
      if (a.library == &library) return a.problem;
      if (!a.problem.empty()) continue;
      return serves_one(fmt::format("ONNX Runtime {} ('{}')", a.library->version(), a.library->path().string()));
    }
    if (a.library != &library || a.base != base) continue;
    if (a.problem.empty()) return {};
    ++refused;
  }
  // Programs use ONNX Runtime beside this engine: its Python package contains a second copy of the library.
  if (is_loaded(file)) return serves_one("another ONNX Runtime");
  Attempt made{&library, file, base, refused == 0 ? base : fmt::format("{}-{}", base, refused + 1), ""};
  try {
    const LibraryFinding finding = explain_library(file);
    if (!finding.loadable) fail(ErrorCode::provider_unavailable, "{}", finding.reason);
    library.check(library.f().register_plugin(const_cast<c::Env*>(library.env()), made.name.c_str(), file.c_str()),
                  ErrorCode::provider_unavailable);
  } catch (const Error& e) {
    made.problem = e.message();
  }
  attempts.push_back(made);
  return made.problem;
}

// The devices that the library knows for a provider, be it by its name or by that of a plugin of ours.
std::vector<PluginDevice> known_devices(const Library& library, std::string_view provider, const std::vector<Attempt>& attempts) {
  const Functions& f = library.f();
  const std::string name(vendor_name(provider));
  const c::EpDevice* const* devices = nullptr;
  std::size_t count = 0;
  library.check(f.ep_devices(library.env(), &devices, &count), ErrorCode::provider_unavailable);
  std::vector<PluginDevice> out;
  for (std::size_t i = 0; i < count; ++i) {
    PluginDevice d;
    d.device = devices[i];
    d.provider = f.ep_name(devices[i]);
    const auto ours = [&](const Attempt& a) { return a.library == &library && a.base == name && a.name == d.provider; };
    // A plugin may offer several providers ("OpenVINOExecutionProvider.AUTO").
    if (d.provider != name && std::none_of(attempts.begin(), attempts.end(), ours)) continue;
    const c::HardwareDevice* hardware = f.ep_device(devices[i]);
    d.kind = kind_name(f.device_type(hardware));
    if (const char* vendor = f.device_vendor(hardware)) d.vendor = vendor;
    out.push_back(std::move(d));
  }
  return out;
}

// A path without links in its folders that does not depend on the current folder: ONNX Runtime resolves a relative one from its
// own.
fs::path resolved(const fs::path& file) {
  std::error_code none;
  const fs::path whole = fs::absolute(file, none);
  const fs::path folder = fs::canonical(whole.parent_path(), none);
  return none ? whole : folder / whole.filename();
}

// "onnxruntime_ep_webgpu", "onnxruntime_qnn", not "onnxruntime_qnn-2.7.0.dist-info".
bool may_have_plugins(const std::string& package) {
  return package.starts_with("onnxruntime_") && package.find('-') == std::string::npos;
}

std::mutex g_mutex;

}  // namespace

std::vector<fs::path> plugin_candidates() {
  std::vector<fs::path> out;
  std::error_code none;
  for (const std::string& file : listed_in("SDX_ORT_EP_LIBS")) add_distinct(resolved(file), out);
  for (const fs::path& site : site_packages()) {
    for (const auto& package : fs::directory_iterator(site, none)) {
      if (!may_have_plugins(package.path().filename().string())) continue;
      for (const auto& file : fs::directory_iterator(package.path(), none)) {
        if (is_plugin(file.path())) add_distinct(resolved(file.path()), out);
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
  // ONNX Runtime has one environment in a process, where a program may have registered the plugin itself.
  std::vector<PluginDevice> known = known_devices(library, provider, *attempts);
  if (!known.empty()) return known;
  for (const fs::path& file : plugin_candidates()) {
    if (file.filename().string().find(provider) == std::string::npos) continue;
    const std::string problem = register_once(library, file, provider, *attempts);
    if (!problem.empty()) problems.push_back(fmt::format("plugin '{}': {}", file.string(), problem));
  }
  return known_devices(library, provider, *attempts);
}

const PluginDevice* choose_device(const std::vector<PluginDevice>& devices, std::string_view kind) {
  constexpr std::array<std::string_view, 3> kOrder{"NPU", "GPU", "CPU"};
  for (const std::string_view wanted : kOrder) {
    if (!kind.empty() && kind != wanted) continue;
    for (const PluginDevice& d : devices) {
      if (d.kind == wanted) return &d;
    }
  }
  return nullptr;
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
  const PluginDevice* chosen = choose_device(devices, wanted);
  if (chosen == nullptr) {
    std::vector<std::string> kinds;
    for (const PluginDevice& d : devices) kinds.push_back(d.kind);
    fail(ErrorCode::provider_unavailable, "the plugin of {} has no device {}; it has: {}", vendor_name(provider),
         wanted.empty() ? "at all" : wanted, kinds.empty() ? "none" : join(kinds));
  }
  // On x86-64 Qualcomm's NPU is a simulator behind a CPU, for which the plugin chooses none of its libraries by itself.
  const auto names_library = [](const auto& p) { return p.first == "backend_path" || p.first == "backend_type"; };
  if (provider == "qnn" && chosen->kind == "CPU" && std::none_of(pairs.begin(), pairs.end(), names_library)) {
    pairs.emplace_back("backend_type", "htp");
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
