// Execution providers: requests become the chain of the session's options. A name that is not known and one that cannot be used
// on this machine are errors, as in a build of ONNX Runtime without the provider.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <map>

#include "dropin/objects.h"
#include "dropin/status.h"
#include "dropin/table.h"
#include "providers/interface/provider.h"
#include "session/selection.h"

namespace sdx::dropin {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

const ProviderName* find_name(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const ProviderName& name : provider_names()) {
    std::string full = name.ort_name;
    std::transform(full.begin(), full.end(), full.begin(), [](unsigned char c) { return std::tolower(c); });
    const bool alias = std::find(name.aliases.begin(), name.aliases.end(), lower) != name.aliases.end();
    if (lower == name.name || lower == full || alias) return &name;
  }
  return nullptr;
}

// SDX_DROPIN_GPU=vulkan: requests for these are served by that provider, on any GPU.
constexpr std::string_view kServedByGpu[] = {"cuda", "directml", "webgpu"};

// The provider that serves requests for `asked`. Throws OrtError for another value of the variable.
const ProviderName& serving(const ProviderName& asked) {
  const char* const gpu = std::getenv("SDX_DROPIN_GPU");
  if (gpu == nullptr || *gpu == '\0') return asked;
  if (std::string_view(gpu) != "vulkan") {
    fail_ort(ORT_INVALID_ARGUMENT, "SDX_DROPIN_GPU must be vulkan, received '" + std::string(gpu) + "'");
  }
  const bool served = std::find(std::begin(kServedByGpu), std::end(kServedByGpu), asked.name) != std::end(kServedByGpu);
  const ProviderName* const by = served ? find_name(gpu) : nullptr;
  return by != nullptr ? *by : asked;
}

// Of the options for another provider only the device counts. Number 0 stands for the default device.
Pairs options_for_gpu(const Pairs& given) {
  Pairs kept;
  for (const auto& [key, value] : given) {
    if (key == "device_id" && value != "0") kept.emplace_back(key, value);
  }
  return kept;
}

[[noreturn]] void fail_unknown(std::string_view asked) {
  std::string known;
  for (const ProviderName& name : provider_names()) {
    known += (known.empty() ? "'" : ", '") + name.name + "'/'" + name.ort_name + "'";
  }
  fail_ort(ORT_INVALID_ARGUMENT,
           "Unknown provider name '" + std::string(asked) + "'. Currently supported values are " + known + ".");
}

Pairs pairs_of(const char* const* keys, const char* const* values, std::size_t count) {
  Pairs pairs;
  for (std::size_t i = 0; i < count; ++i) {
    if (keys == nullptr || values == nullptr || keys[i] == nullptr || keys[i][0] == '\0' || values[i] == nullptr) {
      fail_ort(ORT_INVALID_ARGUMENT, "Provider options key/value cannot be empty");
    }
    if (std::strlen(keys[i]) > 1024 || std::strlen(values[i]) > 4096) {
      fail_ort(ORT_INVALID_ARGUMENT, std::string("Provider option is too long. Provider option key: ") + keys[i]);
    }
    pairs.emplace_back(keys[i], values[i]);
  }
  return pairs;
}

}  // namespace

// Throws OrtError for a provider that is unknown or cannot be used here.
void append_provider(OrtSessionOptions& options, std::string_view asked, Pairs given) {
  const ProviderName* const found = find_name(asked);
  if (found == nullptr) fail_unknown(asked);
  const ProviderName* const name = &serving(*found);
  if (name != found) given = options_for_gpu(given);
  if (name->name != "cpu") {
    const ProviderInfo info = session::look_at_provider(name->name, options.engine, Effort::quick);
    if (!info.available) {
      fail_ort(ORT_FAIL, std::string(asked) + " execution provider is not enabled in this build. " + info.reason);
    }
  }
  SessionOptions& engine = options.engine;
  if (std::find(engine.providers.begin(), engine.providers.end(), name->name) != engine.providers.end()) {
    if (name != found) return;  // one GPU for several requests
    fail_ort(ORT_FAIL, "Provider " + name->ort_name + " has already been registered.");
  }
  engine.providers.push_back(name->name);
  if (!given.empty() && name->name != "cpu") engine.provider_options.emplace_back(name->name, std::move(given));
}

namespace {

OrtStatus* append(OrtSessionOptions* options, const char* name, const char* const* keys, const char* const* values,
                  std::size_t count) {
  return guarded([&] {
    OrtSessionOptions& o = require(options, "options");
    append_provider(o, &require(name, "provider_name"), pairs_of(keys, values, count));
  });
}
OrtStatus* append_openvino(OrtSessionOptions* options, const char* const* keys, const char* const* values, std::size_t count) {
  return append(options, "OpenVINO", keys, values, count);
}
OrtStatus* append_vitisai(OrtSessionOptions* options, const char* const* keys, const char* const* values, std::size_t count) {
  return append(options, "VitisAI", keys, values, count);
}

// Options of one vendor's, by name; the structures of the interface's first versions begin with the number of the device.
struct VendorOptions {
  std::map<std::string, std::string> entries;
};
constexpr char kCuda[] = "CUDA", kTensorRt[] = "TensorRT", kCann[] = "CANN", kDnnl[] = "Dnnl", kRocm[] = "ROCM",
               kMiGraphX[] = "MIGraphX", kOpenVino[] = "OpenVINO";

[[noreturn]] void fail_disabled(const char* vendor, const std::string& why) {
  fail_ort(ORT_FAIL, std::string(vendor) + " execution provider is not enabled in this build. " + why);
}

template <const char* vendor>
OrtStatus* create_vendor(VendorOptions** out) {
  return guarded([&] {
    require(out, "out") = nullptr;
    const ProviderName* const name = find_name(vendor);
    if (name == nullptr) fail_disabled(vendor, "");
    SessionOptions engine;
    if (const char* real = std::getenv("SDX_DROPIN_REAL_ORT")) engine.ort_library = real;
    const ProviderInfo info = session::look_at_provider(serving(*name).name, engine, Effort::quick);
    if (!info.available) fail_disabled(vendor, info.reason);
    *out = new VendorOptions();
  });
}
void release_vendor(VendorOptions* options) { delete options; }

OrtStatus* update_vendor(VendorOptions* options, const char* const* keys, const char* const* values, std::size_t count) {
  return guarded([&] {
    VendorOptions& o = require(options, "provider options");
    for (auto& [key, value] : pairs_of(keys, values, count)) o.entries.insert_or_assign(std::move(key), std::move(value));
  });
}
OrtStatus* vendor_text(const VendorOptions* options, OrtAllocator* allocator, char** out) {
  return guarded([&] {
    std::string text;
    for (const auto& [key, value] : require(options, "provider options").entries) {
      text += (text.empty() ? "" : ";") + key + "=" + value;
    }
    require(out, "ptr");
    *out = copy_text(allocator, text);
  });
}
template <const char* vendor>
OrtStatus* append_vendor(OrtSessionOptions* options, const VendorOptions* given) {
  return guarded([&] {
    const auto& entries = require(given, "provider options").entries;
    append_provider(require(options, "options"), vendor, Pairs(entries.begin(), entries.end()));
  });
}
template <const char* vendor>
OrtStatus* append_structure(OrtSessionOptions* options, const int* device) {
  return guarded([&] {
    append_provider(require(options, "options"), vendor, {{"device_id", std::to_string(require(device, "provider options"))}});
  });
}
// Its structure begins with a text.
OrtStatus* append_openvino_structure(OrtSessionOptions* options, const char* const* device) {
  return guarded([&] {
    Pairs given;
    if (const char* const type = require(device, "provider options")) given.emplace_back("device_type", type);
    append_provider(require(options, "options"), kOpenVino, std::move(given));
  });
}

// CPU alone, unless a real ONNX Runtime is named, whose list is asked for then, or a provider for GPUs: looking for vendors'
// libraries takes longer than most programs' whole start.
OrtStatus* available(char*** out, int* count) {
  return guarded([&] {
    require(out, "out_ptr");
    require(count, "provider_length");
    std::vector<std::string> names;
    if (std::getenv("SDX_DROPIN_REAL_ORT") != nullptr) {
      SessionOptions engine;
      engine.ort_library = std::getenv("SDX_DROPIN_REAL_ORT");
      for (const ProviderName& name : provider_names()) {
        if (name.name == "cpu" || name.name == "fault" || name.name == "azure") continue;
        if (session::look_at_provider(name.name, engine, Effort::quick).available) names.push_back(name.ort_name);
      }
    }
    for (const std::string_view served : kServedByGpu) {
      const ProviderName& asked = *find_name(served);
      const ProviderName& by = serving(asked);
      const bool listed = std::find(names.begin(), names.end(), asked.ort_name) != names.end();
      if (&by != &asked && !listed && session::look_at_provider(by.name, {}, Effort::quick).available)
        names.push_back(asked.ort_name);
    }
    names.emplace_back("CPUExecutionProvider");
    auto list = std::make_unique<char*[]>(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) list[i] = strdup(names[i].c_str());
    *count = static_cast<int>(names.size());
    *out = list.release();
  });
}
OrtStatus* release_available(char** names, int count) {
  for (int i = 0; names != nullptr && i < count; ++i) std::free(names[i]);
  delete[] names;
  return nullptr;
}

OrtStatus* set_device(int) { return make_status(ORT_FAIL, "CUDA execution provider is not enabled in this build."); }
OrtStatus* get_device(int*) { return set_device(0); }
OrtStatus* provider_api(const char*, std::uint32_t, const void**) {
  return make_status(ORT_INVALID_ARGUMENT, "Specified provider is not supported.");
}

}  // namespace

void fill_providers(Table& table) {
  table.set(Slot::SessionOptionsAppendExecutionProvider, &append);
  table.set(Slot::SessionOptionsAppendExecutionProvider_OpenVINO_V2, &append_openvino);
  table.set(Slot::SessionOptionsAppendExecutionProvider_VitisAI, &append_vitisai);
  table.set(Slot::SessionOptionsAppendExecutionProvider_CUDA, &append_structure<kCuda>);
  table.set(Slot::SessionOptionsAppendExecutionProvider_ROCM, &append_structure<kRocm>);
  table.set(Slot::SessionOptionsAppendExecutionProvider_TensorRT, &append_structure<kTensorRt>);
  table.set(Slot::SessionOptionsAppendExecutionProvider_MIGraphX, &append_structure<kMiGraphX>);
  table.set(Slot::SessionOptionsAppendExecutionProvider_OpenVINO, &append_openvino_structure);
  table.set(Slot::SessionOptionsAppendExecutionProvider_CUDA_V2, &append_vendor<kCuda>);
  table.set(Slot::SessionOptionsAppendExecutionProvider_TensorRT_V2, &append_vendor<kTensorRt>);
  table.set(Slot::SessionOptionsAppendExecutionProvider_CANN, &append_vendor<kCann>);
  table.set(Slot::SessionOptionsAppendExecutionProvider_Dnnl, &append_vendor<kDnnl>);
  table.set(Slot::CreateCUDAProviderOptions, &create_vendor<kCuda>);
  table.set(Slot::CreateTensorRTProviderOptions, &create_vendor<kTensorRt>);
  table.set(Slot::CreateCANNProviderOptions, &create_vendor<kCann>);
  table.set(Slot::CreateDnnlProviderOptions, &create_vendor<kDnnl>);
  table.set(Slot::CreateROCMProviderOptions, &create_vendor<kRocm>);
  for (const Slot slot : {Slot::UpdateCUDAProviderOptions, Slot::UpdateTensorRTProviderOptions, Slot::UpdateCANNProviderOptions,
                          Slot::UpdateDnnlProviderOptions, Slot::UpdateROCMProviderOptions}) {
    table.set(slot, &update_vendor);
  }
  for (const Slot slot :
       {Slot::GetCUDAProviderOptionsAsString, Slot::GetTensorRTProviderOptionsAsString, Slot::GetCANNProviderOptionsAsString,
        Slot::GetDnnlProviderOptionsAsString, Slot::GetROCMProviderOptionsAsString}) {
    table.set(slot, &vendor_text);
  }
  for (const Slot slot : {Slot::ReleaseCUDAProviderOptions, Slot::ReleaseTensorRTProviderOptions,
                          Slot::ReleaseCANNProviderOptions, Slot::ReleaseDnnlProviderOptions, Slot::ReleaseROCMProviderOptions}) {
    table.set(slot, &release_vendor);
  }
  table.set(Slot::GetAvailableProviders, &available);
  table.set(Slot::ReleaseAvailableProviders, &release_available);
  table.set(Slot::SetCurrentGpuDeviceId, &set_device);
  table.set(Slot::GetCurrentGpuDeviceId, &get_device);
  table.set(Slot::GetExecutionProviderApi, &provider_api);
}

}  // namespace sdx::dropin
