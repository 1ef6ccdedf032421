// Environments, options, sessions, runs, bindings, metadata.

#include "fuzz/dropin/world.h"
#include "support/graph_text.h"

namespace sdx::fuzz {
namespace {

// Models whose inputs and outputs are of every kind, and bytes that are no model.
const std::vector<std::string>& models() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> made;
    for (const char* text : {
             "input x: float32[2,n]\ny = Add(x, x)\noutput y: float32[2,n]",
             ("input x: float32[2,n]\ninput z: float32[2,n]\ny = Mul(x, z)\nn = Neg(y)\noutput y: float32[2,n]\noutput n: "
              "float32[2,n]"),
             "input x: float32[2,3]\nconstant w: float32[3,4] 1\ny = MatMul(x, w)\noutput y: float32[2,4]",
             "input x: float32[]\ninput z: float32[] = 1\ny = Add(x, z)\noutput y: float32[]",
             "input s: string[n]\ny = Identity(s)\noutput y: string[n]",
             "input x: float32[2,n]\ny = SplitToSequence(x) {axis=0}\noutput y: sequence(float32[1,n])",
             "input s: sequence(float32)\ny = SequenceLength(s)\noutput y: int64[]",
             "input x: int64[n]\ny, z = TopK(x, k) {axis=0}\nconstant k: int64[1] 2\noutput y: int64[m]",
             "input x: float32[n,2]\ny = ai.onnx.ml.ZipMap(x) {classlabels_int64s=[1, 2]}\noutput y: sequence(map(int64, "
             "float32))",
             "constant x: float32[2] 1 2\ny = Identity(x)\noutput x: float32[2]\noutput y: float32[2]",
         }) {
      try {
        made.push_back(testing::model_bytes(text));
      } catch (const Error&) {  // what the writer refuses is left out
      }
    }
    made.emplace_back();
    made.emplace_back("no model");
    made.push_back(made[0].substr(0, made[0].size() / 2));
    return made;
  }();
  return all;
}

void ignore_message(void*, OrtLoggingLevel, const char* category, const char* id, const char* where, const char* message) {
  if (category == nullptr || id == nullptr || where == nullptr || message == nullptr) std::abort();
}

void make_env(World& w) {
  const auto level = static_cast<OrtLoggingLevel>(w.random.between(3, 4));
  const OrtThreadingOptions* const threads = w.any(w.threads);
  switch (w.random.below(5)) {
    case 0: return w.make(w.envs, Slot::CreateEnv, level, w.text());
    case 1: return w.make(w.envs, Slot::CreateEnvWithCustomLogger, &ignore_message, static_cast<void*>(nullptr), level, w.text());
    case 2: return w.make(w.envs, Slot::CreateEnvWithGlobalThreadPools, level, w.text(), threads);
    case 3:
      return w.make(w.envs, Slot::CreateEnvWithCustomLoggerAndGlobalThreadPools, &ignore_message, static_cast<void*>(nullptr),
                    level, w.text(), threads);
    default: {
      const OrtEnvCreationOptions options{
          static_cast<std::uint32_t>(w.random.below(40)), level, w.text(), nullptr, nullptr, threads, w.any(w.pairs)};
      w.make(w.envs, Slot::CreateEnvWithOptions, w.random.chance(90) ? &options : nullptr);
    }
  }
}

void use_env(World& w) {
  OrtEnv* const env = w.any(w.envs);
  w.call(Slot::DisableTelemetryEvents, static_cast<const OrtEnv*>(env));
  w.call(Slot::UpdateEnvWithCustomLogLevel, env, static_cast<OrtLoggingLevel>(w.random.between(3, 4)));
  const OrtMemoryInfo* const info = w.random.chance(50) ? cpu_memory() : w.any(w.memories);
  OrtAllocator* shared = nullptr;
  w.call(Slot::CreateAndRegisterAllocator, env, info, static_cast<const OrtArenaCfg*>(nullptr));
  w.call(Slot::GetSharedAllocator, env, info, w.out(shared));
  w.call(Slot::UnregisterAllocator, env, info);
}

void make_options(World& w) {
  w.make(w.options, Slot::CreateSessionOptions);
  if (w.random.chance(20)) w.make(w.options, Slot::CloneSessionOptions, static_cast<const OrtSessionOptions*>(w.any(w.options)));
}

void set_option(World& w) {
  OrtSessionOptions* const o = w.any(w.options);
  const int number = static_cast<int>(w.random.between(-2, 4));
  switch (w.random.below(14)) {
    case 0: w.call(Slot::SetSessionExecutionMode, o, static_cast<ExecutionMode>(number)); break;
    case 1:
      w.call(Slot::SetSessionGraphOptimizationLevel, o, static_cast<GraphOptimizationLevel>(w.random.chance(50) ? 99 : number));
      break;
    case 2: w.call(Slot::SetIntraOpNumThreads, o, number); break;
    case 3: w.call(Slot::SetInterOpNumThreads, o, number); break;
    case 4: w.call(Slot::SetSessionLogId, o, w.text()); break;
    case 5: w.call(Slot::SetSessionLogSeverityLevel, o, 4); break;
    case 6: w.call(Slot::DisableMemPattern, o); break;
    case 7: w.call(Slot::DisableCpuMemArena, o); break;
    case 8: w.call(Slot::DisablePerSessionThreads, o); break;
    case 9: w.call(Slot::AddFreeDimensionOverrideByName, o, w.text(), static_cast<std::int64_t>(number)); break;
    case 10: w.call(Slot::AddFreeDimensionOverride, o, w.text(), static_cast<std::int64_t>(number)); break;
    case 11: w.call(Slot::AddSessionConfigEntry, o, w.text(), w.text()); break;
    case 12: w.call(Slot::SetDeterministicCompute, o, w.random.chance(50)); break;
    default: w.call(Slot::SessionOptionsSetLoadCancellationFlag, o, w.random.chance(20));
  }
}

void more_options(World& w) {
  OrtSessionOptions* const o = w.any(w.options);
  int answer = 0;
  std::size_t size = w.random.below(12);
  w.call(Slot::HasSessionConfigEntry, static_cast<const OrtSessionOptions*>(o), w.text(), w.out(answer));
  char* const room = w.random.chance(20) ? nullptr : w.memory(size);
  w.call(Slot::GetSessionConfigEntry, static_cast<const OrtSessionOptions*>(o), w.text(), room, w.out(size));
  w.make(w.pairs, Slot::GetSessionOptionsConfigEntries, static_cast<const OrtSessionOptions*>(o));
  const std::vector<const char*> keys{w.text(), w.text()}, values{w.text(), w.text()};
  w.call(Slot::SessionOptionsAppendExecutionProvider, o, w.random.chance(30) ? "CPU" : w.text(), w.list(keys), w.list(values),
         w.random.below(3));
  w.call(Slot::SetOptimizedModelFilePath, o, "/no/such/folder/model.onnx");
  w.call(Slot::SetOptimizedModelFilePath, o, "");
}

void make_session(World& w) {
  if (w.sessions.all.size() > 3) return w.release(w.sessions);
  const OrtEnv* const env = w.any(w.envs);
  const OrtSessionOptions* const options = w.any(w.options);
  const std::string& bytes = w.random.pick(models());
  const void* const data = w.random.chance(3) ? nullptr : static_cast<const void*>(bytes.data());
  switch (w.random.below(10)) {
    case 0: return w.make(w.sessions, Slot::CreateSession, env, w.random.chance(50) ? "/no/such/file" : w.text(), options);
    case 1: {
      OrtPrepackedWeightsContainer* const container = w.any(w.containers);
      OrtSession* made = nullptr;
      w.call(Slot::CreateSessionFromArrayWithPrepackedWeightsContainer, env, data, bytes.size(), options, container, w.out(made));
      if (made != nullptr) w.sessions.all.push_back(made);
      return;
    }
    default: w.make(w.sessions, Slot::CreateSessionFromArray, env, data, bytes.size(), options);
  }
}

void ask_session(World& w) {
  const OrtSession* const session = w.any(w.sessions);
  std::size_t count = 0;
  for (const Slot slot : {Slot::SessionGetInputCount, Slot::SessionGetOutputCount, Slot::SessionGetOverridableInitializerCount})
    w.call(slot, session, w.out(count));
  const std::size_t index = w.random.chance(95) ? w.random.below(3) : SIZE_MAX;
  for (const Slot slot : {Slot::SessionGetInputName, Slot::SessionGetOutputName, Slot::SessionGetOverridableInitializerName}) {
    char* name = nullptr;
    w.call(slot, session, index, w.random.chance(4) ? nullptr : default_allocator(), w.out(name));
    w.free(name);
  }
  for (const Slot slot :
       {Slot::SessionGetInputTypeInfo, Slot::SessionGetOutputTypeInfo, Slot::SessionGetOverridableInitializerTypeInfo})
    w.make(w.types, slot, session, index);
  std::vector<const OrtMemoryInfo*> memories(8);
  w.call(Slot::SessionGetMemoryInfoForInputs, session, memories.data(), w.random.below(8));
  w.call(Slot::SessionGetMemoryInfoForOutputs, session, memories.data(), w.random.below(8));
  std::uint64_t started = 0;
  w.call(Slot::SessionGetProfilingStartTimeNs, session, w.out(started));
  w.make(w.metadata, Slot::SessionGetModelMetadata, session);
  w.make(w.allocators, Slot::CreateAllocator, session, w.random.chance(50) ? cpu_memory() : w.any(w.memories));
}

void ask_metadata(World& w) {
  const OrtModelMetadata* const metadata = w.any(w.metadata);
  for (const Slot slot : {Slot::ModelMetadataGetProducerName, Slot::ModelMetadataGetGraphName, Slot::ModelMetadataGetDomain,
                          Slot::ModelMetadataGetDescription, Slot::ModelMetadataGetGraphDescription}) {
    char* text = nullptr;
    w.call(slot, metadata, w.random.chance(4) ? nullptr : default_allocator(), w.out(text));
    w.free(text);
  }
  std::int64_t number = 0;
  w.call(Slot::ModelMetadataGetVersion, metadata, w.out(number));
  char* value = nullptr;
  w.call(Slot::ModelMetadataLookupCustomMetadataMap, metadata, default_allocator(), w.text(), w.out(value));
  w.free(value);
  char** keys = nullptr;
  if (w.call(Slot::ModelMetadataGetCustomMetadataMapKeys, metadata, default_allocator(), &keys, &number) && keys != nullptr) {
    for (std::int64_t i = 0; i < number; ++i) w.free(keys[i]);
    w.free(static_cast<void*>(keys));
  }
}

void make_run_options(World& w) {
  w.make(w.run_options, Slot::CreateRunOptions);
  OrtRunOptions* const o = w.any(w.run_options);
  int level = 0;
  const char* tag = nullptr;
  w.call(Slot::RunOptionsSetRunLogSeverityLevel, o, static_cast<int>(w.random.between(-1, 5)));
  w.call(Slot::RunOptionsGetRunLogSeverityLevel, static_cast<const OrtRunOptions*>(o), w.out(level));
  w.call(Slot::RunOptionsSetRunTag, o, w.text());
  w.call(Slot::RunOptionsGetRunTag, static_cast<const OrtRunOptions*>(o), w.out(tag));
  w.call(Slot::AddRunConfigEntry, o, w.text(), w.text());
  w.call_value<const char*>(Slot::GetRunConfigEntry, static_cast<const OrtRunOptions*>(o), w.text());
  w.call(w.random.chance(20) ? Slot::RunOptionsSetTerminate : Slot::RunOptionsUnsetTerminate, o);
}

void run(World& w) {
  const std::vector<const char*> inputs{w.random.chance(70) ? "x" : w.text(), w.random.chance(70) ? "z" : w.text()};
  const std::vector<const char*> outputs{w.random.chance(80) ? "y" : w.text(), w.text()};
  const std::vector<const OrtValue*> values{w.any(w.values), w.any(w.values)};
  std::vector<OrtValue*> results{w.random.chance(10) ? w.any(w.values) : nullptr, nullptr};
  const std::vector<OrtValue*> before = results;
  const std::size_t given = w.random.chance(70) ? 1 : w.random.below(3), asked = w.random.chance(80) ? 1 : w.random.below(3);
  const bool good = w.call(Slot::Run, w.any(w.sessions), static_cast<const OrtRunOptions*>(w.any(w.run_options)), w.list(inputs),
                           w.list(values), given, w.list(outputs), asked, w.random.chance(3) ? nullptr : results.data());
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i] == before[i]) continue;
    if (!good) w.broken(Slot::Run, "fails and makes a value");
    w.values.all.push_back(results[i]);
  }
}

void bind(World& w) {
  w.make(w.bindings, Slot::CreateIoBinding, w.any(w.sessions));
  if (w.bindings.all.empty()) return;
  OrtIoBinding* const binding = w.any(w.bindings);
  w.call(Slot::BindInput, binding, w.random.chance(70) ? "x" : w.text(), static_cast<const OrtValue*>(w.any(w.values)));
  w.call(Slot::BindOutput, binding, w.random.chance(70) ? "y" : w.text(), static_cast<const OrtValue*>(w.any(w.values)));
  w.call(Slot::BindOutputToDevice, binding, w.random.chance(70) ? "y" : w.text(),
         w.random.chance(70) ? cpu_memory() : w.any(w.memories));
  w.call(Slot::RunWithBinding, w.any(w.sessions), static_cast<const OrtRunOptions*>(w.any(w.run_options)),
         static_cast<const OrtIoBinding*>(binding));
  w.call(Slot::SynchronizeBoundInputs, binding);
  w.call(Slot::SynchronizeBoundOutputs, binding);
  char* names = nullptr;
  std::size_t* lengths = nullptr;
  std::size_t count = 0;
  if (w.call(Slot::GetBoundOutputNames, static_cast<const OrtIoBinding*>(binding), default_allocator(), &names, &lengths,
             &count)) {
    w.free(names);
    w.free(lengths);
  }
  OrtValue** values = nullptr;
  if (w.call(Slot::GetBoundOutputValues, static_cast<const OrtIoBinding*>(binding), default_allocator(), &values, &count)) {
    for (std::size_t i = 0; i < count && values != nullptr; ++i) w.values.all.push_back(values[i]);
    w.free(static_cast<void*>(values));
  }
  w.call_void(w.random.chance(50) ? Slot::ClearBoundInputs : Slot::ClearBoundOutputs, binding);
}

// A binding holds its session.
void forget(World& w) {
  if (w.random.chance(30)) w.release_all(w.bindings);
  if (w.bindings.all.empty()) w.release(w.sessions);
  w.release(w.run_options);
  w.release(w.metadata);
  w.release(w.options);
}

}  // namespace

const std::vector<Action> kSessionActions{make_env,     use_env,      make_options, set_option,       set_option, more_options,
                                          make_session, make_session, ask_session,  ask_metadata,     run,        run,
                                          run,          bind,         bind,         make_run_options, forget};

}  // namespace sdx::fuzz
