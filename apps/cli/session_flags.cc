#include "cli/session_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>

#include "base/error.h"
#include "base/suggest.h"
#include "cli/command.h"
#include "project/backends.h"
#include "project/build_info.h"
#include "project/config.h"
#include "project/converted.h"
#include "project/find.h"
#include "providers/interface/provider.h"

namespace sdx::cli {
namespace {

namespace fs = std::filesystem;

// A number and the unit behind it.
std::pair<double, std::string> number_and_unit(const std::string& text, const char* what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !(value >= 0) || value > 1e18) throw UsageError(fmt::format("'{}' is no {}", text, what));
  std::string unit(end, text.data() + text.size());
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return {value, unit};
}

// What is wrong with the command line, not with a model.
template <class F>
void as_usage(F&& check) {
  try {
    check();
  } catch (const Error& e) {
    throw UsageError(e.message());
  }
}

// "ort:cpu.session.intra_op_thread_affinities=1": the provider's name ends at the first dot, the key at the first '='.
std::pair<std::string, std::vector<std::pair<std::string, std::string>>> parse_provider_option(const std::string& text) {
  const std::size_t dot = text.find('.');
  const std::size_t equal = text.find('=');
  if (dot == std::string::npos || dot == 0 || equal == std::string::npos || equal <= dot + 1) {
    throw UsageError(fmt::format("--provider-option {}: expected PROVIDER.KEY=VALUE, for example cuda.device_id=1", text));
  }
  std::string provider;
  as_usage([&] { provider = canonical_provider(text.substr(0, dot)); });
  return {std::move(provider), {{text.substr(dot + 1, equal - dot - 1), text.substr(equal + 1)}}};
}

// The built model of the project where that is up to date, else the model itself.
Session open_project(const Project& project, const SessionOptions& options) {
  const BuildState state = project.build_state(options);
  if (state.kind == BuildState::Kind::fresh) return Session::open(state.compiled, state.options);
  if (state.kind == BuildState::Kind::stale) {
    note(fmt::format("note: the build in '{}' is out of date ({}); `sdx build` renews it",
                     (project.folder() / ".sdx").lexically_normal().string(), state.why));
  }
  return Session::open(project.model(), options);
}

}  // namespace

void SessionFlags::add_to(CLI::App& command, bool positional_model) {
  command_ = &command;
  if (positional_model) command.add_option("MODEL", model, "Model file (.onnx), project file (sdx.yml) or name")->required();
  command
      .add_option("-p,--provider", providers, "Providers in order of preference, comma-separated (`sdx providers` lists them)")
      ->delimiter(',')
      ->allow_extra_args(false)  // else it would swallow the MODEL behind it
      ->type_name("CHAIN");
  command.add_option("--runtime", runtime, "auto, native (our own engine) or ort (ONNX Runtime's library)")
      ->check(CLI::IsMember({"auto", "native", "ort"}))
      ->type_name("NAME");
  command.add_option("--fallback", fallback, "warn: take the next provider with a warning; strict: fail")
      ->check(CLI::IsMember({"warn", "strict"}))
      ->type_name("MODE");
  command
      .add_option("--provider-option", provider_options, "Option of one provider, for example cuda.device_id=1; may be repeated")
      ->type_name("PROVIDER.KEY=VALUE")
      ->allow_extra_args(false);
  command.add_option("--select", select, "order: the first that can be used; measured: the fastest on this model")
      ->check(CLI::IsMember({"order", "measured"}))
      ->type_name("HOW");
  command.add_flag("--tune", tune, "Measure the cpu provider's kernels for each node, and remember the fastest");
  command.add_option("--start-on", start_on, "Answer on this provider (cpu) while slower ones compile")->type_name("PROVIDER");
  command
      .add_option("--provider-timeout", provider_timeout,
                  "Longest run, or compilation, before the next provider takes over, for example 2s")
      ->type_name("TIME");
  command.add_flag("--reject-nan", reject_nan, "Take NaN that only a provider other than cpu makes for its failure");
  command.add_option("--telemetry", telemetry, "A line of JSON for each run: stderr, or a file to append to")->type_name("WHERE");
  command.add_flag("--no-optimize,!--optimize", no_optimize, "Run the graph as it is in the file");
  command.add_option("--dtype", dtype, "float16 or bfloat16: convert the model to it first (see sdx convert); kept in the cache")
      ->check(CLI::IsMember({"float16", "bfloat16"}))
      ->type_name("TYPE");
  command.add_option("--disable-pass", disabled_passes, "Leave out graph passes, comma-separated")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("PASS");
  command.add_option("-t,--threads", threads, "Threads; 0: one per core")->check(CLI::Range(0, 4096))->type_name("N");
  command.add_option("--thread-affinity", thread_affinity, "Cores that worker threads stay on: auto, or a list such as 0,2-3")
      ->type_name("CORES");
  command.add_option("--memory-limit", memory_limit, "Most memory for tensors, for example 512MB")->type_name("SIZE");
  command.add_option("--dim", dimensions, "Fix a symbolic dimension, for example batch=4")
      ->type_name("SYMBOL=N")
      ->allow_extra_args(false);
  command.add_flag("--no-cache,!--cache", no_cache, "Keep nothing that was compiled, and use nothing kept");
  command.add_flag("--keep-compiled", keep_compiled, "Write what cpu made of the model into the cache, for later starts");
  command.add_option("--cache-dir", cache_dir, "Where that is kept, in place of SDX_CACHE_DIR or ~/.cache/sdx")->type_name("DIR");
  command.add_option("--custom-ops", custom_ops, "Library with operators of your own; may be repeated")
      ->type_name("LIB.so")
      ->allow_extra_args(false);
}

// Some commands have no --provider of their own.
bool SessionFlags::typed(const char* option) const {
  const CLI::Option* known = command_ != nullptr ? command_->get_option_no_throw(option) : nullptr;
  return known != nullptr && known->count() > 0;
}

SessionOptions SessionFlags::options(const ProjectConfig& project) const {
  const SessionOptions flags = options();
  SessionOptions o = session_options_of(project);
  if (typed("--provider")) {
    o.providers = flags.providers;
    // A chain that was typed drops the file's `runtime: native`, which would contradict it.
    if (o.runtime == "native") o.runtime = "auto";
  }
  if (typed("--runtime")) {
    o.runtime = flags.runtime;
    if (o.runtime == "native" && !typed("--provider")) o.providers.clear();  // the file's chain would contradict it
  }
  if (typed("--fallback")) o.strict = flags.strict;
  // Later ones win.
  o.provider_options.insert(o.provider_options.end(), flags.provider_options.begin(), flags.provider_options.end());
  o.provider_priority = flags.provider_priority;
  o.platform_defaults = flags.platform_defaults;
  o.tune = flags.tune;
  if (typed("--select")) o.select = flags.select;
  if (typed("--start-on")) o.start_on = flags.start_on;
  if (typed("--provider-timeout")) o.provider_timeout = flags.provider_timeout;
  o.reject_nan = o.reject_nan || flags.reject_nan;
  if (typed("--telemetry")) o.telemetry = flags.telemetry;
  o.optimize = flags.optimize;
  o.disabled_passes = flags.disabled_passes;
  if (typed("--threads")) o.threads = flags.threads;
  if (typed("--thread-affinity")) o.thread_affinity = flags.thread_affinity;
  if (typed("--memory-limit")) o.memory_limit = flags.memory_limit;
  for (const auto& [symbol, extent] : flags.dimensions) {
    std::erase_if(o.dimensions, [&symbol = symbol](const auto& d) { return d.first == symbol; });
    o.dimensions.emplace_back(symbol, extent);
  }
  o.profile = o.profile || profile;
  o.cache = flags.cache;
  o.keep_compiled = flags.keep_compiled;
  o.cache_folder = flags.cache_folder;
  return o;
}

SessionOptions SessionFlags::options() const {
  SessionOptions o;
  o.providers = providers;
  for (const std::string& text : provider_options) o.provider_options.push_back(parse_provider_option(text));
  if (const std::optional<Backends> backends = find_backends()) apply_backends(*backends, o);
  for (const std::string& p : o.providers) as_usage([&] { canonical_provider(p); });
  o.runtime = runtime;
  o.strict = fallback == "strict";
  o.select = select;
  o.tune = tune;
  o.start_on = start_on;
  if (!start_on.empty()) as_usage([&] { canonical_provider(start_on); });
  if (!provider_timeout.empty()) o.provider_timeout = parse_duration(provider_timeout);
  o.reject_nan = reject_nan;
  o.telemetry = telemetry;
  o.optimize = !no_optimize;
  const std::vector<std::string> passes = disabled_passes.empty() ? std::vector<std::string>{} : pass_names();
  for (const std::string& p : disabled_passes) {
    if (std::find(passes.begin(), passes.end(), p) != passes.end()) continue;
    const std::string near = closest(p, passes);
    throw UsageError(
        fmt::format("unknown pass '{}'{}; passes: {}", p, near.empty() ? "" : ", did you mean '" + near + "'?", join(passes)));
  }
  o.disabled_passes = disabled_passes;
  o.threads = threads;
  o.thread_affinity = thread_affinity;
  if (!memory_limit.empty()) o.memory_limit = parse_bytes(memory_limit);
  for (const std::string& d : dimensions) {
    const auto [symbol, extent] = split_pair(d, "--dim");
    const Shape shape = parse_shape(extent);
    if (shape.size() != 1) throw UsageError(fmt::format("--dim {}: expected SYMBOL=N", d));
    o.dimensions.emplace_back(symbol, shape[0]);
  }
  o.profile = profile;
  o.cache = !no_cache;
  o.keep_compiled = keep_compiled;
  o.cache_folder = cache_dir;
  o.custom_ops.assign(custom_ops.begin(), custom_ops.end());
  return o;
}

Session SessionFlags::open() const { return open(locate_project(model)); }

Session SessionFlags::open(const std::optional<Project>& project) const {
  const auto open = [&] {
    if (!project) return Session::open(model_file(), options());
    const SessionOptions o = options(project->config());
    if (dtype.empty()) return open_project(*project, o);
    return Session::open(converted(project->model(), parse_precision(dtype), true, o), o);  // the file declares its inputs' types
  };
  Session session = open();
  const Report report = session.report();
  for (const std::string& w : report.warnings) note("warning: " + w);
  return session;
}

fs::path SessionFlags::converted(const fs::path& file, DataType type, bool io_stays, const SessionOptions& o) const {
  std::shared_ptr<ConvertedModel>& known = converted_[file];
  if (!known) {
    known = std::make_shared<ConvertedModel>(file, type, io_stays, o);
    if (known->made()) note(fmt::format("note: converted '{}' to {}", file.string(), name(type)));
  }
  return known->path();
}

fs::path SessionFlags::model_file() const {
  const fs::path file = find_model(model);
  DataType type = dtype.empty() ? DataType::undefined : parse_precision(dtype);
  if (const auto entry = find_entry(model); entry && dtype.empty() && entry->convert) type = entry->dtype;
  return type == DataType::undefined ? file : converted(file, type, keep_io, options());
}

std::optional<ProjectConfig> find_project(const std::string& text) {
  const std::optional<Project> project = locate_project(text);
  return project ? std::optional(project->config()) : std::nullopt;
}

std::optional<Project> locate_project(const std::string& text) {
  const Located found = locate(text);
  if (found.kind != Located::Kind::project) return std::nullopt;
  return Project::open(found.path);
}

std::shared_ptr<const RegistryEntry> find_entry(const std::string& text) { return locate(text).entry; }

void apply_entry(const RegistryEntry& entry, const std::vector<ValueSpec>& specs, std::vector<std::string>& shapes) {
  std::vector<std::string> defaults, other;
  for (const RegistryInput& input : entry.inputs) {
    const auto spec = std::find_if(specs.begin(), specs.end(), [&](const ValueSpec& s) { return s.name == input.name; });
    if (spec == specs.end()) {
      std::vector<std::string> names;
      for (const ValueSpec& s : specs) names.push_back(s.name);
      fail(ErrorCode::invalid_argument, "{}: the model has no input '{}'; it has: {}", entry.place, input.name, join(names));
    }
    if (input.dtype != DataType::undefined && spec->dtype != DataType::undefined && input.dtype != spec->dtype) {
      fail(ErrorCode::invalid_argument, "{}: input '{}' is {} in the model, not {}", entry.place, input.name, spec->type,
           name(input.dtype));
    }
    const bool typed = std::any_of(shapes.begin(), shapes.end(), [&](const auto& s) { return s.starts_with(input.name + "="); });
    if (input.shape && !typed) defaults.push_back(fmt::format("{}=[{}]", input.name, fmt::join(*input.shape, ",")));
  }
  shapes.insert(shapes.begin(), defaults.begin(), defaults.end());
  if (!is_floating(entry.dtype)) return;
  for (const ValueSpec& s : specs) {
    if (is_floating(s.dtype) && s.dtype != entry.dtype) other.push_back(fmt::format("'{}' ({})", s.name, s.type));
  }
  if (!other.empty()) {
    note(
        fmt::format("warning: {}: the entry says {}, the model takes {}: it runs as it is; `convert: true` in the entry, or "
                    "--dtype {}, converts it",
                    entry.place, name(entry.dtype), join(other), name(entry.dtype)));
  }
}

std::function<void(SessionOptions&)> backend_names() {
  const std::optional<Backends> backends = find_backends();
  if (!backends) return {};
  return [backends = *backends](SessionOptions& o) { apply_backends(backends, o); };
}

fs::path find_model(const std::string& text) {
  const Located found = locate(text);
  if (found.kind == Located::Kind::model) return found.path;
  if (found.kind == Located::Kind::project) return Project::open(found.path).model();
  if (const auto info = read_build_info(found.path)) return found.path / info->compiled;
  fail(ErrorCode::io, "'{}' is no complete build, and the project file it was made from is gone", found.path.string());
}

DataType parse_precision(const std::string& text) {
  const DataType type = parse_data_type(text);
  if (type == DataType::float16 || type == DataType::bfloat16) return type;
  throw UsageError(fmt::format("'{}': models are converted to float16 or bfloat16", text));
}

std::size_t parse_bytes(const std::string& text) {
  const auto [value, unit] = number_and_unit(text, "size; for example 512MB");
  static const std::vector<std::pair<std::string, double>> units{
      {"", 1},        {"b", 1},          {"kb", 1e3},   {"mb", 1e6},        {"gb", 1e9},          {"k", 1024},
      {"m", 1048576}, {"g", 1073741824}, {"kib", 1024}, {"mib", 1048576.0}, {"gib", 1073741824.0}};
  for (const auto& [name, factor] : units) {
    if (unit == name && value * factor < 1e18) return static_cast<std::size_t>(value * factor);
  }
  throw UsageError(fmt::format("'{}' is no size; units: KB, MB, GB, KiB, MiB, GiB", text));
}

std::chrono::milliseconds parse_duration(const std::string& text) {
  const auto [value, unit] = number_and_unit(text, "duration; for example 30 (seconds) or 500ms");
  const double ms = unit == "ms" ? value : (unit.empty() || unit == "s") ? value * 1e3 : unit == "m" ? value * 6e4 : -1;
  if (ms < 0 || ms > 1e12) throw UsageError(fmt::format("'{}' is no duration; units: ms, s, m", text));
  return std::chrono::milliseconds(static_cast<std::int64_t>(ms));
}

Shape parse_shape(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c != '[' && c != ']' && c != ' ') plain += c == 'x' || c == 'X' ? ',' : c;
  }
  Shape shape;
  const char* at = plain.data();
  const char* const end = at + plain.size();
  while (at != end) {
    std::int64_t extent = 0;
    const auto [next, error] = std::from_chars(at, end, extent);
    if (error != std::errc{} || extent < 0 || (next != end && *next != ',') || (next != end && next + 1 == end)) {
      throw UsageError(fmt::format("'{}' is no shape; for example 1x3x224x224", text));
    }
    shape.push_back(extent);
    at = next == end ? end : next + 1;
  }
  return shape;
}

std::pair<std::string, std::string> split_pair(const std::string& text, const char* option) {
  const auto at = text.find('=');
  if (at == std::string::npos || at == 0) throw UsageError(fmt::format("{} {}: expected NAME=VALUE", option, text));
  return {text.substr(0, at), text.substr(at + 1)};
}

}  // namespace sdx::cli
