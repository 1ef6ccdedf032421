#pragma once
// The options of sessions: one table, from which the C interface, the Python package, the command, project files and the
// documents take names, ranges and explanations. docs/options.md says how to add one.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <sdx/session.hpp>

#include "base/tools_api.h"

namespace sdx::session {

using TextPairs = std::vector<std::pair<std::string, std::string>>;
using DimensionValues = std::vector<std::pair<std::string, std::int64_t>>;
using ProviderOptions = std::vector<std::pair<std::string, TextPairs>>;

// A member of SessionOptions. Its type decides how the option is written in text, YAML, JSON Schema and Python.
using OptionMember = std::variant<
    bool SessionOptions::*, int SessionOptions::*, std::size_t SessionOptions::*, std::chrono::milliseconds SessionOptions::*,
    std::string SessionOptions::*, std::filesystem::path SessionOptions::*, Runtime SessionOptions::*, Select SessionOptions::*,
    Quantize SessionOptions::*, std::vector<std::string> SessionOptions::*, std::vector<std::filesystem::path> SessionOptions::*,
    DimensionValues SessionOptions::*, TextPairs SessionOptions::*, ProviderOptions SessionOptions::*>;

// Properties of an option beyond its member's type.
enum class OptionMeaning {
  plain,
  bytes,     // a number with units: "512MB"
  provider,  // the name of a provider
  pass,      // names of graph passes
};

// An option on one surface.
struct OptionPlace {
  std::string_view name;  // empty: it is not there
  std::string_view why;   // it is not there, or why the surface writes it by hand
  bool by_hand = false;   // the surface does not take it from the table
  bool present() const { return !name.empty() && !by_hand; }
};

struct SessionOption {
  std::string_view name;  // of the member; also what sdx_options_set() calls it
  OptionMember member;
  std::string_view help;            // one line, for --help, the schema and Python
  OptionPlace cli;                  // flags as CLI11 writes them: "-t,--threads", "--no-cache,!--cache"
  std::string_view value = {};      // the flag's value in --help
  std::string_view flag_help = {};  // in place of `help`: of a flag that says the opposite ("--no-cache")
  OptionPlace project;              // the key in the section `runtime`
  OptionPlace python;               // the attribute of sardonyx.SessionOptions
  std::string_view more = {};       // what the documents add to `help`, in Markdown
  OptionMeaning meaning = OptionMeaning::plain;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();  // of numbers; the least is 0
  std::span<const std::string_view> words = {};  // of an enumeration; of a bool that text writes as words: no, yes
};

// In the order of the documents.
SDX_TOOLS_API std::span<const SessionOption> session_options();
// Finds an option by name. Throws Error(invalid_argument) with the closest match.
SDX_TOOLS_API const SessionOption& session_option(std::string_view name);

// The following throw Error(invalid_argument) "expected …, found …" without the option's name, which each surface puts in front
// in its own spelling.

// Sets an option from text: "true", "16", "512MB", "2s", a word. Lists and maps get one more item ("batch=4",
// "cuda.device_id=1"); a list of names gets all of "a,b".
SDX_TOOLS_API void set_from_text(const SessionOption& option, SessionOptions& options, std::string_view text);
// Sets a flag, a number or a time in milliseconds.
SDX_TOOLS_API void set_from_number(const SessionOption& option, SessionOptions& options, std::int64_t value);
// The value of the option in `from` replaces that in `to`; for maps, only entries with the same key.
SDX_TOOLS_API void overlay(const SessionOption& option, const SessionOptions& from, SessionOptions& to);

// Options as they come from a command line.
struct TypedOptions {
  SessionOptions values;                // of options that were not typed, defaults of who asks
  std::vector<std::string_view> typed;  // names of those that were (SessionOption::name)

  SDX_TOOLS_API bool has(std::string_view option) const;
};
// `settings`, with what was typed over them. A chain that was typed drops `runtime: native` of the settings, and that runtime
// typed drops their chain: they would contradict each other.
SDX_TOOLS_API SessionOptions overlay(const TypedOptions& typed, SessionOptions settings);

// Whether the option is a list or map, to which text adds an item.
SDX_TOOLS_API bool takes_items(const SessionOption& option);

// Checks numbers against their ranges, and names of passes, with the options' names in the message.
void check_options(const SessionOptions& options);

// "an integer from 0 to 4096", "a time such as 2s, 500ms or 1m": for messages and documents.
std::string expected(const SessionOption& option);
// The value of an option that is not set, in the form that set_from_text() takes; empty if that value is empty.
std::string default_text(const SessionOption& option);

}  // namespace sdx::session
