#include "providers/ort/trial.h"

#include <mutex>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/system/dynlib.h"
#include "base/system/terminal.h"
#include "onnx/writer.h"
#include "providers/ort/options.h"

namespace sdx::ort {
namespace {

// max(x, 0) of one number.
std::string smallest_model() {
  Model model;
  model.ir_version = 7;
  model.opsets = {{"", 13}};
  model.graph.name = "trial";
  Type type = Type::tensor(DataType::float32);
  type.shape.emplace(1, Dim(1));
  const ValueId x = model.graph.add_input("x", type), y = model.graph.add_value("y", type);
  Node node;
  node.op_type = "Relu";
  node.version = 13;
  node.inputs = {x};
  node.outputs = {y};
  model.graph.add_node(std::move(node));
  model.graph.add_output(y);
  return write_model(model);
}

// Where the driver is looked for only when a session is opened: adding the provider says nothing about it.
bool starts_with_session(std::string_view provider) { return provider == "webgpu" || provider == "qnn"; }

std::string key_of(const Library& library, std::string_view provider, const ProviderSettings& settings) {
  std::string key = library.path().string() + "\n" + std::string(provider);
  for (const auto& [name, value] : settings.options) key += "\n" + name + "=" + value;
  return key;
}

// Qualcomm's simulator prints a line about itself to standard output, which would stand before the results of a program.
bool prints_on_start(std::string_view provider) {
#if defined(__x86_64__)
  return provider == "qnn";
#else
  return static_cast<void>(provider), false;
#endif
}

void open_session(const Library& library, std::string_view provider, const c::SessionOptions* options) {
  const std::string model = smallest_model();
  std::optional<OutputToErrors> elsewhere;
  if (prints_on_start(provider)) elsewhere.emplace();
  c::Session* session = nullptr;
  library.check(library.f().create_session_from_array(library.env(), model.data(), model.size(), options, &session),
                ErrorCode::provider_unavailable);
  // The session that stays open keeps the device open for those that follow: closing it and opening it again takes 0.15 s a
  // session, and shaders are compiled anew.
  if (provider != "webgpu") library.f().release_session(session);
}

Diagnosis explain(std::string_view provider, const std::string& message) {
  if (provider == "webgpu") return explain_webgpu(message, find_library("libvulkan.so.1"));
  return {message, ""};
}

}  // namespace

Diagnosis explain_webgpu(const std::string& message, const std::string& loader) {
  const std::size_t at = message.find("Failed to get a WebGPU adapter");
  if (at == std::string::npos) return {message, ""};
  const std::string words = message.substr(at, message.find_first_of("\r\n", at) - at);
  if (loader.empty() && this_platform() == Platform::linux_os) {
    return {fmt::format("the Vulkan loader libvulkan.so.1 is not found ({})", words),
            "install the package libvulkan1 and the GPU's Vulkan driver"};
  }
  return {fmt::format("no GPU driver that WebGPU can use ({})", words),
          "install the GPU's Vulkan driver: the package mesa-vulkan-drivers for AMD and Intel; NVIDIA's driver contains one, for "
          "which "
          "a container needs NVIDIA_DRIVER_CAPABILITIES=all"};
}

Diagnosis try_provider(const Library& library, std::string_view provider, const ProviderSettings& settings) {
  static std::mutex mutex;
  static auto* const works = new std::set<std::string>;  // never destroyed, as the libraries
  try {
    c::SessionOptions* made = nullptr;
    library.check(library.f().create_session_options(&made), ErrorCode::internal);
    const std::unique_ptr<c::SessionOptions, void (*)(c::SessionOptions*)> release(made, library.f().release_session_options);
    library.check(library.f().set_intra_threads(made, 1), ErrorCode::internal);
    ProviderSettings plain = settings;
    plain.cache.clear();
    append_provider(library, made, provider, plain);
    if (!starts_with_session(provider)) return {};
    const std::lock_guard lock(mutex);
    const std::string key = key_of(library, provider, settings);
    if (works->contains(key)) return {};
    open_session(library, provider, made);
    works->insert(key);
  } catch (const Error& e) {
    return explain(provider, e.message());
  }
  return {};
}

}  // namespace sdx::ort
