#pragma once
// ONNX Runtime's C interface as programs see it: structures that they lay out themselves, and numbers. Order and values are fixed
// by the interface. Handles that programs only pass along are declared here and defined in objects.h and by their themes.

#include <cstddef>
#include <cstdint>

namespace sdx::dropin {

inline constexpr std::uint32_t kNewestApi = 31;  // GetApi answers 1 to this

struct OrtAllocator;
struct OrtAllocatorArray;
struct OrtArenaCfg;
struct OrtCustomOp;
struct OrtCustomOpDomain;
struct OrtEnv;
struct OrtEpDevice;
struct OrtExternalInitializerInfo;
struct OrtGraph;
struct OrtHardwareDevice;
struct OrtIoBinding;
struct OrtKernelContext;
struct OrtKernelInfo;
struct OrtKeyValuePairs;
struct OrtLogger;
struct OrtLoraAdapter;
struct OrtMapTypeInfo;
struct OrtMemoryInfo;
struct OrtModel;
struct OrtModelMetadata;
struct OrtNode;
struct OrtOp;
struct OrtOpAttr;
struct OrtOptionalTypeInfo;
struct OrtPrepackedWeightsContainer;
struct OrtRunOptions;
struct OrtSequenceTypeInfo;
struct OrtSession;
struct OrtSessionOptions;
struct OrtShapeInferContext;
struct OrtStatus;
struct OrtSyncStream;
struct OrtTensorTypeAndShapeInfo;
struct OrtThreadingOptions;
struct OrtTypeInfo;
struct OrtValue;
struct OrtValueInfo;

// The structure that GetApi returns: the functions of slots.txt. Programs call them by their places.
struct OrtApi;

struct OrtApiBase {
  const OrtApi* (*GetApi)(std::uint32_t version);
  const char* (*GetVersionString)();
};

enum OrtErrorCode : std::int32_t {
  ORT_OK = 0,
  ORT_FAIL = 1,
  ORT_INVALID_ARGUMENT = 2,
  ORT_NO_SUCHFILE = 3,
  ORT_NO_MODEL = 4,
  ORT_ENGINE_ERROR = 5,
  ORT_RUNTIME_EXCEPTION = 6,
  ORT_INVALID_PROTOBUF = 7,
  ORT_MODEL_LOADED = 8,
  ORT_NOT_IMPLEMENTED = 9,
  ORT_INVALID_GRAPH = 10,
  ORT_EP_FAIL = 11,
  ORT_MODEL_LOAD_CANCELED = 12,
  ORT_MODEL_REQUIRES_COMPILATION = 13,
  ORT_NOT_FOUND = 14,
  ORT_DEVICE_RESET = 15,
};

// ONNX's numbers up to 23; then ONNX Runtime's own (values/element_types.h).
enum ElementType : std::int32_t {
  ELEMENT_UNDEFINED = 0,
  ELEMENT_FLOAT = 1,
  ELEMENT_INT64 = 7,
  ELEMENT_STRING = 8,
  ELEMENT_BOOL = 9,
  ELEMENT_UINT2 = 24,
  ELEMENT_INT2 = 25,
  ELEMENT_FLOAT8E8M0 = 26,
};

enum OnnxType : std::int32_t {
  ONNX_TYPE_UNKNOWN = 0,
  ONNX_TYPE_TENSOR = 1,
  ONNX_TYPE_SEQUENCE = 2,
  ONNX_TYPE_MAP = 3,
  ONNX_TYPE_OPAQUE = 4,
  ONNX_TYPE_SPARSETENSOR = 5,
  ONNX_TYPE_OPTIONAL = 6,
};

enum OrtSparseFormat : std::int32_t {
  ORT_SPARSE_UNDEFINED = 0,
  ORT_SPARSE_COO = 1,
  ORT_SPARSE_CSRC = 2,
  ORT_SPARSE_BLOCK_SPARSE = 4,
};

enum OrtSparseIndicesFormat : std::int32_t {
  ORT_SPARSE_COO_INDICES = 0,
  ORT_SPARSE_CSR_INNER_INDICES = 1,
  ORT_SPARSE_CSR_OUTER_INDICES = 2,
  ORT_SPARSE_BLOCK_SPARSE_INDICES = 3,
};

enum OrtLoggingLevel : std::int32_t {
  ORT_LOGGING_LEVEL_VERBOSE = 0,
  ORT_LOGGING_LEVEL_INFO = 1,
  ORT_LOGGING_LEVEL_WARNING = 2,
  ORT_LOGGING_LEVEL_ERROR = 3,
  ORT_LOGGING_LEVEL_FATAL = 4,
};

enum OrtOpAttrType : std::int32_t {
  ORT_OP_ATTR_UNDEFINED = 0,
  ORT_OP_ATTR_INT = 1,
  ORT_OP_ATTR_INTS = 2,
  ORT_OP_ATTR_FLOAT = 3,
  ORT_OP_ATTR_FLOATS = 4,
  ORT_OP_ATTR_STRING = 5,
  ORT_OP_ATTR_STRINGS = 6,
  ORT_OP_ATTR_GRAPH = 7,
  ORT_OP_ATTR_TENSOR = 8,
};

enum GraphOptimizationLevel : std::int32_t {
  ORT_DISABLE_ALL = 0,
  ORT_ENABLE_BASIC = 1,
  ORT_ENABLE_EXTENDED = 2,
  ORT_ENABLE_LAYOUT = 3,
  ORT_ENABLE_ALL = 99,
};

enum ExecutionMode : std::int32_t { ORT_SEQUENTIAL = 0, ORT_PARALLEL = 1 };

enum OrtAllocatorType : std::int32_t {
  OrtInvalidAllocator = -1,
  OrtDeviceAllocator = 0,
  OrtArenaAllocator = 1,
  OrtReadOnlyAllocator = 2,
};

enum OrtMemType : std::int32_t { OrtMemTypeCPUInput = -2, OrtMemTypeCPUOutput = -1, OrtMemTypeDefault = 0 };
enum OrtDeviceMemoryType : std::int32_t { OrtDeviceMemoryType_DEFAULT = 0, OrtDeviceMemoryType_HOST_ACCESSIBLE = 5 };
enum OrtMemoryInfoDeviceType : std::int32_t { DEVICE_CPU = 0, DEVICE_GPU = 1, DEVICE_FPGA = 2, DEVICE_NPU = 3 };
enum OrtHardwareDeviceType : std::int32_t { HARDWARE_CPU = 0, HARDWARE_GPU = 1, HARDWARE_NPU = 2 };

// Programs bring their own, and call `Free` of ours directly. Fields after Info are there from the version that is named.
struct OrtAllocator {
  std::uint32_t version;
  void* (*Alloc)(OrtAllocator* self, std::size_t size);
  void (*Free)(OrtAllocator* self, void* memory);
  const OrtMemoryInfo* (*Info)(const OrtAllocator* self);
  void* (*Reserve)(OrtAllocator* self, std::size_t size);                               // 18
  OrtStatus* (*GetStats)(const OrtAllocator* self, OrtKeyValuePairs** out);             // 23; may be NULL
  void* (*AllocOnStream)(OrtAllocator* self, std::size_t size, OrtSyncStream* stream);  // 23; may be NULL
  OrtStatus* (*Shrink)(OrtAllocator* self);                                             // 25; may be NULL
};

using OrtLoggingFunction = void (*)(void* param, OrtLoggingLevel severity, const char* category, const char* logid,
                                    const char* code_location, const char* message);
using RunAsyncCallback = void (*)(void* user_data, OrtValue** outputs, std::size_t count, OrtStatus* status);
using ThreadWorker = void (*)(void* param);
using CreateThread = void* (*)(void* creation_options, ThreadWorker worker, void* param);
using JoinThread = void (*)(void* handle);

struct OrtEnvCreationOptions {  // 24
  std::uint32_t version;
  std::int32_t logging_severity_level;
  const char* log_id;
  OrtLoggingFunction custom_logging_function;  // may be NULL
  void* custom_logging_param;
  const OrtThreadingOptions* threading_options;  // may be NULL
  const OrtKeyValuePairs* config_entries;        // may be NULL
};

enum OrtCustomOpCharacteristic : std::int32_t { INPUT_OUTPUT_REQUIRED = 0, INPUT_OUTPUT_OPTIONAL = 1, INPUT_OUTPUT_VARIADIC = 2 };

// An operator that a program brings along. Fields are there from the version that is named; before it they must not be read.
struct OrtCustomOp {
  std::uint32_t version;
  void* (*CreateKernel)(const OrtCustomOp* op, const OrtApi* api, const OrtKernelInfo* info);
  const char* (*GetName)(const OrtCustomOp* op);
  const char* (*GetExecutionProviderType)(const OrtCustomOp* op);
  ElementType (*GetInputType)(const OrtCustomOp* op, std::size_t index);
  std::size_t (*GetInputTypeCount)(const OrtCustomOp* op);
  ElementType (*GetOutputType)(const OrtCustomOp* op, std::size_t index);
  std::size_t (*GetOutputTypeCount)(const OrtCustomOp* op);
  void (*KernelCompute)(void* kernel, OrtKernelContext* context);
  void (*KernelDestroy)(void* kernel);
  OrtCustomOpCharacteristic (*GetInputCharacteristic)(const OrtCustomOp* op, std::size_t index);                     // 8
  OrtCustomOpCharacteristic (*GetOutputCharacteristic)(const OrtCustomOp* op, std::size_t index);                    // 8
  OrtMemType (*GetInputMemoryType)(const OrtCustomOp* op, std::size_t index);                                        // 13
  int (*GetVariadicInputMinArity)(const OrtCustomOp* op);                                                            // 14
  int (*GetVariadicInputHomogeneity)(const OrtCustomOp* op);                                                         // 14
  int (*GetVariadicOutputMinArity)(const OrtCustomOp* op);                                                           // 14
  int (*GetVariadicOutputHomogeneity)(const OrtCustomOp* op);                                                        // 14
  OrtStatus* (*CreateKernelV2)(const OrtCustomOp* op, const OrtApi* api, const OrtKernelInfo* info, void** kernel);  // 16
  OrtStatus* (*KernelComputeV2)(void* kernel, OrtKernelContext* context);                                            // 16
  OrtStatus* (*InferOutputShapeFn)(const OrtCustomOp* op, OrtShapeInferContext* context);                            // 17
  int (*GetStartVersion)(const OrtCustomOp* op);                                                                     // 17
  int (*GetEndVersion)(const OrtCustomOp* op);                                                                       // 17
  std::size_t (*GetMayInplace)(int** inputs, int** outputs);                                                         // 18
  void (*ReleaseMayInplace)(int* inputs, int* outputs);                                                              // 18
  std::size_t (*GetAliasMap)(int** inputs, int** outputs);                                                           // 18
  void (*ReleaseAliasMap)(int* inputs, int* outputs);                                                                // 18
};

}  // namespace sdx::dropin
