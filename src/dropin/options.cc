// Options of sessions. What our engine decides for itself (memory patterns, arenas, spinning) is taken and
// kept, so that programs read back what they wrote.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "dropin/objects.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {
namespace {

constexpr std::size_t kLongestKey = 1024, kLongestValue = 8192;

OrtStatus* create(OrtSessionOptions** out) {
  return guarded([&] {
    auto made = std::make_unique<OrtSessionOptions>();
    made->cancel_load = std::make_shared<std::atomic<bool>>(false);
    // Another ONNX Runtime, for providers that are not ours.
    if (const char* real = std::getenv("SDX_DROPIN_REAL_ORT")) made->engine.ort_library = real;
    require(out, "options");
    *out = made.release();
  });
}
OrtStatus* clone(const OrtSessionOptions* options, OrtSessionOptions** out) {
  return guarded([&] {
    auto made = std::make_unique<OrtSessionOptions>(require(options, "in_options"));
    made->cancel_load = std::make_shared<std::atomic<bool>>(false);
    require(out, "out_options");
    *out = made.release();
  });
}
void release(OrtSessionOptions* options) { delete options; }

// A setter of one member.
template <auto member, class T>
OrtStatus* set(OrtSessionOptions* options, T value) {
  return guarded([&] { require(options, "options").*member = value; });
}
// A setter of one member to a fixed value.
template <auto member, auto value>
OrtStatus* fix(OrtSessionOptions* options) {
  return guarded([&] { require(options, "options").*member = value; });
}
template <auto member>
OrtStatus* set_text(OrtSessionOptions* options, const char* text) {
  return guarded([&] { require(options, "options").*member = &require(text, "the text"); });
}

OrtStatus* set_mode(OrtSessionOptions* options, ExecutionMode mode) {
  return guarded([&] {
    if (mode != ORT_SEQUENTIAL && mode != ORT_PARALLEL) fail_ort(ORT_INVALID_ARGUMENT, "execution_mode is not valid");
    require(options, "options").mode = mode;
  });
}
OrtStatus* get_mode(const OrtSessionOptions* options, ExecutionMode* out) {
  return guarded([&] { require(out, "out") = require(options, "options").mode; });
}
OrtStatus* get_pattern(const OrtSessionOptions* options, int* out) {
  return guarded([&] { require(out, "out") = require(options, "options").memory_pattern ? 1 : 0; });
}
OrtStatus* set_level(OrtSessionOptions* options, GraphOptimizationLevel level) {
  return guarded([&] {
    const bool known = (level >= ORT_DISABLE_ALL && level <= ORT_ENABLE_LAYOUT) || level == ORT_ENABLE_ALL;
    if (!known) fail_ort(ORT_INVALID_ARGUMENT, "graph_optimization_level is not valid");
    require(options, "options").level = level;
  });
}
OrtStatus* set_threads(OrtSessionOptions* options, int threads) {
  return guarded([&] { require(options, "options").engine.threads = std::max(threads, 0); });
}
OrtStatus* set_parallel_threads(OrtSessionOptions* options, int threads) {
  return guarded([&] { require(options, "options").inter_op = std::max(threads, 0); });
}

OrtStatus* enable_profiling(OrtSessionOptions* options, const char* prefix) {
  return guarded([&] {
    OrtSessionOptions& o = require(options, "options");
    o.profile_prefix = &require(prefix, "profile_file_prefix");
    o.profile = o.engine.profile = true;
  });
}
OrtStatus* disable_profiling(OrtSessionOptions* options) {
  return guarded([&] {
    OrtSessionOptions& o = require(options, "options");
    o.profile_prefix.clear();
    o.profile = o.engine.profile = false;
  });
}

OrtStatus* set_log_sink(OrtSessionOptions* options, OrtLoggingFunction function, void* param) {
  return guarded([&] { require(options, "options").log_sink = {function, param}; });
}
OrtStatus* set_cancel(OrtSessionOptions* options, bool cancel) {
  return guarded([&] { require(options, "options").cancel_load->store(cancel); });
}

OrtStatus* override_by_name(OrtSessionOptions* options, const char* name, std::int64_t extent) {
  return guarded([&] { require(options, "options").engine.dimensions.emplace_back(&require(name, "dim_name"), extent); });
}
OrtStatus* override_by_denotation(OrtSessionOptions* options, const char* denotation, std::int64_t extent) {
  return guarded([&] { require(options, "options").by_denotation.emplace_back(&require(denotation, "dim_denotation"), extent); });
}

OrtStatus* add_entry(OrtSessionOptions* options, const char* key, const char* value) {
  return guarded([&] {
    const std::string_view k = &require(key, "config_key"), v = &require(value, "config_value");
    if (k.empty() || k.size() > kLongestKey) {
      fail_ort(ORT_INVALID_ARGUMENT, "Config key is empty or longer than maximum length " + std::to_string(kLongestKey));
    }
    if (v.size() > kLongestValue) {
      fail_ort(ORT_INVALID_ARGUMENT, "Config value is longer than maximum length: " + std::to_string(kLongestValue));
    }
    require(options, "options").config.insert_or_assign(std::string(k), std::string(v));
  });
}
OrtStatus* has_entry(const OrtSessionOptions* options, const char* key, int* out) {
  return guarded([&] {
    const auto& config = require(options, "options").config;
    require(out, "out") = config.contains(std::string_view(&require(key, "config_key"))) ? 1 : 0;
  });
}

OrtStatus* get_entry(const OrtSessionOptions* options, const char* key, char* out, std::size_t* size) {
  return guarded([&] {
    const auto& config = require(options, "options").config;
    const auto it = config.find(std::string_view(&require(key, "config_key")));
    if (it == config.end()) fail_ort(ORT_FAIL, std::string("Session config entry '") + key + "' was not found.");
    const std::size_t needed = it->second.size() + 1, room = require(size, "size");
    *size = needed;
    if (out == nullptr) return;
    if (room < needed) fail_ort(ORT_INVALID_ARGUMENT, "Output buffer is not large enough for session config entry");
    std::memcpy(out, it->second.c_str(), needed);
  });
}
OrtStatus* get_entries(const OrtSessionOptions* options, OrtKeyValuePairs** out) {
  return guarded([&] {
    auto pairs = std::make_unique<OrtKeyValuePairs>();
    for (const auto& [key, value] : require(options, "options").config) pairs->set(key, value);
    require(out, "out");
    *out = pairs.release();
  });
}

OrtStatus* add_initializer(OrtSessionOptions* options, const char* name, const OrtValue* value) {
  return guarded([&] {
    OrtSessionOptions& o = require(options, "options");
    const std::string named = &require(name, "name");
    if (named.empty()) fail_ort(ORT_INVALID_ARGUMENT, "Received empty initializer name. Name must be non-empty.");
    tensor_of(value);
    for (const auto& [there, tensor] : o.initializers) {
      if (there == named) {
        fail_ort(ORT_INVALID_ARGUMENT, "An OrtValue for this name has already been added.");
      }
    }
    o.initializers.emplace_back(named, *value);
  });
}
OrtStatus* add_external(OrtSessionOptions* options, const char* const* names, const OrtValue* const* values, std::size_t count) {
  return guarded([&] {
    OrtSessionOptions& o = require(options, "options");
    for (std::size_t i = 0; i < count; ++i) {
      if (names[i] == nullptr || values[i] == nullptr) {
        fail_ort(ORT_INVALID_ARGUMENT, "Input index: " + std::to_string(i) + " contains null pointers");
      }
      tensor_of(values[i]);
      o.external_initializers.emplace_back(names[i], *values[i]);
    }
  });
}
OrtStatus* add_external_files(OrtSessionOptions* options, const char* const* names, char* const* buffers,
                              const std::size_t* sizes, std::size_t count) {
  return guarded([&] {
    OrtSessionOptions& o = require(options, "options");
    for (std::size_t i = 0; i < count; ++i) {
      if (names[i] == nullptr || buffers[i] == nullptr) {
        fail_ort(ORT_INVALID_ARGUMENT, "Input index: " + std::to_string(i) + " contains null pointers");
      }
      if (sizes[i] == 0) fail_ort(ORT_INVALID_ARGUMENT, "Buffer size for input index: " + std::to_string(i) + " is 0");
      o.external_files.insert_or_assign(names[i], std::string_view(buffers[i], sizes[i]));
    }
  });
}

// Weights for nodes that a provider has compiled before: no provider here makes such nodes.
OrtStatus* set_weights_source(OrtSessionOptions* options, const void* bytes, std::size_t size) {
  return guarded([&] {
    require(options, "options");
    if (size > 0) require_memory(bytes, "source_model_data");
  });
}

OrtStatus* create_prepacked(OrtPrepackedWeightsContainer** out) {
  return guarded([&] {
    require(out, "out");
    *out = new OrtPrepackedWeightsContainer();
  });
}
void release_prepacked(OrtPrepackedWeightsContainer* container) { delete container; }

}  // namespace

void fill_options(Table& table) {
  using O = OrtSessionOptions;
  table.set(Slot::CreateSessionOptions, &create);
  table.set(Slot::CloneSessionOptions, &clone);
  table.set(Slot::ReleaseSessionOptions, &release);
  table.set(Slot::SetOptimizedModelFilePath, &set_text<&O::optimized_path>);
  table.set(Slot::SetSessionExecutionMode, &set_mode);
  table.set(Slot::GetSessionExecutionMode, &get_mode);
  table.set(Slot::EnableProfiling, &enable_profiling);
  table.set(Slot::DisableProfiling, &disable_profiling);
  table.set(Slot::EnableMemPattern, &fix<&O::memory_pattern, true>);
  table.set(Slot::DisableMemPattern, &fix<&O::memory_pattern, false>);
  table.set(Slot::GetMemPatternEnabled, &get_pattern);
  table.set(Slot::EnableCpuMemArena, &fix<&O::arena, true>);
  table.set(Slot::DisableCpuMemArena, &fix<&O::arena, false>);
  table.set(Slot::SetSessionLogId, &set_text<&O::log_id>);
  table.set(Slot::SetSessionLogVerbosityLevel, &set<&O::log_verbosity, int>);
  table.set(Slot::SetSessionLogSeverityLevel, &set<&O::log_severity, int>);
  table.set(Slot::SetUserLoggingFunction, &set_log_sink);
  table.set(Slot::SetSessionGraphOptimizationLevel, &set_level);
  table.set(Slot::SetIntraOpNumThreads, &set_threads);
  table.set(Slot::SetInterOpNumThreads, &set_parallel_threads);
  table.set(Slot::DisablePerSessionThreads, &fix<&O::own_threads, false>);
  table.set(Slot::SetDeterministicCompute, &set<&O::deterministic, bool>);
  table.set(Slot::AddFreeDimensionOverride, &override_by_denotation);
  table.set(Slot::AddFreeDimensionOverrideByName, &override_by_name);
  table.set(Slot::AddSessionConfigEntry, &add_entry);
  table.set(Slot::HasSessionConfigEntry, &has_entry);
  table.set(Slot::GetSessionConfigEntry, &get_entry);
  table.set(Slot::GetSessionOptionsConfigEntries, &get_entries);
  table.set(Slot::SessionOptionsSetLoadCancellationFlag, &set_cancel);
  table.set(Slot::AddInitializer, &add_initializer);
  table.set(Slot::AddExternalInitializers, &add_external);
  table.set(Slot::AddExternalInitializersFromFilesInMemory, &add_external_files);
  table.set(Slot::SessionOptionsSetWeightlessSourceModelBuffer, &set_weights_source);
  table.set(Slot::CreatePrepackedWeightsContainer, &create_prepacked);
  table.set(Slot::ReleasePrepackedWeightsContainer, &release_prepacked);
}

}  // namespace sdx::dropin
