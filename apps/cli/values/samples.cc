#include "cli/values/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/system/file.h"
#include "base/system/mapped_file.h"
#include "cli/command.h"
#include "cli/values/file_list.h"
#include "tensor/json.h"

namespace sdx::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestLine = std::size_t{256} << 20;

std::string stamp(const fs::path& path) {
  const std::optional<FileFacts> facts = file_facts(path);
  if (!facts) return path.string() + "?";
  constexpr std::int64_t kSecond = 1'000'000'000;
  return fmt::format("{}:{}:{}.{}", path.string(), facts->stamp.bytes, facts->stamp.modified_ns / kSecond,
                     facts->stamp.modified_ns % kSecond);
}

// The inputs that all samples share.
NamedValues joined(NamedValues sample, const NamedValues& constants) {
  for (const NamedValue& c : constants) {
    if (sample.find(c.name) != nullptr) throw UsageError(fmt::format("input '{}' is given twice", c.name));
    sample.add(c.name, c.value);
  }
  return sample;
}

// One sample a line; lines that are empty do not count.
struct Lines {
  std::shared_ptr<const MappedFile> file;
  struct Place {
    std::size_t offset, length, number;  // number: as editors count lines
  };
  std::vector<Place> places;
};

Lines list_lines(const std::string& path) {
  Lines lines{MappedFile::open(path), {}};
  const auto bytes = lines.file->bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (std::size_t at = 0, number = 1; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (text.substr(at, end - at).find_first_not_of(" \t\r") != std::string_view::npos)
      lines.places.push_back({at, end - at, number});
    at = end + 1;
  }
  if (lines.places.empty()) fail(ErrorCode::io, "'{}' contains no lines", path);
  return lines;
}

class Finder {
 public:
  Finder(const InputFlags& flags, const std::vector<ValueSpec>& specs, const std::string& output)
      : flags_(flags), specs_(specs), output_(output) {}

  std::optional<Samples> run() {
    InputFlags rest = flags_;
    rest.inputs.clear();
    rest.files.clear();
    take_files(rest.inputs);
    for (const std::string& i : std::exchange(rest.inputs, {})) {
      if (!take_lines(i)) rest.inputs.push_back(i);
    }
    for (const std::string& f : flags_.files) {
      if (!take_file(f)) rest.files.push_back(f);
    }
    if (!samples_) return std::nullopt;
    if (flags_.random) throw UsageError("--random generates only one set of inputs; omit it when there are several samples");
    *constants_ = rest.given(specs_);
    if (!samples_->identity.empty()) {
      for (const std::string& i : rest.inputs) samples_->identity += "\n" + stamp(i);
      for (const std::string& f : rest.files) samples_->identity += "\n" + stamp(f);
    }
    return samples_;
  }

 private:
  Samples& start() {
    if (samples_) throw UsageError("only one of the inputs may be a folder, several files, a .jsonl file or a list of samples");
    return samples_.emplace();
  }

  // Text may hold '*' and '?'.
  bool is_pattern_for(const ValueSpec* spec, const std::string& text) const {
    const auto takes_text = [](const ValueSpec& s) { return s.is_tensor && s.dtype == DataType::string; };
    const bool words = spec != nullptr ? takes_text(*spec) : std::any_of(specs_.begin(), specs_.end(), takes_text);
    return !words && is_pattern_argument(text);
  }

  NamedText argument_of(const std::string& argument) const {
    const bool path = is_folder(argument) || (argument.find('=') == std::string::npos && is_pattern_for(nullptr, argument));
    NamedText named = path ? NamedText{nullptr, argument} : split_input(specs_, argument);
    if (named.text.starts_with('@')) named.text.erase(0, 1);
    return named;
  }

  // -i [NAME=]FOLDER, -i [NAME=]PATTERN, and several -i [NAME=]FILE for one input. What is none of these goes to `others`.
  void take_files(std::vector<std::string>& others) {
    std::map<const ValueSpec*, std::vector<std::string>> files;  // by the input that was named; null: without a name
    for (const std::string& argument : flags_.inputs) {
      const NamedText named = argument_of(argument);
      std::error_code ignored;
      const bool file =
          fs::is_regular_file(named.text, ignored) && !named.text.ends_with(".npz") && !named.text.ends_with(".jsonl");
      if (file || is_folder(named.text) || is_pattern_for(named.spec, named.text)) files[named.spec].push_back(named.text);
    }
    const auto many = [&](const std::vector<std::string>& paths) {
      std::error_code ignored;
      return paths.size() > 1 || !fs::is_regular_file(paths.front(), ignored);
    };
    const auto taken = [&](const std::string& argument) {
      const NamedText named = argument_of(argument);
      const auto at = files.find(named.spec);
      if (at == files.end() || !many(at->second)) return false;
      return std::find(at->second.begin(), at->second.end(), named.text) != at->second.end();
    };
    for (const std::string& argument : flags_.inputs) {
      if (!taken(argument)) others.push_back(argument);
    }
    for (const auto& [spec, paths] : files) {
      if (many(paths)) from_files(start(), paths, spec != nullptr ? *spec : only_input(specs_, paths.front()));
    }
  }

  // -i [NAME=]FILE.jsonl
  bool take_lines(const std::string& argument) {
    const NamedText named = argument_of(argument);
    if (!named.text.ends_with(".jsonl")) return false;
    from_lines(start(), named.text, named.spec != nullptr ? named.spec : &only_input(specs_, named.text));
    return true;
  }

  // -f FILE.jsonl, -f - and -f FILE.json with a list
  bool take_file(const std::string& path) {
    if (path == "-") {
      from_standard_input(start());
      return true;
    }
    if (path.ends_with(".jsonl")) {
      from_lines(start(), path, nullptr);
      return true;
    }
    if (!path.ends_with(".json")) return false;
    const std::string text = read_file(path);
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string::npos || text[first] != '[') return false;
    from_list(start(), path, text);
    return true;
  }

  void from_files(Samples& samples, const std::vector<std::string>& paths, const ValueSpec& spec) {
    const auto list = std::make_shared<const FileList>(list_files(paths, output_));
    samples.total = static_cast<std::int64_t>(list->files.size());
    samples.files = true;
    samples.unit = list->pictures ? "picture" : "file";
    samples.name = [list](std::int64_t i) { return list->files[static_cast<std::size_t>(i)].name; };
    for (const std::string& path : paths) samples.identity += path + "\n";
    for (const ListedFile& file : list->files) samples.identity += "\n" + stamp(file.path);
    samples.read = [list, &spec, &flags = flags_, constants = constants_](std::int64_t i) -> std::optional<NamedValues> {
      const auto at = static_cast<std::size_t>(i);
      if (at >= list->files.size()) return std::nullopt;
      NamedValues values;
      values.add(spec.name, read_value_file(list->files[at].path.string(), &spec, flags));
      return joined(std::move(values), *constants);
    };
  }

  NamedValues parse_line(const std::string& text, const std::string& what, const ValueSpec* spec) const {
    if (spec == nullptr) return values_from_json(text, what, specs_);
    return values_from_json(text, what, {*spec});
  }

  void from_lines(Samples& samples, const std::string& path, const ValueSpec* spec) {
    const auto lines = std::make_shared<const Lines>(list_lines(path));
    samples.total = static_cast<std::int64_t>(lines->places.size());
    samples.name = [](std::int64_t i) { return std::to_string(i); };
    samples.identity = stamp(path);
    samples.read = [lines, path, spec, this_ = *this](std::int64_t i) -> std::optional<NamedValues> {
      const auto at = static_cast<std::size_t>(i);
      if (at >= lines->places.size()) return std::nullopt;
      const auto [offset, length, number] = lines->places[at];
      const std::string text(reinterpret_cast<const char*>(lines->file->bytes().data()) + offset, length);
      return joined(this_.parse_line(text, fmt::format("'{}', line {}", path, number), spec), *this_.constants_);
    };
  }

  void from_standard_input(Samples& samples) {
    samples.name = [](std::int64_t i) { return std::to_string(i); };
    const auto number = std::make_shared<std::int64_t>(0);  // of the line
    samples.read = [this_ = *this, number](std::int64_t) -> std::optional<NamedValues> {
      std::string text;
      do {
        ++*number;
        text.clear();
        char c = 0;
        while (std::cin.get(c) && c != '\n') {
          text += c;
          if (text.size() > kLongestLine)
            fail(ErrorCode::invalid_argument, "standard input, line {}: more than 256 MiB", *number);
        }
        if (text.empty() && !std::cin) return std::nullopt;
      } while (text.find_first_not_of(" \t\r") == std::string::npos);
      return joined(this_.parse_line(text, fmt::format("standard input, line {}", *number), nullptr), *this_.constants_);
    };
  }

  void from_list(Samples& samples, const std::string& path, const std::string& text) {
    const auto list = std::make_shared<const nlohmann::json>(parse_json(text, "'" + path + "'"));
    if (!list->is_array() || list->empty()) fail(ErrorCode::invalid_argument, "'{}': the list has no samples", path);
    samples.total = static_cast<std::int64_t>(list->size());
    samples.name = [](std::int64_t i) { return std::to_string(i); };
    samples.identity = stamp(path);
    samples.read = [list, path, this_ = *this](std::int64_t i) -> std::optional<NamedValues> {
      const auto at = static_cast<std::size_t>(i);
      if (at >= list->size()) return std::nullopt;
      return joined(this_.parse_line((*list)[at].dump(), fmt::format("'{}', sample {}", path, i), nullptr), *this_.constants_);
    };
  }

  const InputFlags& flags_;
  const std::vector<ValueSpec>& specs_;
  const std::string& output_;
  std::optional<Samples> samples_;
  std::shared_ptr<NamedValues> constants_ = std::make_shared<NamedValues>();
};

}  // namespace

std::optional<Samples> find_samples(const InputFlags& flags, const std::vector<ValueSpec>& specs, const std::string& output) {
  return Finder(flags, specs, output).run();
}

}  // namespace sdx::cli
