#include "dropin/devices/devices.h"

#include <algorithm>
#include <memory>

#include "base/system/cpu_features.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {

struct OrtDeviceEpIncompatibilityDetails {
  std::uint32_t reasons = 0;
  std::int32_t error_code = 0;
  std::string notes;
};

namespace {

constexpr const char* kCpu = "CPUExecutionProvider";
constexpr std::uint32_t kDeviceIncompatible = 2;  // OrtDeviceEpIncompatibility_DEVICE_INCOMPATIBLE

// PCI vendor numbers, which ONNX Runtime reports for processors too.
std::uint32_t vendor_number(const std::string& vendor) {
  if (vendor == "Intel") return 0x8086;
  if (vendor == "AMD") return 0x1022;
  return 0;
}

std::string vendor_of(const std::string& processor) {
  for (const char* const vendor : {"Intel", "AMD", "ARM", "Apple", "Ampere"}) {
    if (processor.find(vendor) != std::string::npos) return vendor;
  }
  return "";
}

const OrtHardwareDevice* processor() {
  static const OrtHardwareDevice* const device = [] {
    auto* d = new OrtHardwareDevice;  // never destroyed: programs keep pointers until they end
    const std::string shown = processor_name();
    d->vendor = vendor_of(shown);
    d->vendor_id = vendor_number(d->vendor);
    if (!shown.empty()) d->metadata.set("Description", shown);
    return d;
  }();
  return device;
}

const OrtEpDevice* const* all_devices() {
  static const OrtEpDevice* const list[] = {cpu_device()};
  return list;
}

OrtStatus* get_ep_devices(const OrtEnv*, const OrtEpDevice* const** out, std::size_t* count) noexcept {
  return guarded([&] {
    require(out, "ep_devices") = all_devices();
    require(count, "num_ep_devices") = 1;
  });
}

OrtStatus* count_hardware(const OrtEnv*, std::size_t* out) noexcept {
  return guarded([&] { require(out, "num_devices") = 1; });
}

OrtStatus* get_hardware(const OrtEnv*, const OrtHardwareDevice** devices, std::size_t count) noexcept {
  return guarded([&] {
    if (count < 1) fail_ort(ORT_INVALID_ARGUMENT, "GetHardwareDevices: there is 1 device, and room for " + std::to_string(count));
    require(devices, "devices") = processor();
  });
}

OrtStatus* incompatibility(const OrtEnv*, const char* provider, const OrtHardwareDevice* device,
                           OrtDeviceEpIncompatibilityDetails** out) noexcept {
  return guarded([&] {
    require(out, "details") = nullptr;
    require(device, "hw");
    auto details = std::make_unique<OrtDeviceEpIncompatibilityDetails>();
    if (std::string(&require(provider, "ep_name")) != kCpu) {
      details->reasons = kDeviceIncompatible;
      details->notes = std::string(provider) + " does not run on the processor";
    }
    *out = details.release();
  });
}
OrtStatus* incompatibility_reasons(const OrtDeviceEpIncompatibilityDetails* d, std::uint32_t* out) noexcept {
  return guarded([&] { require(out, "reasons_bitmask") = require(d, "details").reasons; });
}
OrtStatus* incompatibility_notes(const OrtDeviceEpIncompatibilityDetails* d, const char** out) noexcept {
  return guarded([&] { require(out, "notes") = require(d, "details").notes.empty() ? nullptr : d->notes.c_str(); });
}
OrtStatus* incompatibility_code(const OrtDeviceEpIncompatibilityDetails* d, std::int32_t* out) noexcept {
  return guarded([&] { require(out, "error_code") = require(d, "details").error_code; });
}
void release_incompatibility(OrtDeviceEpIncompatibilityDetails* d) noexcept { delete d; }

OrtHardwareDeviceType hardware_type(const OrtHardwareDevice* d) noexcept { return d != nullptr ? d->type : HARDWARE_CPU; }
std::uint32_t hardware_vendor_id(const OrtHardwareDevice* d) noexcept { return d != nullptr ? d->vendor_id : 0; }
const char* hardware_vendor(const OrtHardwareDevice* d) noexcept { return d != nullptr ? d->vendor.c_str() : ""; }
std::uint32_t hardware_device_id(const OrtHardwareDevice* d) noexcept { return d != nullptr ? d->device_id : 0; }
const OrtKeyValuePairs* hardware_metadata(const OrtHardwareDevice* d) noexcept { return d != nullptr ? &d->metadata : nullptr; }

const char* ep_name(const OrtEpDevice* d) noexcept { return d != nullptr ? d->provider.c_str() : ""; }
const char* ep_vendor(const OrtEpDevice* d) noexcept { return d != nullptr ? d->vendor.c_str() : ""; }
const OrtKeyValuePairs* ep_metadata(const OrtEpDevice* d) noexcept { return d != nullptr ? &d->metadata : nullptr; }
const OrtKeyValuePairs* ep_options(const OrtEpDevice* d) noexcept { return d != nullptr ? &d->options : nullptr; }
const OrtHardwareDevice* ep_hardware(const OrtEpDevice* d) noexcept { return d != nullptr ? d->device : nullptr; }
const OrtMemoryInfo* ep_memory(const OrtEpDevice* d, OrtDeviceMemoryType type) noexcept {
  return d != nullptr && type == OrtDeviceMemoryType_DEFAULT ? cpu_memory() : nullptr;
}

OrtStatus* no_stream(const OrtEpDevice* device, const OrtKeyValuePairs*, OrtSyncStream** out) noexcept {
  return guarded([&] {
    require(out, "stream") = nullptr;
    fail_ort(ORT_INVALID_ARGUMENT, "CreateSyncStreamForEpDevice: " + require(device, "ep_device").provider +
                                       " has no streams; it computes in the call");
  });
}
void release_stream(OrtSyncStream*) noexcept {}
void* stream_handle(OrtSyncStream*) noexcept { return nullptr; }
void set_stream(OrtRunOptions*, OrtSyncStream*) noexcept {}  // there is none but NULL

OrtStatus* register_library(OrtEnv*, const char* name, const char* path) noexcept {
  return guarded([&] {
    fail_ort(ORT_NOT_IMPLEMENTED,
             std::string("the library '") + &require(path, "path") + "' (" + &require(name, "registration_name") +
                 ") cannot be registered: Sardonyx brings its own providers and loads no plugins. Ask for the "
                 "provider by its name; SDX_DROPIN_REAL_ORT may name an ONNX Runtime that has it");
  });
}

OrtStatus* unregister_library(OrtEnv*, const char* name) noexcept {
  return guarded([&] {
    fail_ort(ORT_INVALID_ARGUMENT,
             std::string("Execution provider library: ") + &require(name, "registration_name") + " was not registered.");
  });
}

OrtStatus* append_devices(OrtSessionOptions* options, OrtEnv*, const OrtEpDevice* const* devices, std::size_t count,
                          const char* const* keys, const char* const* values, std::size_t option_count) noexcept {
  return guarded([&] {
    require(options, "session_options");
    if (count == 0 || devices == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "Empty input. Must provide OrtEpDevice instances.");
    for (std::size_t i = 0; i < count; ++i) {
      if (devices[i] != cpu_device()) fail_ort(ORT_INVALID_ARGUMENT, "an OrtEpDevice is not one that GetEpDevices lists");
    }
    for (std::size_t i = 0; i < option_count; ++i) {
      require(keys, "ep_option_keys");
      require(values, "ep_option_vals");
      if (keys[i] == nullptr || *keys[i] == '\0')
        fail_ort(ORT_INVALID_ARGUMENT, "Provider options key at index " + std::to_string(i) + " is empty");
    }
  });
}

// Every policy comes to the same: the processor is the one device.
OrtStatus* set_policy(OrtSessionOptions* options, std::int32_t policy) noexcept {
  return guarded([&] {
    require(options, "session_options");
    if (policy < 0 || policy > 6) fail_ort(ORT_INVALID_ARGUMENT, "there is no selection policy " + std::to_string(policy));
  });
}

using SelectionDelegate = OrtStatus* (*)(const OrtEpDevice** devices, std::size_t count, const OrtKeyValuePairs* model,
                                         const OrtKeyValuePairs* runtime, const OrtEpDevice** selected, std::size_t most,
                                         std::size_t* selected_count, void* state);
OrtStatus* set_delegate(OrtSessionOptions* options, SelectionDelegate, void*) noexcept {
  return guarded([&] { require(options, "session_options"); });
}

template <class T>
void fill_list(T value, T* list, std::size_t room, std::size_t needed, const char* what) {
  if (room != needed) {
    fail_ort(ORT_INVALID_ARGUMENT,
             std::string(what) + ": the session has " + std::to_string(needed) + ", the array " + std::to_string(room));
  }
  if (needed != 0) std::fill_n(&require(list, what), needed, value);
}

OrtStatus* device_for_inputs(const OrtSession* session, const OrtEpDevice** out, std::size_t count) noexcept {
  return guarded([&] { fill_list(cpu_device(), out, count, require(session, "session").inputs.size(), "inputs"); });
}
OrtStatus* device_for_outputs(const OrtSession* session, const OrtEpDevice** out, std::size_t count) noexcept {
  return guarded([&] { fill_list(cpu_device(), out, count, require(session, "session").session.outputs().size(), "outputs"); });
}

}  // namespace

const OrtEpDevice* cpu_device() {
  static const OrtEpDevice* const device = [] {
    auto* d = new OrtEpDevice;
    d->provider = kCpu;
    d->vendor = "Sardonyx";
    d->metadata.set("version", SDX_DROPIN_VERSION);
    d->device = processor();
    return d;
  }();
  return device;
}

void fill_devices(Table& table) {
  table.set(Slot::GetEpDevices, &get_ep_devices);
  table.set(Slot::GetNumHardwareDevices, &count_hardware);
  table.set(Slot::GetHardwareDevices, &get_hardware);
  table.set(Slot::GetHardwareDeviceEpIncompatibilityDetails, &incompatibility);
  table.set(Slot::DeviceEpIncompatibilityDetails_GetReasonsBitmask, &incompatibility_reasons);
  table.set(Slot::DeviceEpIncompatibilityDetails_GetNotes, &incompatibility_notes);
  table.set(Slot::DeviceEpIncompatibilityDetails_GetErrorCode, &incompatibility_code);
  table.set(Slot::ReleaseDeviceEpIncompatibilityDetails, &release_incompatibility);
  table.set(Slot::HardwareDevice_Type, &hardware_type);
  table.set(Slot::HardwareDevice_VendorId, &hardware_vendor_id);
  table.set(Slot::HardwareDevice_Vendor, &hardware_vendor);
  table.set(Slot::HardwareDevice_DeviceId, &hardware_device_id);
  table.set(Slot::HardwareDevice_Metadata, &hardware_metadata);
  table.set(Slot::EpDevice_EpName, &ep_name);
  table.set(Slot::EpDevice_EpVendor, &ep_vendor);
  table.set(Slot::EpDevice_EpMetadata, &ep_metadata);
  table.set(Slot::EpDevice_EpOptions, &ep_options);
  table.set(Slot::EpDevice_Device, &ep_hardware);
  table.set(Slot::EpDevice_MemoryInfo, &ep_memory);
  table.set(Slot::CreateSyncStreamForEpDevice, &no_stream);
  table.set(Slot::ReleaseSyncStream, &release_stream);
  table.set(Slot::SyncStream_GetHandle, &stream_handle);
  table.set(Slot::RunOptionsSetSyncStream, &set_stream);
  table.set(Slot::RegisterExecutionProviderLibrary, &register_library);
  table.set(Slot::UnregisterExecutionProviderLibrary, &unregister_library);
  table.set(Slot::SessionOptionsAppendExecutionProvider_V2, &append_devices);
  table.set(Slot::SessionOptionsSetEpSelectionPolicy, &set_policy);
  table.set(Slot::SessionOptionsSetEpSelectionPolicyDelegate, &set_delegate);
  table.set(Slot::SessionGetEpDeviceForInputs, &device_for_inputs);
  table.set(Slot::SessionGetEpDeviceForOutputs, &device_for_outputs);
}

}  // namespace sdx::dropin
