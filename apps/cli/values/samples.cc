#include "cli/values/samples.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "cli/command.h"
#include "tensor/json.h"

namespace sdx::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestLine = std::size_t{256} << 20;

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return !path.empty() && path.size() < 4096 && fs::is_directory(path, ignored);
}

std::string stamp(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return path.string() + "?";
  return fmt::format("{}:{}:{}.{}", path.string(), info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

// What every sample has besides its own inputs.
NamedValues joined(NamedValues sample, const NamedValues& constants) {
  for (const NamedValue& c : constants) {
    if (sample.find(c.name) != nullptr) throw UsageError(fmt::format("input '{}' is given twice", c.name));
    sample.add(c.name, c.value);
  }
  return sample;
}

struct Folder {
  std::vector<fs::path> files;
  std::vector<std::string> names;
};

// The visible files, sorted. Names are without endings unless that makes two the same.
Folder list_folder(const std::string& path) {
  Folder folder;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (!it->is_regular_file(ignored) || it->path().filename().string().starts_with('.')) continue;
    folder.files.push_back(it->path());
  }
  if (error) fail(ErrorCode::io, "cannot read the folder '{}': {}", path, error.message());
  if (folder.files.empty()) fail(ErrorCode::io, "the folder '{}' contains no files", path);
  std::sort(folder.files.begin(), folder.files.end());
  std::map<std::string, int> stems;
  for (const fs::path& file : folder.files) ++stems[file.stem().string()];
  for (const fs::path& file : folder.files) {
    folder.names.push_back(stems[file.stem().string()] == 1 ? file.stem().string() : file.filename().string());
  }
  return folder;
}

// One sample a line; lines that are empty do not count.
struct Lines {
  std::shared_ptr<const MappedFile> file;
  std::vector<std::pair<std::size_t, std::size_t>> places;  // offset, length
};

Lines list_lines(const std::string& path) {
  Lines lines{MappedFile::open(path), {}};
  const auto bytes = lines.file->bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (text.substr(at, end - at).find_first_not_of(" \t\r") != std::string_view::npos) lines.places.emplace_back(at, end - at);
    at = end + 1;
  }
  if (lines.places.empty()) fail(ErrorCode::io, "'{}' contains no lines", path);
  return lines;
}

class Finder {
 public:
  Finder(const InputFlags& flags, const std::vector<ValueSpec>& specs) : flags_(flags), specs_(specs) {}

  std::optional<Samples> run() {
    InputFlags rest = flags_;
    rest.inputs.clear();
    rest.files.clear();
    for (const std::string& i : flags_.inputs) {
      if (!take_input(i)) rest.inputs.push_back(i);
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
    if (samples_) throw UsageError("only one of the inputs may be a folder, a .jsonl file or a list of samples");
    return samples_.emplace();
  }

  // -i [NAME=]FOLDER and -i [NAME=]FILE.jsonl
  bool take_input(const std::string& argument) {
    const NamedText named = is_folder(argument) ? NamedText{nullptr, argument} : split_input(specs_, argument);
    const std::string path = named.text.starts_with('@') ? named.text.substr(1) : named.text;
    const bool lines = path.ends_with(".jsonl");
    if (!lines && !is_folder(path)) return false;
    Samples& samples = start();
    const ValueSpec* spec = named.spec != nullptr ? named.spec : &only_input(specs_, path);
    lines ? from_lines(samples, path, spec) : from_folder(samples, path, *spec);
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

  void from_folder(Samples& samples, const std::string& path, const ValueSpec& spec) {
    const auto folder = std::make_shared<const Folder>(list_folder(path));
    samples.total = static_cast<std::int64_t>(folder->files.size());
    samples.files = true;
    samples.name = [folder](std::int64_t i) { return folder->names[static_cast<std::size_t>(i)]; };
    samples.identity = path;
    for (const fs::path& file : folder->files) samples.identity += "\n" + stamp(file);
    samples.read = [folder, &spec, &flags = flags_, constants = constants_](std::int64_t i) -> std::optional<NamedValues> {
      const auto at = static_cast<std::size_t>(i);
      if (at >= folder->files.size()) return std::nullopt;
      NamedValues values;
      values.add(spec.name, read_value_file(folder->files[at].string(), &spec, flags));
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
      const auto [offset, length] = lines->places[at];
      const std::string text(reinterpret_cast<const char*>(lines->file->bytes().data()) + offset, length);
      return joined(this_.parse_line(text, fmt::format("'{}', sample {}", path, i), spec), *this_.constants_);
    };
  }

  void from_standard_input(Samples& samples) {
    samples.name = [](std::int64_t i) { return std::to_string(i); };
    samples.read = [this_ = *this](std::int64_t i) -> std::optional<NamedValues> {
      std::string text;
      do {
        text.clear();
        char c = 0;
        while (std::cin.get(c) && c != '\n') {
          text += c;
          if (text.size() > kLongestLine) fail(ErrorCode::invalid_argument, "sample {}: a line of more than 256 MiB", i);
        }
        if (text.empty() && !std::cin) return std::nullopt;
      } while (text.find_first_not_of(" \t\r") == std::string::npos);
      return joined(this_.parse_line(text, fmt::format("standard input, sample {}", i), nullptr), *this_.constants_);
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
  std::optional<Samples> samples_;
  std::shared_ptr<NamedValues> constants_ = std::make_shared<NamedValues>();
};

}  // namespace

std::optional<Samples> find_samples(const InputFlags& flags, const std::vector<ValueSpec>& specs) {
  return Finder(flags, specs).run();
}

}  // namespace sdx::cli
