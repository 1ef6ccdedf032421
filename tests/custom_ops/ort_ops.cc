// Operators as a library for ONNX Runtime brings them: ort.example.Twice(x) = 2 x, of floats, and the same of int64. With REFUSES
// it registers nothing and says why.

#include <cstring>
#include <initializer_list>

#include "dropin/abi.h"
#include "dropin/call.h"

using namespace sdx::dropin;

namespace {

const OrtApi* g_api = nullptr;

template <class... Args>
OrtStatus* ask(Slot slot, Args... args) {
  return Caller(g_api).call(slot, args...);
}

template <class T>
OrtStatus* twice(void*, OrtKernelContext* context) {
  const OrtValue* x = nullptr;
  OrtTensorTypeAndShapeInfo* info = nullptr;
  std::size_t rank = 0, count = 0;
  std::int64_t extents[8] = {};
  OrtValue* y = nullptr;
  const void* from = nullptr;
  void* to = nullptr;
  OrtStatus* failed = ask(Slot::KernelContext_GetInput, static_cast<const OrtKernelContext*>(context), std::size_t{0}, &x);
  if (failed == nullptr) failed = ask(Slot::GetTensorTypeAndShape, x, &info);
  const auto* const shape = static_cast<const OrtTensorTypeAndShapeInfo*>(info);
  if (failed == nullptr) failed = ask(Slot::GetDimensionsCount, shape, &rank);
  if (failed == nullptr) failed = ask(Slot::GetDimensions, shape, static_cast<std::int64_t*>(extents), rank);
  if (failed == nullptr) failed = ask(Slot::GetTensorShapeElementCount, shape, &count);
  if (info != nullptr) Caller(g_api).call<void>(Slot::ReleaseTensorTypeAndShapeInfo, info);
  if (failed == nullptr) {
    failed = ask(Slot::KernelContext_GetOutput, context, std::size_t{0}, static_cast<const std::int64_t*>(extents), rank, &y);
  }
  if (failed == nullptr) failed = ask(Slot::GetTensorData, x, &from);
  if (failed == nullptr) failed = ask(Slot::GetTensorMutableData, y, &to);
  for (std::size_t i = 0; failed == nullptr && i < count; ++i) static_cast<T*>(to)[i] = 2 * static_cast<const T*>(from)[i];
  return failed;
}

template <class T>
constexpr ElementType kElement = ELEMENT_FLOAT;
template <>
constexpr ElementType kElement<std::int64_t> = ELEMENT_INT64;

template <class T>
const OrtCustomOp& twice_op() {
  static const OrtCustomOp op = [] {
    OrtCustomOp made;
    std::memset(&made, 0, sizeof(made));
    made.version = 17;
    made.GetName = [](const OrtCustomOp*) { return "Twice"; };
    made.GetExecutionProviderType = [](const OrtCustomOp*) -> const char* { return nullptr; };
    made.GetInputType = [](const OrtCustomOp*, std::size_t) { return kElement<T>; };
    made.GetOutputType = [](const OrtCustomOp*, std::size_t) { return kElement<T>; };
    made.GetInputTypeCount = [](const OrtCustomOp*) { return std::size_t{1}; };
    made.GetOutputTypeCount = [](const OrtCustomOp*) { return std::size_t{1}; };
    made.GetInputCharacteristic = [](const OrtCustomOp*, std::size_t) { return INPUT_OUTPUT_REQUIRED; };
    made.GetOutputCharacteristic = [](const OrtCustomOp*, std::size_t) { return INPUT_OUTPUT_REQUIRED; };
    made.GetInputMemoryType = [](const OrtCustomOp*, std::size_t) { return OrtMemTypeDefault; };
    made.CreateKernelV2 = [](const OrtCustomOp*, const OrtApi*, const OrtKernelInfo*, void** kernel) -> OrtStatus* {
      *kernel = nullptr;
      return nullptr;
    };
    made.KernelComputeV2 = &twice<T>;
    made.KernelDestroy = [](void*) {};
    made.GetStartVersion = [](const OrtCustomOp*) { return 1; };
    made.GetEndVersion = [](const OrtCustomOp*) { return 0x7FFFFFFF; };
    return made;
  }();
  return op;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) OrtStatus* RegisterCustomOps(OrtSessionOptions* options,
                                                                               const OrtApiBase* base) {
  g_api = base->GetApi(17);
#ifdef REFUSES
  (void)options;
  return ask(Slot::CreateStatus, ORT_FAIL, "no licence");
#else
  static OrtCustomOpDomain* domain = nullptr;  // lives as long as the library
  if (OrtStatus* failed = domain == nullptr ? ask(Slot::CreateCustomOpDomain, "ort.example", &domain) : nullptr) return failed;
  static bool filled = false;
  for (const OrtCustomOp* op : {&twice_op<float>(), &twice_op<std::int64_t>()}) {
    if (OrtStatus* failed = filled ? nullptr : ask(Slot::CustomOpDomain_Add, domain, op)) return failed;
  }
  filled = true;
  return ask(Slot::AddCustomOpDomain, options, domain);
#endif
}
