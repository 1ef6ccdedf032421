
#include "dropin/objects.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {
namespace {

OrtStatus* create(OrtRunOptions** out) {
  return guarded([&] {
    require(out, "out");
    *out = new OrtRunOptions();
  });
}
void release(OrtRunOptions* options) { delete options; }

template <auto member>
OrtStatus* set(OrtRunOptions* options, int value) {
  return guarded([&] { require(options, "options").*member = value; });
}
template <auto member>
OrtStatus* get(const OrtRunOptions* options, int* out) {
  return guarded([&] { require(out, "out") = require(options, "options").*member; });
}
OrtStatus* set_tag(OrtRunOptions* options, const char* tag) {
  return guarded([&] { require(options, "options").tag = tag == nullptr ? "" : tag; });
}
OrtStatus* get_tag(const OrtRunOptions* options, const char** out) {
  return guarded([&] { require(out, "run_tag") = require(options, "options").tag.c_str(); });
}
OrtStatus* set_terminate(OrtRunOptions* options) {
  return guarded([&] { require(options, "options").terminate.cancel(); });
}
OrtStatus* unset_terminate(OrtRunOptions* options) {
  return guarded([&] { require(options, "options").terminate.flag()->store(false); });
}
OrtStatus* add_entry(OrtRunOptions* options, const char* key, const char* value) {
  return guarded([&] {
    const std::string_view k = &require(key, "config_key"), v = &require(value, "config_value");
    if (k.empty() || k.size() > 1024) fail_ort(ORT_INVALID_ARGUMENT, "Config key is empty or longer than maximum length 1024");
    if (v.size() > 8192) fail_ort(ORT_INVALID_ARGUMENT, "Config value is longer than maximum length: 8192");
    require(options, "options").config.insert_or_assign(std::string(k), std::string(v));
  });
}
const char* get_entry(const OrtRunOptions* options, const char* key) {
  if (options == nullptr || key == nullptr) return nullptr;
  const auto it = options->config.find(std::string_view(key));
  return it == options->config.end() ? nullptr : it->second.c_str();
}
OrtStatus* enable_profiling(OrtRunOptions* options, const char* prefix) {
  return guarded([&] { require(options, "options").profile_prefix = &require(prefix, "profile_file_prefix"); });
}
OrtStatus* disable_profiling(OrtRunOptions* options) {
  return guarded([&] { require(options, "options").profile_prefix.reset(); });
}
OrtStatus* add_adapter(OrtRunOptions* options, const OrtLoraAdapter* adapter) {
  return guarded([&] { require(options, "options").adapters.push_back(&require(adapter, "adapter")); });
}

}  // namespace

void fill_run_options(Table& table) {
  table.set(Slot::CreateRunOptions, &create);
  table.set(Slot::ReleaseRunOptions, &release);
  table.set(Slot::RunOptionsSetRunLogVerbosityLevel, &set<&OrtRunOptions::log_verbosity>);
  table.set(Slot::RunOptionsGetRunLogVerbosityLevel, &get<&OrtRunOptions::log_verbosity>);
  table.set(Slot::RunOptionsSetRunLogSeverityLevel, &set<&OrtRunOptions::log_severity>);
  table.set(Slot::RunOptionsGetRunLogSeverityLevel, &get<&OrtRunOptions::log_severity>);
  table.set(Slot::RunOptionsSetRunTag, &set_tag);
  table.set(Slot::RunOptionsGetRunTag, &get_tag);
  table.set(Slot::RunOptionsSetTerminate, &set_terminate);
  table.set(Slot::RunOptionsUnsetTerminate, &unset_terminate);
  table.set(Slot::AddRunConfigEntry, &add_entry);
  table.set(Slot::GetRunConfigEntry, &get_entry);
  table.set(Slot::RunOptionsEnableProfiling, &enable_profiling);
  table.set(Slot::RunOptionsDisableProfiling, &disable_profiling);
  table.set(Slot::RunOptionsAddActiveLoraAdapter, &add_adapter);
}

}  // namespace sdx::dropin
