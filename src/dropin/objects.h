#pragma once
// The handles that programs pass along, and the parts of them that several subjects share.

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <sdx/session.hpp>
#include <sdx/tensor.hpp>

#include "dropin/abi.h"

namespace sdx {
class ThreadPool;
struct Model;
}  // namespace sdx

namespace sdx::dropin {

struct OrtKeyValuePairs {
  std::map<std::string, std::string, std::less<>> entries;
  std::vector<const char*> keys, values;  // of `entries`, in their order; programs read them until the next change
  void set(std::string key, std::string value);
  void erase(std::string_view key);

 private:
  void list();
};

// The place of memory. Two are equal if all members are.
struct OrtMemoryInfo {
  std::string name = "Cpu";
  OrtAllocatorType type = OrtDeviceAllocator;
  OrtMemType memory_type = OrtMemTypeDefault;
  int id = 0;
  OrtMemoryInfoDeviceType device = DEVICE_CPU;
  std::uint32_t vendor = 0;
  OrtDeviceMemoryType device_memory = OrtDeviceMemoryType_DEFAULT;
  std::size_t alignment = 0;

  bool operator==(const OrtMemoryInfo&) const = default;
};
const OrtMemoryInfo* cpu_memory();  // for good
OrtAllocator* default_allocator();  // for good, as GetAllocatorWithDefaultOptions answers
// Copies the text, with a 0 behind it, into memory of the allocator. Throws OrtError where it has none.
char* copy_text(OrtAllocator* allocator, std::string_view text);
void* allocate(OrtAllocator* allocator, std::size_t bytes);

// Programs' own functions for messages; none: stderr.
struct LogSink {
  OrtLoggingFunction function = nullptr;
  void* param = nullptr;
};
struct OrtLogger {
  LogSink sink;
  OrtLoggingLevel severity = ORT_LOGGING_LEVEL_WARNING;
  std::string id;
  void log(OrtLoggingLevel level, std::string_view message, std::string_view where = "sardonyx") const;
};

// A program's own functions for threads; `create` null: none.
struct CustomThreads {
  CreateThread create = nullptr;
  void* argument = nullptr;
  JoinThread join = nullptr;
};
struct OrtThreadingOptions {
  int intra_op = 0, inter_op = 0;  // 0: as many as there are cores
  CustomThreads custom_threads;
  std::string affinity;
  bool spin = true, denormals_are_zero = false;
};

// One for the process, counted: a second CreateEnv gives the first again.
struct OrtEnv {
  std::mutex mutex;  // guards what follows
  int holders = 0;
  OrtLogger logger;
  bool global_threads = false;
  OrtThreadingOptions threads;
  std::shared_ptr<ThreadPool> pool;                                 // as `threads` says; see threads.cc
  std::vector<std::pair<OrtMemoryInfo, OrtAllocator*>> allocators;  // registered by programs, or ours; see env.cc
  OrtKeyValuePairs config;
};
// The environment that exists; null before the first CreateEnv and after the last ReleaseEnv. For messages without a session.
OrtEnv* current_env();

// Sparse tensors are the drop-in's own: the engine has dense ones alone, and sessions get them dense.
struct SparseTensor {
  OrtSparseFormat format = ORT_SPARSE_UNDEFINED;
  DataType dtype = DataType::undefined;
  Shape dense_shape;
  Tensor values;
  std::vector<Tensor> indices;  // COO: one; CSR: inner and outer; block sparse: one, of int32
};

struct OrtValue {
  Value value;  // empty: an optional without a value, or `sparse`
  std::shared_ptr<SparseTensor> sparse;
  OnnxType type = ONNX_TYPE_TENSOR;
  std::shared_ptr<const OrtMemoryInfo> memory;  // null: cpu_memory()

  const OrtMemoryInfo* where() const { return memory ? memory.get() : cpu_memory(); }
};
OnnxType onnx_type_of(const Value& value);
// A new value that the program owns.
OrtValue* make_value(Value value);
// Throws OrtError(ORT_INVALID_ARGUMENT) for NULL and other kinds than tensors.
const Tensor& tensor_of(const OrtValue* value);
// The value that a session takes: sparse tensors are made dense.
Value engine_value(const OrtValue& value);
// The other way round, for outputs that the model declares as sparse: elements that are not zero, with their places in the
// flattened tensor. A new value that the program owns.
OrtValue* make_sparse_value(const Tensor& dense);

struct OrtTensorTypeAndShapeInfo {
  ElementType element = ELEMENT_UNDEFINED;
  bool has_shape = false;
  Shape shape;                       // -1: not fixed
  std::vector<std::string> symbols;  // as many as extents; "" where there is no name
};

// The type of a value or of a declaration. The parts that programs cast to are inside it.
struct OrtTypeInfo;
struct OrtMapTypeInfo {
  ElementType key = ELEMENT_UNDEFINED;
  std::shared_ptr<const OrtTypeInfo> value;
};
struct OrtSequenceTypeInfo {
  std::shared_ptr<const OrtTypeInfo> element;
};
struct OrtOptionalTypeInfo {
  std::shared_ptr<const OrtTypeInfo> element;
};
struct OrtTypeInfo {
  OnnxType type = ONNX_TYPE_UNKNOWN;
  std::string denotation;
  OrtTensorTypeAndShapeInfo tensor;  // of tensors and sparse tensors
  OrtMapTypeInfo map;
  OrtSequenceTypeInfo sequence;
  OrtOptionalTypeInfo optional;
};
// Parses a type in our notation: "float32[batch,3]", "sequence(map(int64, float32))", "optional(…)", "sparse(…)".
OrtTypeInfo type_of_text(std::string_view text);
OrtTypeInfo type_of_spec(const ValueSpec& spec);
OrtTypeInfo type_of_value(const OrtValue& value);

struct OrtModelMetadata {
  std::string producer, graph_name, domain, description, graph_description;
  std::int64_t version = 0;
  std::vector<std::pair<std::string, std::string>> custom;
};

struct OrtCustomOpDomain {
  std::string name;
  std::vector<const OrtCustomOp*> ops;  // the program's
};

struct OrtPrepackedWeightsContainer {};

struct OrtSessionOptions {
  SessionOptions engine;
  std::map<std::string, std::string, std::less<>> config;
  std::string log_id;
  int log_severity = -1;  // -1: the environment's
  int log_verbosity = 0;
  LogSink log_sink;
  GraphOptimizationLevel level = ORT_ENABLE_ALL;
  ExecutionMode mode = ORT_SEQUENTIAL;
  int inter_op = 0;  // threads for operators side by side; 0: the program does not say
  CustomThreads custom_threads;
  bool memory_pattern = true, arena = true, own_threads = true, deterministic = false;
  std::string optimized_path, profile_prefix;
  bool profile = false;
  std::vector<std::pair<std::string, std::int64_t>> by_denotation;  // free dimensions
  std::vector<OrtCustomOpDomain*> domains;                          // the program's; alive as long as sessions are
  std::vector<std::pair<std::string, OrtValue>> initializers;       // replace those of the model by name
  std::vector<std::pair<std::string, OrtValue>> external_initializers;
  std::map<std::string, std::string_view> external_files;  // of external data, in the program's memory
  std::vector<std::shared_ptr<const void>> kept;           // libraries of operators, and other objects that must outlive sessions
  std::shared_ptr<std::atomic<bool>> cancel_load;
};

// Values by the names of the inputs that they are given for (LoRA).
struct OrtLoraAdapter {
  std::vector<std::pair<std::string, OrtValue>> parameters;
};

struct OrtRunOptions {
  int log_severity = ORT_LOGGING_LEVEL_WARNING, log_verbosity = 0;
  std::string tag;
  CancelToken terminate;
  std::map<std::string, std::string, std::less<>> config;
  std::vector<const OrtLoraAdapter*> adapters;
  std::optional<std::string> profile_prefix;  // of the file for each run's profile; none: not profiled
};

struct OrtSession {
  explicit OrtSession(Session opened) : session(std::move(opened)) {}
  ~OrtSession();  // writes a profile that the program did not end
  OrtSession(const OrtSession&) = delete;
  OrtSession& operator=(const OrtSession&) = delete;

  // Writes the profile, where one is recorded, and answers its file.
  std::string finish_profile();

  Session session;
  OrtLogger logger;
  OrtSessionOptions options;                     // as they were when it was made
  std::vector<std::size_t> inputs, overridable;  // index into session.inputs()
  OrtModelMetadata metadata;
  std::map<std::string, std::string, std::less<>> denotations;  // of types, by the value's name
  std::map<std::string, OrtTensorTypeAndShapeInfo, std::less<>>
      declared_outputs;                               // shapes of outputs that the engine infers none for
  std::set<std::string, std::less<>> sparse_outputs;  // declared as sparse tensors
  std::set<std::string, std::less<>> unread;          // inputs that no node reads, which programs may leave out
  std::uint64_t started_ns = 0;
  std::vector<std::shared_ptr<const void>> kept;
};

// "<prefix>_<date>_<time>.json"
std::string profile_file(const std::string& prefix);

// A session over a model in a file, in memory or built, as CreateSession does it.
OrtSession* open_session(const OrtEnv* env, const std::string& path, const OrtSessionOptions* options);
OrtSession* open_session(const OrtEnv* env, const void* bytes, std::size_t size, const OrtSessionOptions* options);
OrtSession* open_session(const OrtEnv* env, Model model, const OrtSessionOptions* options);

// Runs and fills `outputs`: where one is given already, its memory receives the result. Throws.
void run_session(OrtSession& session, const OrtRunOptions* options, const char* const* input_names, const OrtValue* const* inputs,
                 std::size_t input_count, const char* const* output_names, std::size_t output_count, OrtValue** outputs);

// ONNX Runtime's numbers of element types against ours, which differ from 24 on.
ElementType element_of(DataType type);
DataType type_of_element(ElementType element);  // undefined for numbers that are none

}  // namespace sdx::dropin
