#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sdx/sdx.hpp>
#include <string>
#include <string_view>

#include "base/build_id.h"
#include "base/error.h"
#include "base/module/one_file.h"
#include "base/system/cpu/share.h"
#include "base/system/cpu_features.h"
#include "base/system/dynlib.h"
#include "base/system/processes/environment.h"
#include "cli/doctor/parts.h"
#include "providers/interface/provider.h"
#include "session/selection.h"

namespace sdx::cli::doctor {
namespace {

namespace fs = std::filesystem;

fs::path file_of(const void* code) {
  std::error_code error;
  return fs::canonical(binary_of(code), error);
}

Build look_at_build() {
  Build build;
  build.version = SDX_VERSION;
  build.engine_version = version();
  build.id = own_build();
  build.engine_id = build_id();
  build.how = SDX_BUILD;
  build.command = program_file();
  build.engine = file_of(reinterpret_cast<const void*>(&build_id));
  if (build.engine == build.command || is_one_file()) build.engine.clear();
  return build;
}

Processor look_at_processor() {
  Processor processor;
  processor.name = processor_name();
  processor.instructions = explain_cpu(this_choice());
  try {
    cpu_isa();
  } catch (const Error& e) {
    processor.problem = e.message();
  }
  return processor;
}

Threads look_at_threads() {
  const char* const variable = std::getenv("SDX_THREADS");
  return {cpu_share(), shared_threads(), variable == nullptr ? "" : variable};
}

// As at the start of a session: automatic selection asks no more of it. A setting that the provider refuses is its reason.
ProviderInfo look_at_provider(const std::string& name) {
  try {
    return session::look_at_provider(name, {}, Effort::quick);
  } catch (const Error& error) {
    ProviderInfo info;
    info.name = name;
    info.reason = error.what();
    return info;
  }
}

std::vector<ProviderInfo> look_at_providers() {
  std::vector<ProviderInfo> all;
  for (const ProviderName& p : provider_names()) {
    all.push_back(look_at_provider(std::string(p.name)));
    if (p.name == "cpu") all.push_back(look_at_provider("ort:cpu"));
  }
  return all;
}

std::vector<std::string> own_variables() {
  std::vector<std::string> names;
  for (const std::string& all : environment_entries()) {
    const std::string_view entry = all;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (name.starts_with("SDX_") && name.size() + 1 < entry.size()) names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Facts collect() {
  Facts facts;
  facts.build = look_at_build();
  facts.parts = look_at_parts();  // first: it forks, which threads would not survive
  facts.processor = look_at_processor();
  facts.threads = look_at_threads();
  facts.providers = look_at_providers();
  facts.cache = look_at_cache();
  facts.models = look_at_models();
  facts.project = look_at_project();
  facts.hub = look_at_hub();
  facts.variables = own_variables();
  return facts;
}

std::vector<std::string> problems(const Facts& facts) {
  std::vector<std::string> out;
  const auto add = [&](std::string_view subject, std::string_view problem) {
    if (!problem.empty()) out.push_back(std::string(subject) + ": " + std::string(problem));
  };
  if (!facts.build.fits()) add("libsdx", "it is of another build than the command: install all files of one release");
  for (const Part& part : facts.parts) {
    if (part.look.state == LibraryLook::State::fails) add(part.name, part.look.reason);
  }
  add("processor", facts.processor.problem);
  add("cache", facts.cache.problem);
  add("registry", facts.models.problem);
  add("project", facts.project.problem);
  add("downloads", facts.hub.problem);
  return out;
}

}  // namespace sdx::cli::doctor
