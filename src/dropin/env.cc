#include <cstdio>
#include <ctime>

#include "base/log.h"
#include "dropin/allocator.h"
#include "dropin/objects.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {
namespace {

std::mutex guard;  // of `existing`, and of who holds it
OrtEnv* existing = nullptr;

constexpr const char* kShort[] = {"V", "I", "W", "E", "F"};

struct Wanted {
  OrtLoggingLevel severity = ORT_LOGGING_LEVEL_WARNING;
  const char* id = "";
  LogSink sink;
  const OrtThreadingOptions* threads = nullptr;
  bool global_threads = false;
  const OrtKeyValuePairs* config = nullptr;
};

// A second environment is the first one: the caller's settings for it are then ignored.
void hold_env(const Wanted& wanted, OrtEnv** out) {
  require(out, "out");
  if (wanted.severity < ORT_LOGGING_LEVEL_VERBOSE || wanted.severity > ORT_LOGGING_LEVEL_FATAL) {
    fail_ort(ORT_INVALID_ARGUMENT, "log_severity_level must be one of 0 to 4, received " + std::to_string(wanted.severity));
  }
  const std::lock_guard lock(guard);
  if (existing == nullptr) {
    auto made = std::make_unique<OrtEnv>();
    made->logger = {wanted.sink, wanted.severity, wanted.id == nullptr ? "" : wanted.id};
    made->global_threads = wanted.global_threads;
    if (wanted.threads != nullptr) made->threads = *wanted.threads;
    if (wanted.config != nullptr) made->config = *wanted.config;
    existing = made.release();
  }
  ++existing->holders;
  *out = existing;
}

OrtStatus* create(OrtLoggingLevel severity, const char* id, OrtEnv** out) {
  return guarded([&] { hold_env({.severity = severity, .id = id, .sink = {}}, out); });
}
OrtStatus* create_with_logger(OrtLoggingFunction function, void* param, OrtLoggingLevel severity, const char* id, OrtEnv** out) {
  return guarded([&] { hold_env({.severity = severity, .id = id, .sink = {function, param}}, out); });
}
OrtStatus* create_with_threads(OrtLoggingLevel severity, const char* id, const OrtThreadingOptions* threads, OrtEnv** out) {
  return guarded(
      [&] { hold_env({.severity = severity, .id = id, .sink = {}, .threads = threads, .global_threads = true}, out); });
}
OrtStatus* create_with_both(OrtLoggingFunction function, void* param, OrtLoggingLevel severity, const char* id,
                            const OrtThreadingOptions* threads, OrtEnv** out) {
  return guarded([&] {
    hold_env({.severity = severity, .id = id, .sink = {function, param}, .threads = threads, .global_threads = true}, out);
  });
}
OrtStatus* create_with_options(const OrtEnvCreationOptions* options, OrtEnv** out) {
  return guarded([&] {
    const OrtEnvCreationOptions& o = require(options, "options");
    if (o.version < 24) fail_ort(ORT_INVALID_ARGUMENT, "OrtEnvCreationOptions.version must be at least 24");
    if (o.log_id == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "OrtEnvCreationOptions.log_id must be set to a non-null value");
    hold_env({.severity = static_cast<OrtLoggingLevel>(o.logging_severity_level),
              .id = o.log_id,
              .sink = {o.custom_logging_function, o.custom_logging_param},
              .threads = o.threading_options,
              .global_threads = o.threading_options != nullptr,
              .config = o.config_entries},
             out);
  });
}

void release(OrtEnv* env) {
  const std::lock_guard lock(guard);
  if (env == nullptr || env != existing || --env->holders > 0) return;
  for (const auto& [info, allocator] : env->allocators) release_shared(info, allocator);
  existing = nullptr;
  delete env;
}

OrtStatus* nothing_to_do(const OrtEnv*) { return nullptr; }  // there is no telemetry
OrtStatus* set_projection(const OrtEnv*, std::int32_t) { return nullptr; }

OrtStatus* update_level(OrtEnv* env, OrtLoggingLevel severity) {
  return guarded([&] {
    OrtEnv& e = require(env, "ort_env");
    const std::lock_guard lock(e.mutex);
    e.logger.severity = severity;
  });
}

OrtStatus* logger_log(const OrtLogger* logger, OrtLoggingLevel level, const char* message, const char* file, int line,
                      const char* function) {
  return guarded([&] {
    const std::string where =
        std::string(file == nullptr ? "" : file) + ":" + std::to_string(line) + " " + (function == nullptr ? "" : function);
    require(logger, "logger").log(level, message == nullptr ? "" : message, where);
  });
}
OrtStatus* logger_level(const OrtLogger* logger, OrtLoggingLevel* out) {
  return guarded([&] { require(out, "out") = require(logger, "logger").severity; });
}

const char* build_info() {
  return "ORT Build Info: Sardonyx, which answers ONNX Runtime's interface of version " SDX_DROPIN_VERSION;
}

}  // namespace

OrtEnv* current_env() {
  const std::lock_guard lock(guard);
  return existing;
}

void OrtLogger::log(OrtLoggingLevel level, std::string_view message, std::string_view where) const {
  if (level < severity) return;
  const std::string text(message), place(where);
  if (sink.function != nullptr) return sink.function(sink.param, level, "onnxruntime", id.c_str(), place.c_str(), text.c_str());
  std::timespec now{};
  std::timespec_get(&now, TIME_UTC);
  std::tm local{};
  localtime_r(&now.tv_sec, &local);
  char stamp[32];
  std::strftime(stamp, sizeof(stamp), "%F %T", &local);
  const int i = std::min<int>(std::max<int>(level, 0), 4);
  std::fprintf(stderr, "%s.%09ld [%s:%s:%s, %s] %s\n", stamp, now.tv_nsec, kShort[i], "onnxruntime", id.c_str(), place.c_str(),
               text.c_str());
}

void fill_env(Table& table) {
  table.set(Slot::CreateEnv, &create);
  table.set(Slot::CreateEnvWithCustomLogger, &create_with_logger);
  table.set(Slot::CreateEnvWithGlobalThreadPools, &create_with_threads);
  table.set(Slot::CreateEnvWithCustomLoggerAndGlobalThreadPools, &create_with_both);
  table.set(Slot::CreateEnvWithOptions, &create_with_options);
  table.set(Slot::ReleaseEnv, &release);
  table.set(Slot::EnableTelemetryEvents, &nothing_to_do);
  table.set(Slot::DisableTelemetryEvents, &nothing_to_do);
  table.set(Slot::SetLanguageProjection, &set_projection);
  table.set(Slot::UpdateEnvWithCustomLogLevel, &update_level);
  table.set(Slot::Logger_LogMessage, &logger_log);
  table.set(Slot::Logger_GetLoggingSeverityLevel, &logger_level);
  table.set(Slot::GetBuildInfoString, &build_info);
}

}  // namespace sdx::dropin
