#include <cstring>

#include "dropin/objects.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {

const OrtMemoryInfo* cpu_memory() {
  static const OrtMemoryInfo cpu;
  return &cpu;
}

namespace {

constexpr std::uint32_t kNvidia = 0x10DE, kIntel = 0x8086, kAmd = 0x1002, kMicrosoft = 0x1414, kQualcomm = 0x5143;

// The memories that have a name of their own.
struct Named {
  const char* name;
  OrtMemoryInfoDeviceType device;
  std::uint32_t vendor;
  OrtDeviceMemoryType memory;
};
constexpr Named kNamed[] = {
    {"Cpu", DEVICE_CPU, 0, OrtDeviceMemoryType_DEFAULT},
    {"Cuda", DEVICE_GPU, kNvidia, OrtDeviceMemoryType_DEFAULT},
    {"CudaPinned", DEVICE_GPU, kNvidia, OrtDeviceMemoryType_HOST_ACCESSIBLE},
    {"Hip", DEVICE_GPU, kAmd, OrtDeviceMemoryType_DEFAULT},
    {"HipPinned", DEVICE_GPU, kAmd, OrtDeviceMemoryType_HOST_ACCESSIBLE},
    {"DML", DEVICE_GPU, kMicrosoft, OrtDeviceMemoryType_DEFAULT},
    {"OpenVINO_GPU", DEVICE_GPU, kIntel, OrtDeviceMemoryType_DEFAULT},
    {"OpenVINO_RT_NPU", DEVICE_NPU, kIntel, OrtDeviceMemoryType_DEFAULT},
    {"QnnHtpShared", DEVICE_CPU, kQualcomm, OrtDeviceMemoryType_HOST_ACCESSIBLE},
    {"WebGPU_Buffer", DEVICE_GPU, 0, OrtDeviceMemoryType_DEFAULT},
    {"WebGPU_Buf", DEVICE_GPU, 0, OrtDeviceMemoryType_DEFAULT},
    {"WebNN_Tensor", DEVICE_GPU, 0, OrtDeviceMemoryType_DEFAULT},
    {"WebNN_Ten", DEVICE_GPU, 0, OrtDeviceMemoryType_DEFAULT},
};

OrtStatus* create_memory_info(const char* name, OrtAllocatorType type, int id, OrtMemType memory_type, OrtMemoryInfo** out) {
  return guarded([&] {
    if (name == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "MemoryInfo name cannot be null.");
    if (out == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "Output memory info cannot be null.");
    for (const Named& named : kNamed) {
      if (std::strcmp(named.name, name) != 0) continue;
      const bool cpu = named.device == DEVICE_CPU && named.vendor == 0;
      *out = new OrtMemoryInfo{name, type, memory_type, cpu ? 0 : id, named.device, named.vendor, named.memory, 0};
      return;
    }
    fail_ort(ORT_INVALID_ARGUMENT, "Specified device is not supported. Try CreateMemoryInfo_V2.");
  });
}

OrtStatus* create_cpu_memory_info(OrtAllocatorType type, OrtMemType memory_type, OrtMemoryInfo** out) {
  return create_memory_info("Cpu", type, 0, memory_type, out);
}

OrtStatus* create_memory_info_v2(const char* name, OrtMemoryInfoDeviceType device, std::uint32_t vendor, std::int32_t id,
                                 OrtDeviceMemoryType memory, std::size_t alignment, OrtAllocatorType type, OrtMemoryInfo** out) {
  return guarded([&] {
    if (name == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "MemoryInfo name cannot be null.");
    if (out == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "Output memory info cannot be null.");
    if (device < DEVICE_CPU || device > DEVICE_NPU) fail_ort(ORT_INVALID_ARGUMENT, "Invalid device type specified.");
    const OrtMemType type_of_memory = memory == OrtDeviceMemoryType_DEFAULT ? OrtMemTypeDefault : OrtMemTypeCPUOutput;
    *out = new OrtMemoryInfo{name, type, type_of_memory, id, device, vendor, memory, alignment};
  });
}

OrtStatus* compare_memory_info(const OrtMemoryInfo* a, const OrtMemoryInfo* b, int* out) {
  return guarded([&] { require(out, "out") = require(a, "info1") == require(b, "info2") ? 0 : -1; });
}

// A getter of one member.
template <auto member, class T>
OrtStatus* get(const OrtMemoryInfo* info, T* out) {
  return guarded([&] { require(out, "out") = require(info, "memory info").*member; });
}
OrtStatus* get_name(const OrtMemoryInfo* info, const char** out) {
  return guarded([&] { require(out, "out") = require(info, "memory info").name.c_str(); });
}
void get_device_type(const OrtMemoryInfo* info, OrtMemoryInfoDeviceType* out) { *out = info->device; }
OrtDeviceMemoryType get_device_memory_type(const OrtMemoryInfo* info) { return info->device_memory; }
std::uint32_t get_vendor(const OrtMemoryInfo* info) { return info->vendor; }
void release(OrtMemoryInfo* info) {
  if (info != cpu_memory()) delete info;
}

}  // namespace

void fill_memory_info(Table& table) {
  table.set(Slot::CreateMemoryInfo, &create_memory_info);
  table.set(Slot::CreateCpuMemoryInfo, &create_cpu_memory_info);
  table.set(Slot::CreateMemoryInfo_V2, &create_memory_info_v2);
  table.set(Slot::CompareMemoryInfo, &compare_memory_info);
  table.set(Slot::MemoryInfoGetName, &get_name);
  table.set(Slot::MemoryInfoGetId, &get<&OrtMemoryInfo::id, int>);
  table.set(Slot::MemoryInfoGetMemType, &get<&OrtMemoryInfo::memory_type, OrtMemType>);
  table.set(Slot::MemoryInfoGetType, &get<&OrtMemoryInfo::type, OrtAllocatorType>);
  table.set(Slot::MemoryInfoGetDeviceType, &get_device_type);
  table.set(Slot::MemoryInfoGetDeviceMemType, &get_device_memory_type);
  table.set(Slot::MemoryInfoGetVendorId, &get_vendor);
  table.set(Slot::ReleaseMemoryInfo, &release);
}

}  // namespace sdx::dropin
