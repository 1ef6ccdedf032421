#include "project/registry_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "project/yaml/yaml.h"

namespace sdx::project {
namespace {

using Lines = std::vector<std::string>;  // each with its line break

Lines split(const std::string& text) {
  Lines lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1);
    lines.push_back(text.substr(at, end - at + 1));
    at = end + 1;
  }
  return lines;
}

std::string joined(const Lines& lines) {
  std::string out;
  for (const std::string& line : lines) out += line;
  return out;
}

std::size_t indent_of(const std::string& line) { return std::min(line.find_first_not_of(' '), line.size()); }

bool is_blank(const std::string& line) { return line.find_first_not_of(" \t\r\n") == std::string::npos; }

bool is_comment(const std::string& line) {
  const std::size_t at = line.find_first_not_of(" \t");
  return at != std::string::npos && line[at] == '#';
}

// The lines behind `first` that are part of the block that starts there: blank, or indented deeper. Blank lines and comments of
// the same or a lower level at its end belong to what follows.
std::size_t end_of_block(const Lines& lines, std::size_t first, std::size_t indent) {
  std::size_t end = first + 1;
  for (std::size_t i = first + 1; i < lines.size(); ++i) {
    if (is_blank(lines[i])) continue;
    if (indent_of(lines[i]) > indent) {
      end = i + 1;
    } else if (!is_comment(lines[i])) {
      break;
    }
  }
  return end;
}

struct Models {
  YamlValue::Place key;                   // of "models"
  std::vector<YamlValue::Place> entries;  // of the names
  std::vector<std::string> names;
  bool present = false;
};

Models places_in(const std::string& text) {
  const YamlDocument document = YamlDocument::parse(text, "models.yaml");
  Models out;
  const YamlValue models = document.root().get("models");
  out.present = models.present();
  if (!out.present) return out;
  out.key = document.root().key_place("models");
  if (!models) return out;
  for (const auto& [name, value] : models.entries()) {
    out.names.push_back(name);
    out.entries.push_back(models.key_place(name));
  }
  return out;
}

// True where nothing but spaces stands before the key.
bool on_its_own_line(const Lines& lines, YamlValue::Place key) {
  const auto at = static_cast<std::size_t>(key.line - 1);
  if (at >= lines.size()) return false;
  const std::string& line = lines[at];
  const std::size_t indent = indent_of(line);
  // The place of a quoted key is that of its quote.
  return indent + 1 == static_cast<std::size_t>(key.column);
}

std::string shape_text(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

void add_inputs(std::string& out, const std::string& pad, const std::vector<RegistryInput>& inputs) {
  if (inputs.empty()) return;
  const bool only_shapes =
      std::all_of(inputs.begin(), inputs.end(), [](const RegistryInput& i) { return i.shape && i.dtype == DataType::undefined; });
  out += pad + (only_shapes ? "input_shapes:\n" : "inputs:\n");
  for (const RegistryInput& input : inputs) {
    if (only_shapes) {
      out += fmt::format("{}  {}: {}\n", pad, yaml_scalar(input.name), shape_text(*input.shape));
      continue;
    }
    out += fmt::format("{}  - name: {}\n", pad, yaml_scalar(input.name));
    if (input.shape) out += fmt::format("{}    shape: {}\n", pad, shape_text(*input.shape));
    if (input.dtype != DataType::undefined) out += fmt::format("{}    dtype: {}\n", pad, name(input.dtype));
  }
}

std::string entry_text(const RegistryEntry& entry, std::size_t indent) {
  const std::string pad(indent + 2, ' ');
  std::string out = fmt::format("{}{}:\n", std::string(indent, ' '), yaml_scalar(entry.name));
  out += fmt::format("{}path: {}\n", pad, yaml_scalar(entry.path));
  add_inputs(out, pad, entry.inputs);
  if (entry.dtype != DataType::undefined) out += fmt::format("{}dtype: {}\n", pad, name(entry.dtype));
  if (entry.convert) out += fmt::format("{}convert: true\n", pad);
  if (entry.warmup) out += fmt::format("{}warmup: {}\n", pad, *entry.warmup);
  if (entry.iterations) out += fmt::format("{}iterations: {}\n", pad, *entry.iterations);
  if (!entry.description.empty()) out += fmt::format("{}description: {}\n", pad, yaml_scalar(entry.description));
  if (!entry.tags.empty()) {
    out += pad + "tags: [";
    for (std::size_t i = 0; i < entry.tags.size(); ++i) out += (i != 0 ? ", " : "") + yaml_scalar(entry.tags[i]);
    out += "]\n";
  }
  return out;
}

// "models: {}" as "models:"; false where something else stands in that line.
bool open_empty(std::string& line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string::npos) return false;
  const std::size_t comment = std::min(line.find(" #", colon), line.find_last_not_of("\r\n") + 1);
  std::string value;
  for (const char c : line.substr(colon + 1, comment - colon - 1)) {
    if (c != ' ') value += c;
  }
  if (value == "{}") line = line.substr(0, colon + 1) + line.substr(comment);
  return value.empty() || value == "{}" || value == "~" || value == "null";
}

}  // namespace

std::optional<std::string> with_entry(const std::string& text, const RegistryEntry& entry) {
  const Models models = places_in(text);
  Lines lines = split(text);
  if (!lines.empty() && lines.back().back() != '\n') lines.back() += '\n';
  if (!models.present) return joined(lines) + "models:\n" + entry_text(entry, 2);
  if (!on_its_own_line(lines, models.key)) return std::nullopt;
  std::size_t at = static_cast<std::size_t>(models.key.line - 1);
  std::size_t indent = static_cast<std::size_t>(models.key.column) + 1;
  if (models.entries.empty()) {
    if (!open_empty(lines[at])) return std::nullopt;
    ++at;
  } else {
    if (!on_its_own_line(lines, models.entries.back())) return std::nullopt;
    indent = static_cast<std::size_t>(models.entries.back().column - 1);
    at = end_of_block(lines, static_cast<std::size_t>(models.entries.back().line - 1), indent);
  }
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), entry_text(entry, indent));
  return joined(lines);
}

std::optional<std::string> without_entry(const std::string& text, const std::string& name) {
  const Models models = places_in(text);
  Lines lines = split(text);
  const auto it = std::find(models.names.begin(), models.names.end(), name);
  if (it == models.names.end()) return std::nullopt;
  const YamlValue::Place place = models.entries[static_cast<std::size_t>(it - models.names.begin())];
  if (!on_its_own_line(lines, place)) return std::nullopt;
  const auto first = static_cast<std::size_t>(place.line - 1);
  const std::size_t end = end_of_block(lines, first, static_cast<std::size_t>(place.column - 1));
  lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(first), lines.begin() + static_cast<std::ptrdiff_t>(end));
  return joined(lines);
}

}  // namespace sdx::project
