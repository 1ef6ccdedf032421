// sdx_options_doc [--check] SOURCE_DIR writes, or checks, everything that is generated from the table of session options:
//
// - docs/options.md,
// - the section `runtime` of docs/sdx.schema.json,
// - bindings/python/sardonyx/_engine_options.py.

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/system/mapped_file.h"
#include "project/config_keys.h"
#include "session/options/option_table.h"

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using sdx::SessionOptions;
using sdx::session::OptionMeaning;
using sdx::session::OptionPlace;
using sdx::session::SessionOption;

constexpr std::size_t kMostBytes = 1 << 22;

// --- docs/options.md ---------------------------------------------------------------------------------------------------

constexpr auto kHead = R"(# Session options

<!-- Written by `make docs` from src/session/options/option_table.cc. -->

These options determine how a model is opened and run. One table in the code defines their names, ranges and defaults for every interface:

| interface | how to set an option |
|---|---|
| `sdx` commands that open a model ([cli.md](cli.md)) | the flag in the column "command" |
| project files ([projects.md](projects.md)) | the key in the section `runtime` |
| Python | an attribute of `sardonyx.SessionOptions` |
| C | `sdx_options_set(options, NAME, TEXT)` |
| C++ | the member NAME of `sdx::SessionOptions` |

Flags override the project file. A value out of range or an unknown word causes the same error in every interface; the error shows the closest match.

| values | as text | Python | C++ |
|---|---|---|---|
| times | with a unit (`500ms`, `2s`, `1m`); a bare number is seconds | seconds | `std::chrono` |
| sizes | with a unit (KB, MB, GB, TB are powers of 1000; KiB, MiB, GiB, TiB and K, M, G, T of 1024), or a number of bytes | bytes | bytes |

| name | command | project | Python | default | takes | meaning |
|---|---|---|---|---|---|---|
)";

constexpr auto kTail = R"(
## Adding an option

1. Add a member to `SessionOptions` in `include/sdx/session.hpp`, with its default and a comment.
2. Add an entry to `src/session/options/option_table.cc`: the name, the member, one line of help, and for command, project and Python either
   the name there or the reason for its absence. Give numbers a maximum, and enumerations their words.
3. Write the code that uses it.

The command's flag, the project's key, Python's attribute and C's `sdx_options_set` need no further code. `make docs` regenerates this page,
the JSON Schema and Python's defaults. The test `docs.options` fails until you run it, and `cli.flag_coverage` fails until a case in
`tests/cli/` uses the flag. A member of a new type needs an overload in `src/session/options/option_values.cc`, and in
`src/project/config_options.cc` and `bindings/python/src/options.cc` if YAML and Python have their own form for it.
)";

std::string code(std::string_view text) { return fmt::format("`{}`", text); }

// "`-t`, `--threads N`"
std::string flag_text(const SessionOption& option) {
  std::string out;
  std::string_view rest = option.cli.name;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::string_view flag = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (flag.starts_with('!')) flag.remove_prefix(1);
    const bool last = rest.empty() && !option.value.empty();
    out +=
        fmt::format("{}{}", out.empty() ? "" : ", ", code(last ? fmt::format("{} {}", flag, option.value) : std::string(flag)));
  }
  return out;
}

// The name, or a dash and the number of the reason below the table.
std::string cell(const OptionPlace& place, const std::string& shown, std::vector<std::string>& notes) {
  if (!place.name.empty()) return shown;
  auto it = std::find(notes.begin(), notes.end(), place.why);
  if (it == notes.end()) it = notes.insert(notes.end(), std::string(place.why));
  return fmt::format("– ({})", it - notes.begin() + 1);
}

std::string page() {
  std::string out = kHead;
  std::vector<std::string> notes;
  for (const SessionOption& o : sdx::session::session_options()) {
    const std::string standard = sdx::session::default_text(o);
    std::string takes = sdx::session::expected(o);
    for (std::size_t at = 0; (at = takes.find('|', at)) != std::string::npos; at += 2) takes.insert(at, 1, '\\');
    out += fmt::format("| `{}` | {} | {} | {} | {} | {} | {}{}{} |\n", o.name, cell(o.cli, flag_text(o), notes),
                       cell(o.project, code(o.project.name), notes), cell(o.python, code(o.python.name), notes),
                       standard.empty() ? "none" : code(standard), takes, o.help, o.more.empty() ? "" : ". ", o.more);
  }
  out += "\nA dash means that the option is not available there. The reasons:\n\n";
  for (std::size_t i = 0; i < notes.size(); ++i) out += fmt::format("{}. {}\n", i + 1, notes[i]);
  return out + kTail;
}

// --- docs/sdx.schema.json ----------------------------------------------------------------------------------------------

Json one_of(Json a, Json b) { return Json{{"oneOf", Json::array({std::move(a), std::move(b)})}}; }
Json type(const char* name) { return Json{{"type", name}}; }
Json text_like(const char* pattern) { return Json{{"type", "string"}, {"pattern", pattern}}; }

Json number_schema(const SessionOption& option) {
  Json out{{"type", "integer"}, {"minimum", 0}};
  if (option.most != std::numeric_limits<std::int64_t>::max()) out["maximum"] = option.most;
  return out;
}

struct MemberSchema {
  const SessionOption& option;

  Json operator()(bool SessionOptions::*) const { return type("boolean"); }
  Json operator()(int SessionOptions::*) const { return number_schema(option); }
  Json operator()(std::size_t SessionOptions::*) const {
    if (option.meaning != OptionMeaning::bytes) return number_schema(option);
    return one_of(number_schema(option), text_like("^[0-9.]+ ?([kKmMgGtT]i?)?[bB]?$"));
  }
  Json operator()(std::chrono::milliseconds SessionOptions::*) const {
    return one_of(Json{{"type", "number"}, {"minimum", 0}}, text_like("^[0-9.]+ ?(ms|s|m|min)?$"));
  }
  Json operator()(std::vector<std::string> SessionOptions::*) const {
    return one_of(type("string"), Json{{"type", "array"}, {"items", type("string")}});
  }
  Json operator()(std::vector<fs::path> SessionOptions::*) const {
    return one_of(type("string"), Json{{"type", "array"}, {"items", type("string")}});
  }
  Json operator()(sdx::session::DimensionValues SessionOptions::*) const {
    return Json{{"type", "object"}, {"additionalProperties", number_schema(option)}};
  }
  Json operator()(sdx::session::TextPairs SessionOptions::*) const {
    return Json{{"type", "object"}, {"additionalProperties", type("string")}};
  }
  Json operator()(sdx::session::ProviderOptions SessionOptions::*) const {
    const Json scalar{{"type", {"string", "number", "boolean", "null"}}};
    return Json{{"type", "object"}, {"additionalProperties", {{"type", {"object", "null"}}, {"additionalProperties", scalar}}}};
  }
  template <class T>
  Json operator()(T SessionOptions::*) const {
    return type("string");
  }
};

Json option_schema(const SessionOption& option) {
  Json out = option.words.empty() ? std::visit(MemberSchema{option}, option.member) : Json{{"enum", option.words}};
  out["description"] = option.help;
  return out;
}

std::string schema(const std::string& before) {
  Json json = Json::parse(before);
  Json& properties = json["properties"]["runtime"]["properties"];
  Json made = Json::object();
  for (const std::string_view key : sdx::config_keys::kRuntimeOwn) made[std::string(key)] = properties.at(std::string(key));
  for (const SessionOption& option : sdx::session::session_options()) {
    if (!option.project.name.empty()) made[std::string(option.project.name)] = option_schema(option);
  }
  properties = std::move(made);
  return json.dump(1) + "\n";
}

// --- bindings/python/sardonyx/_engine_options.py -----------------------------------------------------------------------

constexpr auto kPythonHead =
    R"("""The engine's own session options. Written by `make docs` from src/session/options/option_table.cc."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from typing import Literal, Mapping, Sequence


class EngineOptions:
    """Attributes that ONNX Runtime's session options do not have: docs/options.md."""

)";

struct PythonType {
  std::string operator()(bool SessionOptions::*) const { return "bool"; }
  std::string operator()(int SessionOptions::*) const { return "int"; }
  std::string operator()(std::size_t SessionOptions::*) const { return "int"; }
  std::string operator()(std::chrono::milliseconds SessionOptions::*) const { return "float"; }
  std::string operator()(fs::path SessionOptions::*) const { return "str | os.PathLike[str]"; }
  std::string operator()(std::vector<std::string> SessionOptions::*) const { return "Sequence[str]"; }
  std::string operator()(std::vector<fs::path> SessionOptions::*) const { return "Sequence[str | os.PathLike[str]]"; }
  std::string operator()(sdx::session::TextPairs SessionOptions::*) const { return "Mapping[str, str]"; }
  std::string operator()(sdx::session::DimensionValues SessionOptions::*) const { return "Sequence[tuple[str, int]]"; }
  std::string operator()(sdx::session::ProviderOptions SessionOptions::*) const {
    return "Sequence[tuple[str, Sequence[tuple[str, str]]]]";
  }
  template <class T>
  std::string operator()(T SessionOptions::*) const {
    return "str";
  }
};

std::string python_type(const SessionOption& option) {
  std::string plain = std::visit(PythonType{}, option.member);
  if (option.words.empty() || plain == "bool") return plain;
  std::string words;
  for (const std::string_view word : option.words) words += fmt::format("{}\"{}\"", words.empty() ? "" : ", ", word);
  return fmt::format("Literal[{}]", words);
}

std::string python_value(const SessionOption& option) {
  const SessionOptions defaults;
  const auto show = [&](const auto& value) -> std::string {
    using T = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<T, bool>) return value ? "True" : "False";
    if constexpr (std::is_same_v<T, std::chrono::milliseconds>) {
      const double seconds = static_cast<double>(value.count()) / 1000;
      return seconds == static_cast<double>(static_cast<std::int64_t>(seconds)) ? fmt::format("{:.1f}", seconds)
                                                                                : fmt::format("{}", seconds);
    }
    if constexpr (std::is_integral_v<T>) return std::to_string(value);
    if (sdx::session::takes_items(option)) return "()";
    return fmt::format("\"{}\"", sdx::session::default_text(option));
  };
  return std::visit([&](auto member) { return show(defaults.*member); }, option.member);
}

std::string python() {
  std::string fields, defaults;
  for (const SessionOption& option : sdx::session::session_options()) {
    if (!option.python.present()) continue;
    fields += fmt::format("    # {}.\n    {}: {}\n", option.help, option.python.name, python_type(option));
    defaults += fmt::format("    \"{}\": {},\n", option.python.name, python_value(option));
  }
  return fmt::format("{}{}\n\nDEFAULTS: dict[str, Any] = {{\n{}}}\n", kPythonHead, fields, defaults);
}

struct Made {
  fs::path file;
  std::function<std::string(const std::string& before)> text;
};

}  // namespace

int main(int argc, char** argv) {
  const bool check = argc == 3 && std::string_view(argv[1]) == "--check";
  if (argc != 2 && !check) {
    fmt::print(stderr, "usage: sdx_options_doc [--check] SOURCE_DIR\n");
    return 2;
  }
  const fs::path source = argv[argc - 1];
  const Made files[] = {{source / "docs/options.md", [](const std::string&) { return page(); }},
                        {source / "docs/sdx.schema.json", schema},
                        {source / "bindings/python/sardonyx/_engine_options.py", [](const std::string&) { return python(); }}};
  int stale = 0;
  for (const Made& made : files) {
    const std::string before = fs::exists(made.file) ? sdx::read_file(made.file, kMostBytes) : "";
    const std::string after = made.text(before);
    if (before == after) continue;
    ++stale;
    if (check) {
      fmt::print(stderr, "{} is stale: run `make docs` and commit what it changes\n", made.file.string());
    } else {
      sdx::write_file_atomically(made.file, after);
    }
  }
  return check && stale != 0 ? 1 : 0;
}
