// Opening sessions, and their information about the model.
#include <charconv>
#include <filesystem>

#include "base/system/mapped_file.h"
#include "dropin/custom/operators.h"
#include "dropin/model_file.h"
#include "dropin/objects.h"
#include "dropin/status.h"
#include "dropin/table.h"
#include "dropin/threads.h"
#include "session/observe/ort_trace.h"
#include "session/open.h"

namespace sdx::dropin {
namespace {

namespace fs = std::filesystem;

std::string entry(const OrtSessionOptions& options, std::string_view key) {
  const auto it = options.config.find(key);
  return it == options.config.end() ? std::string() : it->second;
}

// A model as it was given: a file, bytes, or one that was built.
struct Source {
  std::string path;        // empty: from memory
  std::string_view bytes;  // of the file too, once they were read
  std::optional<Model> model;
  std::shared_ptr<const MappedFile> file;
  std::string shown() const { return path.empty() ? "Load model from memory" : "Load model from " + path; }
};

// Reports errors of a model in ONNX Runtime's words.
[[noreturn]] void fail_to_load(const Source& source, const Error& error, bool readable) {
  const std::string start = source.path.empty() ? "" : source.shown() + " failed:";
  switch (error.code()) {
    case ErrorCode::io:
      if (!source.path.empty() && !fs::exists(source.path)) {
        fail_ort(ORT_NO_SUCHFILE, start + "Load model " + source.path + " failed. File doesn't exist");
      }
      fail_ort(ORT_FAIL, start + error.what());
    case ErrorCode::invalid_model:
      if (!readable) fail_ort(ORT_INVALID_PROTOBUF, start + "Protobuf parsing failed. " + error.what());
      fail_ort(ORT_INVALID_GRAPH, start + "This is an invalid model. " + error.what());
    default: fail_ort(ort_code(error.code()), start + error.what());
  }
}

// Translates the options to those of the engine.
SessionOptions engine_options(const OrtSessionOptions& options) {
  SessionOptions engine = options.engine;
  if (engine.providers.empty() || engine.providers.back() != "cpu") engine.providers.emplace_back("cpu");
  if (!options.own_threads) engine.threads = 0;
  if (const auto cores = options.config.find("session.intra_op_thread_affinities");
      cores != options.config.end() && cores->second.empty()) {
    fail_ort(ORT_INVALID_ARGUMENT, "Affinity string must not be empty");
  }
  engine.strict = entry(options, "session.disable_cpu_ep_fallback") == "1";
  if (!options.optimized_path.empty()) {
    engine.optimized_model = options.optimized_path;
    engine.optimized_model_basic = options.level == ORT_ENABLE_BASIC;
    engine.optimized_model_ort = entry(options, "session.save_model_format") == "ORT";
    engine.optimize = options.level != ORT_DISABLE_ALL;
  }
  return engine;
}

OrtModelMetadata metadata_of(const Session& session, const std::optional<ModelFacts>& facts) {
  if (facts) return facts->metadata;
  OrtModelMetadata metadata;  // of other formats: what the engine knows
  for (const auto& [key, value] : session.metadata()) {
    if (key == "producer_name") metadata.producer = value;
    if (key == "domain") metadata.domain = value;
    if (key == "description") metadata.description = value;
    if (key == "model_version") metadata.version = std::atoll(value.c_str());
  }
  metadata.custom = session.custom_metadata();
  return metadata;
}

// Values replace the weights of their names, files in memory those of external data. Values are copied: programs may change
// theirs.
GivenData given_weights(const OrtSessionOptions& options, std::string_view model) {
  GivenData given;
  for (const auto* list : {&options.initializers, &options.external_initializers}) {
    for (const auto& [name, value] : *list) given.tensors.insert_or_assign(name, value.value.tensor().clone());
  }
  for (const auto& [name, bytes] : options.external_files) {
    const fs::path location = fs::path(name).lexically_normal();
    given.files.emplace(location.string(), OwnedBytes{std::as_bytes(std::span(bytes.data(), bytes.size())), nullptr});
  }
  if (given.tensors.empty()) return given;
  const auto known = weights_of(model);
  for (const auto& [name, tensor] : given.tensors) {
    if (known.contains(name)) continue;
    fail_ort(ORT_INVALID_ARGUMENT, "The model has no initializer named '" + name + "', for which a value was given");
  }
  return given;
}

// How the optimised model's weights are written.
WriteOptions write_options(const OrtSessionOptions& options) {
  WriteOptions how;
  how.external_name = entry(options, "session.optimized_model_external_initializers_file_name");
  const std::string least = entry(options, "session.optimized_model_external_initializers_min_size_in_bytes");
  how.external_above = 1024;
  std::from_chars(least.data(), least.data() + least.size(), how.external_above);
  how.external_above = std::max<std::size_t>(how.external_above, 1);
  how.alignment = 1;
  return how;
}

Session open_engine(Source& source, const OrtSessionOptions& options, const SessionOptions& engine,
                    const session::InternalOptions& internal) {
  if (source.model) return session::open(*std::move(source.model), engine, internal);
  if (!source.path.empty()) return session::open(fs::path(source.path), engine, internal);
  const auto bytes = std::as_bytes(std::span(source.bytes.data(), source.bytes.size()));
  const fs::path folder = entry(options, "session.model_external_initializers_file_folder_path");
  return session::open(session::ModelBytes{bytes, folder}, engine, internal);
}

OrtLogger logger_of(const OrtEnv& env, const OrtSessionOptions& options) {
  OrtLogger logger = env.logger;
  if (options.log_sink.function != nullptr) logger.sink = options.log_sink;
  if (options.log_severity >= 0) logger.severity = static_cast<OrtLoggingLevel>(std::min(options.log_severity, 4));
  if (!options.log_id.empty()) logger.id = options.log_id;
  return logger;
}

// Adds facts about outputs that are in the file but unknown to the engine.
void describe_outputs(OrtSession& made, const ModelFacts& facts) {
  for (const ValueSpec& spec : made.session.outputs()) {
    const auto it = facts.values.find(spec.name);
    if (it == facts.values.end()) continue;
    const InputFacts& declared = it->second;
    if (declared.sparse) made.sparse_outputs.insert(spec.name);
    if (spec.has_shape || !spec.is_tensor || !declared.has_shape) continue;
    OrtTensorTypeAndShapeInfo& info = made.declared_outputs[spec.name];
    info.has_shape = true;
    info.shape.assign(declared.numbers.begin(), declared.numbers.end());
    for (const auto& [name, denotation] : declared.extents) info.symbols.push_back(name);
  }
}

void describe(OrtSession& made, const std::optional<ModelFacts>& facts) {
  const std::vector<ValueSpec>& inputs = made.session.inputs();
  const bool overridable = !facts || facts->ir_version >= 4;  // before it, all weights were inputs as well
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].has_default) made.inputs.push_back(i);
    if (inputs[i].has_default && overridable) made.overridable.push_back(i);
  }
  made.metadata = metadata_of(made.session, facts);
  if (facts) {
    for (const auto& [name, value] : facts->values) {
      if (!value.denotation.empty()) made.denotations.insert_or_assign(name, value.denotation);
    }
    made.unread = facts->unread;
    describe_outputs(made, *facts);
  }
}

void check_cancelled(const OrtSessionOptions& options) {
  if (options.cancel_load && options.cancel_load->load()) {
    fail_ort(ORT_MODEL_LOAD_CANCELED, "Session creation canceled due to user request.");
  }
}

OrtSession* open_source(const OrtEnv* env, Source source, const OrtSessionOptions* given) {
  const OrtEnv& environment = require(env, "env");
  const OrtSessionOptions defaults;
  const OrtSessionOptions& options = given == nullptr ? defaults : *given;
  check_cancelled(options);
  std::optional<ModelFacts> facts;
  try {
    if (!source.path.empty()) {
      source.file = MappedFile::open(source.path, 0);
      const auto bytes = source.file->bytes();
      source.bytes = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    facts = read_facts(source.bytes);
    const OrtLogger logger = logger_of(environment, options);
    const GivenData given_data = given_weights(options, source.bytes);
    session::InternalOptions internal;
    internal.data = &given_data;
    internal.initializers.assign(given_data.tensors.begin(), given_data.tensors.end());
    internal.operators = operators_of(options, logger);
    for (const auto& [denotation, extent] : options.by_denotation) {
      if (facts) add_extents(*facts, denotation, extent, internal.extents);
    }
    internal.optimized_model = write_options(options);
    internal.pool = pool_for(const_cast<OrtEnv&>(environment), options);
    auto made = std::make_unique<OrtSession>(open_engine(source, options, engine_options(options), internal));
    check_cancelled(options);
    made->logger = logger;
    made->options = options;
    made->started_ns =
        static_cast<std::uint64_t>(std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count());
    describe(*made, facts);
    made->logger.log(ORT_LOGGING_LEVEL_INFO, "Session successfully initialized.");
    return made.release();
  } catch (const Error& error) {
    fail_to_load(source, error, facts.has_value());
  }
}

OrtStatus* create(const OrtEnv* env, const char* path, const OrtSessionOptions* options, OrtSession** out) {
  return guarded([&] {
    require(out, "out") = nullptr;
    *out = open_session(env, &require(path, "model_path"), options);
  });
}
OrtStatus* create_from_array(const OrtEnv* env, const void* data, std::size_t size, const OrtSessionOptions* options,
                             OrtSession** out) {
  return guarded([&] {
    require(out, "out") = nullptr;
    *out = open_session(env, data, size, options);
  });
}
OrtStatus* create_prepacked(const OrtEnv* env, const char* path, const OrtSessionOptions* options, OrtPrepackedWeightsContainer*,
                            OrtSession** out) {
  return create(env, path, options, out);
}
OrtStatus* create_from_array_prepacked(const OrtEnv* env, const void* data, std::size_t size, const OrtSessionOptions* options,
                                       OrtPrepackedWeightsContainer*, OrtSession** out) {
  return create_from_array(env, data, size, options, out);
}
void release(OrtSession* session) { delete session; }

// The three lists of values that a session tells of.
enum class List { inputs, outputs, overridable };

template <List list>
std::size_t count_of(const OrtSession& session) {
  if constexpr (list == List::inputs) return session.inputs.size();
  if constexpr (list == List::overridable) return session.overridable.size();
  return session.session.outputs().size();
}
template <List list>
const ValueSpec& spec_at(const OrtSession* session, std::size_t index) {
  const OrtSession& s = require(session, "session");
  if (index >= count_of<list>(s)) fail_ort(ORT_FAIL, "out of index");
  if constexpr (list == List::inputs) return s.session.inputs()[s.inputs[index]];
  if constexpr (list == List::overridable) return s.session.inputs()[s.overridable[index]];
  return s.session.outputs()[index];
}
template <List list>
OrtStatus* get_count(const OrtSession* session, std::size_t* out) {
  return guarded([&] { require(out, "out") = count_of<list>(require(session, "session")); });
}
template <List list>
OrtStatus* get_name(const OrtSession* session, std::size_t index, OrtAllocator* allocator, char** out) {
  return guarded([&] {
    require(out, "value");
    *out = copy_text(allocator, spec_at<list>(session, index).name);
  });
}
template <List list>
OrtStatus* get_type(const OrtSession* session, std::size_t index, OrtTypeInfo** out) {
  return guarded([&] {
    const ValueSpec& spec = spec_at<list>(session, index);
    auto info = std::make_unique<OrtTypeInfo>(type_of_spec(spec));
    if constexpr (list == List::outputs) {
      const auto declared = session->declared_outputs.find(spec.name);
      if (declared != session->declared_outputs.end()) {
        const ElementType element = info->tensor.element;
        info->tensor = declared->second;
        info->tensor.element = element;
      }
      if (session->sparse_outputs.contains(spec.name)) info->type = ONNX_TYPE_SPARSETENSOR;
    }
    const auto denotation = session->denotations.find(spec.name);
    if (denotation != session->denotations.end()) info->denotation = denotation->second;
    require(out, "type_info");
    *out = info.release();
  });
}
template <List list>
OrtStatus* get_memory(const OrtSession* session, const OrtMemoryInfo** out, std::size_t count) {
  return guarded([&] {
    if (count != count_of<list>(require(session, "session"))) {
      fail_ort(ORT_INVALID_ARGUMENT, "the number of memory infos must be that of the session's values");
    }
    std::fill_n(&require(out, "memory_info"), count, cpu_memory());
  });
}

OrtStatus* end_profiling(OrtSession* session, OrtAllocator* allocator, char** out) {
  return guarded([&] {
    OrtSession& s = require(session, "session");
    require(out, "out");
    *out = copy_text(allocator, s.finish_profile());
  });
}
OrtStatus* profiling_start(const OrtSession* session, std::uint64_t* out) {
  return guarded([&] { require(out, "out") = require(session, "session").started_ns; });
}
OrtStatus* set_dynamic_options(OrtSession* session, const char* const*, const char* const*, std::size_t) {
  return guarded([&] { require(session, "session"); });  // there are none that the CPU takes
}
OrtStatus* release_captured(OrtSession* session, int) {
  return guarded([&] { require(session, "session"); });
}

}  // namespace

OrtSession::~OrtSession() {
  try {
    finish_profile();
  } catch (const std::exception& error) {
    logger.log(ORT_LOGGING_LEVEL_ERROR, std::string("the profile was not written: ") + error.what());
  }
}

std::string OrtSession::finish_profile() {
  if (!options.profile) return "";
  options.profile = false;
  std::string file = profile_file(options.profile_prefix);
  session::write_ort_trace(file, session.profile(), session::opening_of(session));
  return file;
}

std::string profile_file(const std::string& prefix) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof(stamp), "_%F_%H-%M-%S", &local);
  return prefix + stamp + ".json";
}

OrtSession* open_session(const OrtEnv* env, const std::string& path, const OrtSessionOptions* options) {
  if (path.empty()) fail_ort(ORT_INVALID_ARGUMENT, "model_path must not be empty");
  return open_source(env, {.path = path, .bytes = {}, .model = {}, .file = nullptr}, options);
}
OrtSession* open_session(const OrtEnv* env, const void* bytes, std::size_t size, const OrtSessionOptions* options) {
  if (size > 0) require_memory(bytes, "model_data");
  return open_source(env, {.path = "", .bytes = {static_cast<const char*>(bytes), size}, .model = {}, .file = nullptr}, options);
}
OrtSession* open_session(const OrtEnv* env, Model model, const OrtSessionOptions* options) {
  return open_source(env, {.path = "", .bytes = {}, .model = std::move(model), .file = nullptr}, options);
}

void fill_session(Table& table) {
  table.set(Slot::CreateSession, &create);
  table.set(Slot::CreateSessionFromArray, &create_from_array);
  table.set(Slot::CreateSessionWithPrepackedWeightsContainer, &create_prepacked);
  table.set(Slot::CreateSessionFromArrayWithPrepackedWeightsContainer, &create_from_array_prepacked);
  table.set(Slot::ReleaseSession, &release);
  table.set(Slot::SessionGetInputCount, &get_count<List::inputs>);
  table.set(Slot::SessionGetOutputCount, &get_count<List::outputs>);
  table.set(Slot::SessionGetOverridableInitializerCount, &get_count<List::overridable>);
  table.set(Slot::SessionGetInputName, &get_name<List::inputs>);
  table.set(Slot::SessionGetOutputName, &get_name<List::outputs>);
  table.set(Slot::SessionGetOverridableInitializerName, &get_name<List::overridable>);
  table.set(Slot::SessionGetInputTypeInfo, &get_type<List::inputs>);
  table.set(Slot::SessionGetOutputTypeInfo, &get_type<List::outputs>);
  table.set(Slot::SessionGetOverridableInitializerTypeInfo, &get_type<List::overridable>);
  table.set(Slot::SessionGetMemoryInfoForInputs, &get_memory<List::inputs>);
  table.set(Slot::SessionGetMemoryInfoForOutputs, &get_memory<List::outputs>);
  table.set(Slot::SessionEndProfiling, &end_profiling);
  table.set(Slot::SessionGetProfilingStartTimeNs, &profiling_start);
  table.set(Slot::SetEpDynamicOptions, &set_dynamic_options);
  table.set(Slot::SessionReleaseCapturedGraph, &release_captured);
}

}  // namespace sdx::dropin
