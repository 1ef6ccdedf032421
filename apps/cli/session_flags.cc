#include "cli/session_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <sdx/session.hpp>

#include "base/error.h"
#include "base/quantity.h"
#include "base/suggest.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "project/backends.h"
#include "providers/interface/provider.h"
#include "session/options/option_table.h"

namespace sdx::cli {
namespace {

// Reports an error of the command line, not of a model; `option` is its prefix.
template <class F>
void as_usage(const char* option, F&& check) {
  try {
    check();
  } catch (const Error& e) {
    throw UsageError(fmt::format("{}{}{}", option, *option == '\0' ? "" : ": ", e.message()));
  }
}

// The placeholder that --help shows for the flag's value: "MODE:{warn,strict}".
std::string value_name(const session::SessionOption& option) {
  if (option.words.empty()) return std::string(option.value);
  return fmt::format("{}:{{{}}}", option.value, fmt::join(option.words, ","));
}

void add_option(const Command& command, const session::SessionOption& option, session::TypedOptions& given) {
  const std::string flags(option.cli.name), help(option.flag_help.empty() ? option.help : option.flag_help);
  if (option.value.empty()) {
    const bool inverse = flags.starts_with("--no-");
    command
        .add_flag_function(
            flags,
            [&option, &given, inverse](std::int64_t count) {
              session::set_from_number(option, given.values, (count > 0) != inverse);
              given.typed.push_back(option.name);
            },
            help)
        ->last_counts();
    return;
  }
  const auto set = [&option, &given](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) session::set_from_text(option, given.values, text);
    given.typed.push_back(option.name);
  };
  const Argument added = command.add_option_function(flags, set, help);
  added->type_name(value_name(option))->one_word();  // else it would swallow the MODEL behind it
  if (!session::takes_items(option)) added->expected(1);
  if (flags == "--disable-pass") added->completed_by(pass_names());
}

}  // namespace

void SessionFlags::add_to(const Command& command, bool positional_model) {
  command_ = command;
  if (positional_model) command.add_option("MODEL", model, "Model file (.onnx), project file (sdx.yml) or name")->required();
  for (const session::SessionOption& option : session::session_options()) {
    if (option.cli.present()) add_option(command, option, given.session);
  }
  command
      .add_option_function(
          "--dtype", [this](const std::vector<std::string>& words) { given.dtype = parse_data_type(words.back()); },
          "Convert the model to float16 or bfloat16 first (see sdx convert) and keep the result in the cache")
      ->expected(1)
      ->one_of({"float16", "bfloat16"})
      ->type_name("TYPE");
}

// Some commands have no --provider of their own.
bool SessionFlags::typed(const char* option) const { return command_ && command_.count(option) > 0; }

project::Asked SessionFlags::asked() const {
  const SessionOptions& o = given.session.values;
  if (given.session.has("keep_compiled") && given.session.has("cache") && o.keep_compiled && !o.cache) {
    throw UsageError(
        "--keep-compiled and --no-cache contradict each other: one stores the compiled model, the other stores nothing");
  }
  project::Asked asked = given;
  asked.session = project::with_backends(asked.session);
  for (const std::string& p : asked.session.values.providers) as_usage("", [&] { canonical_provider(p); });
  if (!o.thread_affinity.empty()) as_usage("--thread-affinity", [&] { parse_cores(o.thread_affinity); });
  return asked;
}

std::function<void(SessionOptions&)> backend_names() {
  const std::optional<Backends> backends = find_backends();
  if (!backends) return {};
  return [backends = *backends](SessionOptions& o) { apply_backends(backends, o); };
}

DataType parse_precision(const std::string& text) {
  const DataType type = parse_data_type(text);
  if (type == DataType::float16 || type == DataType::bfloat16) return type;
  throw UsageError(fmt::format("'{}': models are converted to float16 or bfloat16", text));
}

std::size_t parse_bytes(const std::string& text, const char* option) {
  const auto bytes = size_from_text(text);
  if (!bytes)
    throw UsageError(
        fmt::format("{}: '{}' is not a size; for example 512MB; units: KB, MB, GB, TB, KiB, MiB, GiB, TiB", option, text));
  return *bytes;
}

std::chrono::milliseconds parse_duration(const std::string& text, const char* option) {
  const auto time = time_from_text(text);
  if (!time) throw UsageError(fmt::format("{}: '{}' is not a duration; for example 30 (seconds), 500ms or 2m", option, text));
  return *time;
}

std::optional<Shape> shape_from_text(const std::string& text) {
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
    if (error != std::errc{} || extent < 0 || (next != end && *next != ',') || (next != end && next + 1 == end))
      return std::nullopt;
    shape.push_back(extent);
    at = next == end ? end : next + 1;
  }
  return shape;
}

Shape parse_shape(const std::string& text, const char* option) {
  const std::optional<Shape> shape = shape_from_text(text);
  if (!shape) throw UsageError(fmt::format("{}: '{}' is not a shape; for example 1x3x224x224", option, text));
  return *shape;
}

std::pair<std::string, std::string> split_pair(const std::string& text, const char* option) {
  const auto at = text.find('=');
  if (at == std::string::npos || at == 0) throw UsageError(fmt::format("{} {}: expected NAME=VALUE", option, text));
  return {text.substr(0, at), text.substr(at + 1)};
}

}  // namespace sdx::cli
