#include "cli/session_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>

#include "base/error.h"
#include "base/suggest.h"
#include "cli/command.h"
#include "project/config.h"
#include "project/find.h"
#include "provider/provider.h"

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

// --runtime ort sends every provider through the bridge; --runtime native allows none of it.
std::vector<std::string> apply_runtime(std::vector<std::string> providers, const std::string& runtime) {
  if (runtime == "auto") return providers;
  if (runtime == "native") {
    for (const std::string& p : providers) {
      if (p != "cpu" && p != "auto") throw UsageError(fmt::format("--runtime native has no provider '{}': it runs on cpu", p));
    }
    return {"cpu"};
  }
  if (providers.empty()) return {"ort:cpu"};
  for (std::string& p : providers) {
    if (!p.starts_with("ort:")) p = "ort:" + p;
  }
  return providers;
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
  command.add_flag("--no-optimize,!--optimize", no_optimize, "Run the graph as it is in the file");
  command.add_option("--disable-pass", disabled_passes, "Leave out graph passes, comma-separated")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("PASS");
  command.add_option("-t,--threads", threads, "Threads; 0: one per core")->check(CLI::Range(0, 4096))->type_name("N");
  command.add_option("--memory-limit", memory_limit, "Most memory for tensors, for example 512MB")->type_name("SIZE");
  command.add_option("--dim", dimensions, "Fix a symbolic dimension, for example batch=4")
      ->type_name("SYMBOL=N")
      ->allow_extra_args(false);
  command.add_flag("--no-cache,!--cache", no_cache, "Keep nothing that vendors' compilers make, and use nothing kept");
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
  if (typed("--provider") || typed("--runtime")) {
    std::vector<std::string> chain = providers;
    if (!typed("--provider") && runtime != "native") chain = project.runtime.providers;
    if (!typed("--provider") && runtime != "native" && chain.empty() && project.runtime.gpu_backend != "auto") {
      chain = {project.runtime.gpu_backend};
    }
    // A chain that was typed drops the file's `runtime: native`, which would contradict it.
    const bool file_runtime = !typed("--runtime") && project.runtime.runtime == "ort";
    o.providers = apply_runtime(chain, file_runtime ? "ort" : runtime);
  }
  if (typed("--fallback")) o.strict = flags.strict;
  o.optimize = flags.optimize;
  o.disabled_passes = flags.disabled_passes;
  if (typed("--threads")) o.threads = flags.threads;
  if (typed("--memory-limit")) o.memory_limit = flags.memory_limit;
  for (const auto& [symbol, extent] : flags.dimensions) {
    std::erase_if(o.dimensions, [&symbol = symbol](const auto& d) { return d.first == symbol; });
    o.dimensions.emplace_back(symbol, extent);
  }
  o.profile = o.profile || profile;
  o.cache = flags.cache;
  o.cache_folder = flags.cache_folder;
  return o;
}

SessionOptions SessionFlags::options() const {
  SessionOptions o;
  for (const std::string& p : providers) {
    try {
      provider_chain(std::vector<std::string>{p}, false);
    } catch (const Error& e) {
      throw UsageError(e.message());
    }
  }
  o.providers = apply_runtime(providers, runtime);
  o.strict = fallback == "strict";
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
  if (!memory_limit.empty()) o.memory_limit = parse_bytes(memory_limit);
  for (const std::string& d : dimensions) {
    const auto [symbol, extent] = split_pair(d, "--dim");
    const Shape shape = parse_shape(extent);
    if (shape.size() != 1) throw UsageError(fmt::format("--dim {}: expected SYMBOL=N", d));
    o.dimensions.emplace_back(symbol, shape[0]);
  }
  o.profile = profile;
  o.cache = !no_cache;
  o.cache_folder = cache_dir;
  o.custom_ops.assign(custom_ops.begin(), custom_ops.end());
  return o;
}

Session SessionFlags::open() const { return open(find_project(model)); }

Session SessionFlags::open(const std::optional<ProjectConfig>& project) const {
  const SessionOptions o = project ? options(*project) : options();
  Session session = Session::open(find_model(model), o);
  const Report report = session.report();
  for (const std::string& w : report.warnings) note("warning: " + w);
  for (const std::string& f : report.fallbacks) note("warning: " + f);
  return session;
}

std::optional<ProjectConfig> find_project(const std::string& text) {
  const Located found = locate(text);
  if (found.kind != Located::Kind::project) return std::nullopt;
  return read_project(found.path).config;
}

fs::path find_model(const std::string& text) {
  const Located found = locate(text);
  if (found.kind == Located::Kind::model) return found.path;
  if (found.kind == Located::Kind::project) return found.path.parent_path() / read_project(found.path).config.model_source;
  fail(ErrorCode::io, "'{}' was built from a project whose file is gone: '{}'", text, found.path.string());
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
