// Memory, types, allocators, lists of keys and values, devices, attributes, adapters, statuses.

#include <cstring>

#include "fuzz/dropin/world.h"

namespace sdx::fuzz {
namespace {

void memory_infos(World& w) {
  const int number = static_cast<int>(w.random.between(-2, 3));
  const auto type = static_cast<OrtAllocatorType>(number);
  const auto memory = static_cast<OrtMemType>(w.random.between(-3, 1));
  w.make(w.memories, Slot::CreateMemoryInfo, w.text(), type, number, memory);
  w.make(w.memories, Slot::CreateCpuMemoryInfo, type, memory);
  const OrtMemoryInfo *const a = w.any(w.memories), *const b = w.any(w.memories);
  int answer = 0, id = 0;
  const char* name = nullptr;
  OrtMemType kind = OrtMemTypeDefault;
  OrtAllocatorType allocator = OrtDeviceAllocator;
  w.call(Slot::CompareMemoryInfo, a, b, w.out(answer));
  w.call(Slot::MemoryInfoGetName, a, w.out(name));
  w.call(Slot::MemoryInfoGetId, a, w.out(id));
  w.call(Slot::MemoryInfoGetMemType, a, w.out(kind));
  w.call(Slot::MemoryInfoGetType, a, w.out(allocator));
}

void parts_of_types(World& w) {
  const OrtTypeInfo* const type = w.any(w.types);
  OnnxType kind = ONNX_TYPE_UNKNOWN;
  const char* denotation = nullptr;
  std::size_t length = 0;
  w.call(Slot::GetOnnxTypeFromTypeInfo, type, w.out(kind));
  w.call(Slot::GetDenotationFromTypeInfo, type, w.out(denotation), w.out(length));
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  const OrtMapTypeInfo* map = nullptr;
  const OrtSequenceTypeInfo* sequence = nullptr;
  const OrtOptionalTypeInfo* optional = nullptr;
  w.call(Slot::CastTypeInfoToTensorInfo, type, w.out(tensor));
  w.call(Slot::CastTypeInfoToMapTypeInfo, type, w.out(map));
  w.call(Slot::CastTypeInfoToSequenceTypeInfo, type, w.out(sequence));
  w.call(Slot::CastTypeInfoToOptionalTypeInfo, type, w.out(optional));
  ElementType element = ELEMENT_UNDEFINED;
  w.call(Slot::GetMapKeyType, map, w.out(element));
  w.make(w.types, Slot::GetMapValueType, map);
  w.make(w.types, Slot::GetSequenceElementType, sequence);
  w.make(w.types, Slot::GetOptionalContainedTypeInfo, optional);
  w.call(Slot::GetTensorElementType, tensor, w.out(element));
}

void shapes(World& w) {
  w.make(w.shapes, Slot::CreateTensorTypeAndShapeInfo);
  OrtTensorTypeAndShapeInfo* const info = w.any(w.shapes);
  const OrtTensorTypeAndShapeInfo* const asked = info;
  const auto extents = w.extents();
  std::vector<const char*> names{w.text(), w.text(), w.text(), w.text(), w.text()};
  w.call(Slot::SetTensorElementType, info, w.element());
  w.call(Slot::SetDimensions, info, w.list(extents), extents.size());
  const char** const given = w.random.chance(3) ? nullptr : names.data();
  w.call(Slot::SetSymbolicDimensions, info, given, w.count());
  std::size_t rank = 0;
  std::vector<std::int64_t> read(6);
  w.call(Slot::GetDimensionsCount, asked, w.out(rank));
  w.call(Slot::GetDimensions, asked, w.random.chance(3) ? nullptr : read.data(), w.random.below(6));
  w.call(Slot::GetSymbolicDimensions, asked, given, w.count());
  w.call(Slot::GetTensorShapeElementCount, asked, w.out(rank));
}

void allocators(World& w) {
  OrtAllocator* allocator = nullptr;
  w.call(Slot::GetAllocatorWithDefaultOptions, w.out(allocator));
  static constexpr std::size_t kSizes[] = {0, 1, 64, 4096, std::size_t{1} << 50, SIZE_MAX};
  void* memory = nullptr;
  const std::size_t size = kSizes[w.random.below(std::size(kSizes))];
  OrtAllocator* const from = w.random.chance(50) ? default_allocator() : w.any(w.allocators);
  if (w.call(Slot::AllocatorAlloc, from, size, w.out(memory)) && memory != nullptr && size < 1 << 20)
    std::memset(memory, 1, size);
  if (memory != nullptr) w.call(Slot::AllocatorFree, from, memory);
  const OrtMemoryInfo* info = nullptr;
  w.call(Slot::AllocatorGetInfo, static_cast<const OrtAllocator*>(from), w.out(info));
  w.make(w.pairs, Slot::AllocatorGetStats, static_cast<const OrtAllocator*>(from));
}

// These return nothing: what ONNX Runtime takes alone is passed.
void key_values(World& w) {
  OrtKeyValuePairs* made = nullptr;
  w.call_void(Slot::CreateKeyValuePairs, &made);
  w.pairs.all.push_back(made);
  OrtKeyValuePairs* const pairs = w.random.pick(w.pairs.all);
  const char *const key = w.text(), *const value = w.text();
  w.call_void(Slot::AddKeyValuePair, pairs, key, value);
  w.call_value<const char*>(Slot::GetKeyValue, static_cast<const OrtKeyValuePairs*>(pairs), key);
  const char *const *keys = nullptr, *const *values = nullptr;
  std::size_t count = 0;
  w.call_void(Slot::GetKeyValuePairs, static_cast<const OrtKeyValuePairs*>(pairs), &keys, &values, &count);
  for (std::size_t i = 0; i < count; ++i) {
    if (keys[i] == nullptr || values[i] == nullptr) w.broken(Slot::GetKeyValuePairs, "gives NULL");
  }
  w.call_void(Slot::RemoveKeyValuePair, pairs, w.text());
}

void thread_options(World& w) {
  w.make(w.threads, Slot::CreateThreadingOptions);
  OrtThreadingOptions* const threads = w.any(w.threads);
  const int number = static_cast<int>(w.random.between(-1, 3));
  w.call(Slot::SetGlobalIntraOpNumThreads, threads, number);
  w.call(Slot::SetGlobalInterOpNumThreads, threads, number);
  w.call(Slot::SetGlobalSpinControl, threads, number);
  w.call(Slot::SetGlobalDenormalAsZero, threads);
  w.call(Slot::SetGlobalIntraOpThreadAffinity, threads, w.text());
}

void attributes(World& w) {
  char* const data = w.memory(64);
  for (std::size_t i = 0; i < 64; ++i) data[i] = static_cast<char>(w.random.below(256));
  const auto type = static_cast<OrtOpAttrType>(w.random.below(10));
  static const char* const kStrings[] = {"a", "", "bc", nullptr};
  const void* const from = w.random.chance(5) ? nullptr : type == ORT_OP_ATTR_STRINGS ? static_cast<const void*>(kStrings) : data;
  w.make(w.attributes, Slot::CreateOpAttr, w.text(), from, static_cast<int>(w.random.between(-1, 4)), type);
  const OrtOpAttr* const attribute = w.any(w.attributes);
  std::size_t length = 0;
  const std::size_t room = w.random.below(40);
  w.call(Slot::ReadOpAttr, attribute, static_cast<OrtOpAttrType>(w.random.below(10)), static_cast<void*>(w.memory(room)), room,
         w.out(length));
  OrtOpAttrType kind = ORT_OP_ATTR_UNDEFINED;
  const char* name = nullptr;
  w.call(Slot::OpAttr_GetType, attribute, w.out(kind));
  w.call(Slot::OpAttr_GetName, attribute, w.out(name));
  w.make(w.values, Slot::OpAttr_GetTensorAttributeAsOrtValue, attribute);
}

void providers_and_devices(World& w) {
  char** names = nullptr;
  int count = 0;
  if (w.call(Slot::GetAvailableProviders, w.out(names), w.out(count)) && names != nullptr)
    w.call(Slot::ReleaseAvailableProviders, names, count);
  const OrtEpDevice* const* devices = nullptr;
  std::size_t number = 0;
  if (!w.call(Slot::GetEpDevices, static_cast<const OrtEnv*>(w.any(w.envs)), &devices, &number)) return;
  for (std::size_t i = 0; i < number; ++i) {
    const OrtEpDevice* const device = devices[i];
    for (const Slot slot : {Slot::EpDevice_EpName, Slot::EpDevice_EpVendor}) {
      if (w.call_value<const char*>(slot, device) == nullptr) w.broken(slot, "gives NULL");
    }
    const auto* const hardware = w.call_value<const OrtHardwareDevice*>(Slot::EpDevice_Device, device);
    w.call_value<const char*>(Slot::HardwareDevice_Vendor, hardware);
    w.call_value<std::uint32_t>(Slot::HardwareDevice_VendorId, hardware);
  }
  const std::vector<const char*> keys{w.text()}, values{w.text()};
  w.call(Slot::SessionOptionsAppendExecutionProvider_V2, w.any(w.options), w.any(w.envs), w.random.chance(4) ? nullptr : devices,
         w.random.below(number + 1), w.list(keys), w.list(values), w.random.below(2));
  w.call(Slot::SessionOptionsSetEpSelectionPolicy, w.any(w.options), static_cast<std::int32_t>(w.random.between(-1, 9)));
}

void statuses(World& w) {
  auto* const status = w.call_value<OrtStatus*>(Slot::CreateStatus, static_cast<OrtErrorCode>(w.random.below(20)), w.text());
  w.call_value<OrtErrorCode>(Slot::GetErrorCode, static_cast<const OrtStatus*>(status));
  w.call_value<const char*>(Slot::GetErrorMessage, static_cast<const OrtStatus*>(status));
  w.call_void(Slot::ReleaseStatus, status);
}

void adapters_and_domains(World& w) {
  const std::size_t size = w.random.below(200);
  char* const bytes = w.memory(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(w.random.chance(50) ? 0 : w.random.below(256));
  if (size > 8) std::memcpy(bytes + 4, "TORT", 4);
  w.make(w.adapters, Slot::CreateLoraAdapterFromArray, static_cast<const void*>(bytes), size,
         static_cast<OrtAllocator*>(nullptr));
  w.call(Slot::RunOptionsAddActiveLoraAdapter, w.any(w.run_options), static_cast<const OrtLoraAdapter*>(w.any(w.adapters)));
  w.make(w.domains, Slot::CreateCustomOpDomain, w.text());
  w.call(Slot::CustomOpDomain_Add, w.any(w.domains), static_cast<const OrtCustomOp*>(nullptr));
  w.call(Slot::AddCustomOpDomain, w.any(w.options), w.any(w.domains));
  w.make(w.containers, Slot::CreatePrepackedWeightsContainer);
  w.call(Slot::RegisterCustomOpsUsingFunction, w.any(w.options), "sdx_no_such_function");
  w.call(Slot::RegisterCustomOpsLibrary_V2, w.any(w.options), "/no/such/library.so");
}

void tables(World& w) {
  for (const Slot slot :
       {Slot::GetTrainingApi, Slot::GetModelEditorApi, Slot::GetCompileApi, Slot::GetEpApi, Slot::GetInteropApi})
    w.call_value<const void*>(slot, static_cast<std::uint32_t>(w.random.below(40)));
  w.call_value<const char*>(Slot::GetBuildInfoString);
  w.call_value<const void*>(Slot::GetExperimentalFunction, w.text());
}

void forget(World& w) {
  w.release(w.memories);
  w.release(w.types);
  w.release(w.shapes);
  w.release(w.pairs);
  w.release(w.attributes);
}

}  // namespace

const std::vector<Action> kInfoActions{memory_infos, parts_of_types,       shapes,     allocators,
                                       key_values,   thread_options,       attributes, providers_and_devices,
                                       statuses,     adapters_and_domains, tables,     forget};

}  // namespace sdx::fuzz
