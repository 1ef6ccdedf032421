#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <sdx/registry.hpp>
#include <thread>

#include "base/error.h"
#include "base/suggest.h"
#include "base/system/file.h"
#include "base/system/mapped_file.h"
#include "project/find.h"
#include "project/registry_text.h"
#include "project/yaml/yaml.h"

namespace sdx {
namespace {

using namespace project;

namespace fs = std::filesystem;

constexpr int kMostRuns = 100'000'000;  // the range of --runs

DataType read_dtype(const YamlValue& value) {
  if (!value) return DataType::undefined;
  const std::string word = value.string();
  const DataType type = parse_data_type(word);
  if (type != DataType::undefined) return type;
  std::vector<std::string> names;
  for (int i = 1; i < kDataTypeCount; ++i) names.emplace_back(name(static_cast<DataType>(i)));
  const std::string near = closest(word, names);
  value.fail(fmt::format("unknown element type '{}'{}", word, near.empty() ? "" : ", did you mean '" + near + "'?"));
}

std::vector<std::int64_t> read_shape(const YamlValue& value) {
  if (!value.is_list()) value.fail(fmt::format("expected a shape such as [1, 3, 224, 224], found {}", value.found()));
  return value.integers(0, std::numeric_limits<std::int32_t>::max());
}

// `input_shapes: {NAME: [1, 3]}` and `inputs: [{name: NAME, shape: [1, 3], dtype: int64}]`; where both name an input, both count
// and must not contradict each other.
std::vector<RegistryInput> read_inputs(const YamlValue& entry) {
  std::vector<RegistryInput> inputs;
  if (const YamlValue shapes = entry.get("input_shapes")) {
    for (const auto& [input, shape] : shapes.entries()) inputs.push_back({input, read_shape(shape), DataType::undefined});
  }
  const YamlValue list = entry.get("inputs");
  if (!list) return inputs;
  std::vector<std::string> seen;
  for (const YamlValue& item : list.list()) {
    item.only_keys({"name", "shape", "dtype"});
    RegistryInput input{item.require("name").string(), std::nullopt, read_dtype(item.get("dtype"))};
    if (std::find(seen.begin(), seen.end(), input.name) != seen.end()) {
      item.fail(fmt::format("the input '{}' is listed twice", input.name));
    }
    seen.push_back(input.name);
    if (const YamlValue shape = item.get("shape")) input.shape = read_shape(shape);
    const auto same = std::find_if(inputs.begin(), inputs.end(), [&](const RegistryInput& i) { return i.name == input.name; });
    if (same == inputs.end()) {
      inputs.push_back(std::move(input));
    } else if (input.shape && input.shape != same->shape) {
      item.fail(fmt::format("'input_shapes' gives the input '{}' another shape", input.name));
    } else {
      same->dtype = input.dtype;
    }
  }
  return inputs;
}

std::optional<int> read_count(const YamlValue& value, int low) {
  if (!value) return std::nullopt;
  return static_cast<int>(value.integer(low, kMostRuns));
}

RegistryEntry read_entry(const std::string& name, const YamlValue& value, const fs::path& file) {
  value.only_keys({"path", "input_shapes", "inputs", "dtype", "convert", "warmup", "iterations", "description", "tags"});
  if (name.empty()) value.fail("a model needs a name");
  RegistryEntry entry;
  entry.name = name;
  entry.path = value.require("path").string();
  entry.file = file.parent_path() / entry.path;
  entry.inputs = read_inputs(value);
  entry.dtype = read_dtype(value.get("dtype"));
  if (const YamlValue convert = value.get("convert")) {
    entry.convert = convert.boolean();
    if (entry.convert && entry.dtype != DataType::float16 && entry.dtype != DataType::bfloat16) {
      convert.fail("models are converted to float16 or bfloat16: 'dtype' must specify which");
    }
  }
  entry.warmup = read_count(value.get("warmup"), 0);
  entry.iterations = read_count(value.get("iterations"), 1);
  if (const YamlValue text = value.get("description")) entry.description = text.text();
  if (const YamlValue tags = value.get("tags")) entry.tags = tags.strings();
  entry.place = fmt::format("{}:{}:{}", file.string(), value.line(), value.column());
  return entry;
}

// Everything that add() and remove() must leave as it is.
bool same_entry(const RegistryEntry& a, const RegistryEntry& b) {
  const auto same_input = [](const RegistryInput& x, const RegistryInput& y) {
    return x.name == y.name && x.shape == y.shape && x.dtype == y.dtype;
  };
  return a.name == b.name && a.path == b.path && a.dtype == b.dtype && a.convert == b.convert && a.warmup == b.warmup &&
         a.iterations == b.iterations && a.description == b.description && a.tags == b.tags &&
         std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(), same_input);
}

// Reads the changed text again: an edit that did more than intended is rejected.
Registry checked(std::optional<std::string> text, const fs::path& file, std::span<const RegistryEntry> wanted,
                 std::string_view what) {
  std::string why = "its models are not on separate lines";
  if (text) {
    try {
      Registry changed = Registry::parse(*std::move(text), file);
      const auto now = changed.entries();
      if (std::equal(now.begin(), now.end(), wanted.begin(), wanted.end(), same_entry)) return changed;
    } catch (const Error& e) {
      why = e.message();
    }
  }
  fail(ErrorCode::invalid_argument, "cannot {} '{}' without touching the rest of the file ({}); edit it by hand", what,
       file.string(), why);
}

// The registry's folder, locked while the object lives. Not the file itself: that is replaced by each change.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& file) {
    const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
    std::error_code ignored;
    fs::create_directories(folder, ignored);
    lock_ = open_folder_lock(folder);
    if (!lock_) fail(ErrorCode::io, "cannot open the folder '{}': {}", folder.string(), std::strerror(errno));
    for (int tries = 0; !lock_.lock(File::Lock::exclusive, false); ++tries) {
      if (errno == EWOULDBLOCK && tries < 200) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        continue;
      }
      fail(ErrorCode::io, "another process has been changing '{}' for ten seconds", file.string());
    }
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  File lock_;
};

}  // namespace

bool RegistryEntry::has_tag(std::string_view tag) const { return std::find(tags.begin(), tags.end(), tag) != tags.end(); }

Registry Registry::open(const fs::path& file) { return parse(read_file(file, YamlLimits{}.bytes), file); }

Registry Registry::parse(std::string text, fs::path file) {
  const YamlDocument document = YamlDocument::parse(text, file.string());
  const YamlValue root = document.root();
  root.only_keys({"models"});
  Registry registry;
  if (const YamlValue models = root.get("models")) {
    for (const auto& [name, value] : models.entries()) registry.entries_.push_back(read_entry(name, value, file));
  }
  registry.file_ = std::move(file);
  registry.text_ = std::move(text);
  return registry;
}

Registry Registry::create(fs::path file) { return parse("", std::move(file)); }

std::optional<fs::path> Registry::find_file(const fs::path& given) {
  Places places = default_places();
  if (!given.empty()) places.registry = given;
  return registry_file(places);
}

const RegistryEntry* Registry::find(std::string_view name) const noexcept {
  const auto it = std::find_if(entries_.begin(), entries_.end(), [&](const RegistryEntry& e) { return e.name == name; });
  return it == entries_.end() ? nullptr : &*it;
}

const RegistryEntry& Registry::at(std::string_view name) const {
  if (const RegistryEntry* entry = find(name)) return *entry;
  std::vector<std::string> names;
  for (const RegistryEntry& e : entries_) names.push_back(e.name);
  const std::string near = closest(name, names);
  fail(ErrorCode::invalid_argument, "'{}' has no model '{}'{}", file_.string(), name,
       !near.empty()   ? "; did you mean '" + near + "'?"
       : names.empty() ? "; it is empty"
                       : "; it has: " + join(names));
}

void Registry::add(const RegistryEntry& entry) {
  if (const RegistryEntry* taken = find(entry.name)) {
    fail(ErrorCode::invalid_argument, "{}: there is already a model '{}'; choose another name, or remove that model first",
         taken->place, entry.name);
  }
  std::vector<RegistryEntry> wanted(entries_);
  wanted.push_back(entry);
  *this = checked(with_entry(text_, entry), file_, wanted, fmt::format("add the model '{}' to", entry.name));
}

void Registry::remove(std::string_view name) {
  std::vector<RegistryEntry> wanted(entries_);
  wanted.erase(wanted.begin() + (&at(name) - entries_.data()));
  *this = checked(without_entry(text_, std::string(name)), file_, wanted, fmt::format("remove the model '{}' from", name));
}

void Registry::edit(const fs::path& file, const std::function<void(Registry&)>& change) {
  const FolderLock lock(file);
  std::error_code ignored;
  Registry registry = fs::exists(file, ignored) ? open(file) : create(file);
  change(registry);
  registry.save();
}

void Registry::save() const {
  std::error_code ignored;
  if (file_.has_parent_path()) fs::create_directories(file_.parent_path(), ignored);
  write_file_atomically(file_, text_);
}

}  // namespace sdx
