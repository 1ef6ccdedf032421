#include "cli/session_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>

#include "base/error.h"
#include "base/quantity.h"
#include "base/suggest.h"
#include "cli/command.h"
#include "project/backends.h"
#include "project/build_info.h"
#include "project/config.h"
#include "project/converted.h"
#include "project/find.h"
#include "providers/interface/provider.h"
#include "session/option_table.h"

namespace sdx::cli {
namespace {

namespace fs = std::filesystem;

// What is wrong with the command line, not with a model.
template <class F>
void as_usage(F&& check) {
  try {
    check();
  } catch (const Error& e) {
    throw UsageError(e.message());
  }
}

// "--threads" of "-t,--threads", "--no-cache" of "--no-cache,!--cache".
std::string long_flag(const SessionOption& option) {
  const std::string_view flags = option.cli.name;
  const std::size_t start = flags.find("--");
  return std::string(flags.substr(start, flags.find(',', start) - start));
}

// What --help shows as the flag's value: "MODE:{warn,strict}".
std::string value_name(const SessionOption& option) {
  if (option.words.empty()) return std::string(option.value);
  return fmt::format("{}:{{{}}}", option.value, fmt::join(option.words, ","));
}

template <class Set>
void as_flag_error(const SessionOption& option, Set&& set) {
  try {
    set();
  } catch (const Error& e) {
    throw CLI::ValidationError(long_flag(option), e.message());
  }
}

void add_option(CLI::App& command, const SessionOption& option, SessionOptions& given) {
  const std::string flags(option.cli.name), help(option.flag_help.empty() ? option.help : option.flag_help);
  if (option.value.empty()) {
    const bool inverse = flags.starts_with("--no-");
    command
        .add_flag_function(
            flags, [&option, &given, inverse](std::int64_t count) { set_from_number(option, given, (count > 0) != inverse); },
            help)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    return;
  }
  const auto set = [&option, &given](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) as_flag_error(option, [&] { set_from_text(option, given, text); });
  };
  CLI::Option* added = command.add_option_function<std::vector<std::string>>(flags, set, help);
  added->type_name(value_name(option))->allow_extra_args(false);  // else it would swallow the MODEL behind it
  if (!takes_items(option)) added->expected(1);
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
  for (const SessionOption& option : session_options()) {
    if (option.cli.present()) add_option(command, option, given);
  }
  command.add_option("--dtype", dtype, "float16 or bfloat16: convert the model to it first (see sdx convert); kept in the cache")
      ->check(CLI::IsMember({"float16", "bfloat16"}))
      ->type_name("TYPE");
}

// Some commands have no --provider of their own.
bool SessionFlags::typed(const char* option) const {
  const CLI::Option* known = command_ != nullptr ? command_->get_option_no_throw(option) : nullptr;
  return known != nullptr && known->count() > 0;
}

SessionOptions SessionFlags::options(const ProjectConfig& project) const {
  const SessionOptions flags = options();
  SessionOptions o = session_options_of(project);
  // A chain that was typed drops the file's `runtime: native`, and that runtime typed drops the file's chain: they would
  // contradict each other.
  if (typed("--provider") && o.runtime == Runtime::native) o.runtime = Runtime::automatic;
  if (typed("--runtime") && flags.runtime == Runtime::native) o.providers.clear();
  for (const SessionOption& option : session_options()) {
    if (option.cli.present() && typed(long_flag(option).c_str())) overlay(option, flags, o);
  }
  if (!typed("--provider-option")) overlay(session_option("provider_options"), flags, o);  // of backends.yaml
  o.provider_priority = flags.provider_priority;
  o.platform_defaults = flags.platform_defaults;
  o.profile = o.profile || flags.profile;
  return o;
}

SessionOptions SessionFlags::options() const {
  SessionOptions o = given;
  if (const std::optional<Backends> backends = find_backends()) apply_backends(*backends, o);
  for (const std::string& p : o.providers) as_usage([&] { canonical_provider(p); });
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
  const auto bytes = size_from_text(text);
  if (!bytes)
    throw UsageError(fmt::format("'{}' is no size; for example 512MB; units: KB, MB, GB, TB, KiB, MiB, GiB, TiB", text));
  return *bytes;
}

std::chrono::milliseconds parse_duration(const std::string& text) {
  const auto time = time_from_text(text);
  if (!time) throw UsageError(fmt::format("'{}' is no duration; for example 30 (seconds), 500ms or 2m", text));
  return *time;
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
