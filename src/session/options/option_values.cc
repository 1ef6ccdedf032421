// Converts text and numbers to the members of SessionOptions, by the table of options.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <type_traits>

#include "base/error.h"
#include "base/quantity.h"
#include "base/suggest.h"
#include "base/words.h"
#include "providers/interface/provider.h"
#include "session/options/option_table.h"

namespace sdx::session {
namespace {

[[noreturn]] void refuse(const SessionOption& option, std::string_view found) {
  fail(ErrorCode::invalid_argument, "expected {}, found {}", expected(option), found);
}

std::string quoted(std::string_view text) { return fmt::format("'{}'", text); }

std::int64_t checked(const SessionOption& option, std::int64_t value, std::string_view found) {
  if (value < 0 || value > option.most) refuse(option, found);
  return value;
}

std::int64_t integer(const SessionOption& option, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) refuse(option, quoted(text));
  return checked(option, value, quoted(text));
}

void check_pass(std::string_view pass) {
  const std::vector<std::string> passes = pass_names();
  if (std::find(passes.begin(), passes.end(), pass) != passes.end()) return;
  const std::string near = closest(pass, passes);
  fail(ErrorCode::invalid_argument, "unknown pass '{}'{}; passes: {}", pass, near.empty() ? "" : ", did you mean '" + near + "'?",
       join(passes));
}

// "key=value", split at the first '='.
std::pair<std::string, std::string_view> pair_of(const SessionOption& option, std::string_view text) {
  const std::size_t equal = text.find('=');
  if (equal == std::string_view::npos || equal == 0) refuse(option, quoted(text));
  return {std::string(text.substr(0, equal)), text.substr(equal + 1)};
}

// One overload for each type of member.

void from_text(const SessionOption& option, bool& to, std::string_view text) {
  if (!option.words.empty()) {
    to = find_word(option.words, text) == 1;
    return;
  }
  constexpr std::string_view kWords[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
  const auto* word = std::find(std::begin(kWords), std::end(kWords), text);
  if (word == std::end(kWords)) refuse(option, quoted(text));
  to = (word - std::begin(kWords)) % 2 == 1;
}

void from_text(const SessionOption& option, int& to, std::string_view text) { to = static_cast<int>(integer(option, text)); }

void from_text(const SessionOption& option, std::size_t& to, std::string_view text) {
  if (option.meaning != OptionMeaning::bytes) {
    to = static_cast<std::size_t>(integer(option, text));
    return;
  }
  const auto bytes = size_from_text(text);
  if (!bytes) refuse(option, quoted(text));
  to = *bytes;
}

void from_text(const SessionOption& option, std::chrono::milliseconds& to, std::string_view text) {
  const auto time = time_from_text(text);
  if (!time) refuse(option, quoted(text));
  to = std::chrono::milliseconds(checked(option, time->count(), quoted(text)));
}

void from_text(const SessionOption& option, std::string& to, std::string_view text) {
  to = option.meaning == OptionMeaning::provider && !text.empty() ? canonical_provider(text) : std::string(text);
}

void from_text(const SessionOption&, std::filesystem::path& to, std::string_view text) { to = text; }

template <class Enum>
  requires std::is_enum_v<Enum>
void from_text(const SessionOption& option, Enum& to, std::string_view text) {
  to = parse_word<Enum>(option.words, text);
}

void from_text(const SessionOption& option, std::vector<std::string>& to, std::string_view text) {
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, comma);
    if (option.meaning == OptionMeaning::pass) check_pass(item);
    if (!item.empty()) to.emplace_back(item);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
}

void from_text(const SessionOption&, std::vector<std::filesystem::path>& to, std::string_view text) { to.emplace_back(text); }

void from_text(const SessionOption& option, DimensionValues& to, std::string_view text) {
  const auto [symbol, extent] = pair_of(option, text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(extent.data(), extent.data() + extent.size(), value);
  if (error != std::errc{} || end != extent.data() + extent.size()) refuse(option, quoted(text));
  to.emplace_back(symbol, checked(option, value, quoted(text)));
}

void from_text(const SessionOption& option, TextPairs& to, std::string_view text) {
  const auto [key, value] = pair_of(option, text);
  to.emplace_back(key, value);
}

// "ort:cpu.session.intra_op_thread_affinities=1": the provider's name ends at the first dot, the key at the first '='.
void from_text(const SessionOption& option, ProviderOptions& to, std::string_view text) {
  const auto [place, value] = pair_of(option, text);
  const std::size_t dot = place.find('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 == place.size()) refuse(option, quoted(text));
  to.push_back({canonical_provider(place.substr(0, dot)), {{place.substr(dot + 1), std::string(value)}}});
}

std::string to_text(const SessionOption& option, bool value) {
  return std::string(!option.words.empty() ? option.words[value ? 1 : 0] : value ? "true" : "false");
}
std::string to_text(const SessionOption&, int value) { return std::to_string(value); }
std::string to_text(const SessionOption&, std::size_t value) { return std::to_string(value); }
std::string to_text(const SessionOption&, std::chrono::milliseconds value) {
  return value.count() % 1000 == 0 ? fmt::format("{}s", value.count() / 1000) : fmt::format("{}ms", value.count());
}
std::string to_text(const SessionOption&, const std::string& value) { return value; }
std::string to_text(const SessionOption&, const std::filesystem::path& value) { return value.string(); }
template <class Enum>
  requires std::is_enum_v<Enum>
std::string to_text(const SessionOption& option, Enum value) {
  return std::string(option.words[static_cast<std::size_t>(value)]);
}
// Lists and maps are empty by default.
template <class T>
std::string to_text(const SessionOption&, const std::vector<T>&) {
  return {};
}

template <class T>
void lay_over(T& to, const T& from) {
  to = from;
}

void lay_over(DimensionValues& to, const DimensionValues& from) {
  for (const auto& [symbol, extent] : from) {
    std::erase_if(to, [&symbol = symbol](const auto& d) { return d.first == symbol; });
    to.emplace_back(symbol, extent);
  }
}

void lay_over(ProviderOptions& to, const ProviderOptions& from) {
  to.insert(to.end(), from.begin(), from.end());
}  // later ones win

template <class T>
constexpr bool is_number =
    std::is_same_v<T, int> || std::is_same_v<T, std::size_t> || std::is_same_v<T, std::chrono::milliseconds>;

std::int64_t number_of(std::chrono::milliseconds value) { return value.count(); }
std::int64_t number_of(int value) { return value; }
std::int64_t number_of(std::size_t value) {
  return static_cast<std::int64_t>(std::min(value, static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max())));
}

// Only what can be wrong in a SessionOptions.
template <class T>
void check_value(const SessionOption& option, const T& value) {
  if constexpr (is_number<T>) checked(option, number_of(value), std::to_string(number_of(value)));
  if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    if (option.meaning == OptionMeaning::pass) std::for_each(value.begin(), value.end(), check_pass);
  }
}

}  // namespace

const SessionOption& session_option(std::string_view name) {
  std::vector<std::string> names;
  for (const SessionOption& option : session_options()) {
    if (option.name == name) return option;
    names.emplace_back(option.name);
  }
  const std::string near = closest(name, names);
  fail(ErrorCode::invalid_argument, "sessions have no option '{}'{}; options: {}", name,
       near.empty() ? "" : ", did you mean '" + near + "'?", join(names));
}

void set_from_text(const SessionOption& option, SessionOptions& options, std::string_view text) {
  std::visit([&](auto member) { from_text(option, options.*member, text); }, option.member);
}

void set_from_number(const SessionOption& option, SessionOptions& options, std::int64_t value) {
  const auto set = [&](auto& to) {
    using T = std::remove_reference_t<decltype(to)>;
    if constexpr (std::is_same_v<T, bool>) {
      to = value != 0;
    } else if constexpr (is_number<T>) {
      to = static_cast<T>(checked(option, value, std::to_string(value)));
    } else {
      refuse(option, std::to_string(value));
    }
  };
  std::visit([&](auto member) { set(options.*member); }, option.member);
}

void overlay(const SessionOption& option, const SessionOptions& from, SessionOptions& to) {
  std::visit([&](auto member) { lay_over(to.*member, from.*member); }, option.member);
}

bool TypedOptions::has(std::string_view option) const { return std::find(typed.begin(), typed.end(), option) != typed.end(); }

SessionOptions overlay(const TypedOptions& given, SessionOptions settings) {
  if (given.has("providers") && settings.runtime == Runtime::native) settings.runtime = Runtime::automatic;
  if (given.has("runtime") && given.values.runtime == Runtime::native) settings.providers.clear();
  for (const std::string_view name : given.typed) overlay(session_option(name), given.values, settings);
  return settings;
}

bool takes_items(const SessionOption& option) {
  const auto is_list = []<class T>(T SessionOptions::*) {
    return !std::is_same_v<T, std::string> && requires(T t) { t.emplace_back(); };
  };
  return std::visit(is_list, option.member);
}

void check_options(const SessionOptions& options) {
  for (const SessionOption& option : session_options()) {
    try {
      std::visit([&](auto member) { check_value(option, options.*member); }, option.member);
    } catch (const Error& e) {
      fail(e.code(), "{}: {}", option.name, e.message());
    }
  }
}

std::string expected(const SessionOption& option) {
  const auto describe = [&](const auto& value) -> std::string {
    using T = std::remove_cvref_t<decltype(value)>;
    if (!option.words.empty()) return fmt::format("one of {}", fmt::join(option.words, ", "));
    if constexpr (std::is_same_v<T, bool>) return "true or false";
    if constexpr (std::is_same_v<T, std::chrono::milliseconds>) return "a time of at least 0 such as 2s, 500ms or 1m";
    if (option.meaning == OptionMeaning::bytes)
      return "a size such as 512MB or 1000000 (units: KB, MB, GB, TB, KiB, MiB, GiB, TiB)";
    if (option.meaning == OptionMeaning::provider) return "a provider's name";
    if (option.meaning == OptionMeaning::pass) return "names of graph passes";
    if constexpr (is_number<T>) {
      const bool open = option.most == std::numeric_limits<std::int64_t>::max();
      return open ? "an integer of at least 0" : fmt::format("an integer from 0 to {}", option.most);
    }
    if constexpr (std::is_same_v<T, DimensionValues>) return fmt::format("SYMBOL=N with N from 0 to {}", option.most);
    if constexpr (std::is_same_v<T, ProviderOptions>) return "PROVIDER.KEY=VALUE, for example cuda.device_id=1";
    if constexpr (std::is_same_v<T, TextPairs>) return "NAME=VALUE";
    return "text";
  };
  const SessionOptions defaults;
  return std::visit([&](auto member) { return describe(defaults.*member); }, option.member);
}

std::string default_text(const SessionOption& option) {
  const SessionOptions defaults;
  return std::visit([&](auto member) { return to_text(option, defaults.*member); }, option.member);
}

}  // namespace sdx::session

namespace sdx {

Runtime parse_runtime(std::string_view text) { return parse_word<Runtime>(session::session_option("runtime").words, text); }
Quantize parse_quantize(std::string_view text) { return parse_word<Quantize>(session::session_option("quantize").words, text); }
Select parse_select(std::string_view text) { return parse_word<Select>(session::session_option("select").words, text); }

}  // namespace sdx
