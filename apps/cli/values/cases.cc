#include "cli/values/cases.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "tensor/json.h"
#include "tensor/npz.h"

namespace sdx::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

[[noreturn]] void malformed(const fs::path& path, const std::string& why) {
  fail(ErrorCode::invalid_argument, "'{}' is not a case file: {}", path.string(), why);
}

std::vector<std::pair<std::string, std::string>> read_files(const json& set, const char* key, const fs::path& file) {
  std::vector<std::pair<std::string, std::string>> out;
  if (!set.contains(key)) malformed(file, std::string("a set lacks \"") + key + "\"");
  if (!set[key].is_object()) malformed(file, std::string("\"") + key + "\" must be an object {name: file}");
  for (const auto& [name, value] : set[key].items()) {
    if (!value.is_string()) malformed(file, "\"" + name + "\" must be a file's name");
    out.emplace_back(name, (file.parent_path() / value.get<std::string>()).string());
  }
  return out;
}

CaseSet read_set(const json& set, const fs::path& file) {
  if (!set.is_object()) malformed(file, "a set must be an object");
  CaseSet out;
  if (set.contains("dir") && set["dir"].is_string()) out.name = set["dir"].get<std::string>();
  out.inputs = read_files(set, "inputs", file);
  out.outputs = read_files(set, "outputs", file);
  return out;
}

fs::path find_case_model(const fs::path& file, const std::string& model) {
  std::error_code ignored;
  for (fs::path folder = fs::absolute(file).lexically_normal().parent_path();; folder = folder.parent_path()) {
    if (fs::is_regular_file(folder / model, ignored)) return folder / model;
    const std::string name = folder.filename().string();
    constexpr std::string_view kSuffix = "_expected";
    if (name.ends_with(kSuffix)) {
      fs::path beside = folder.parent_path() / name.substr(0, name.size() - kSuffix.size()) / model;
      if (fs::is_regular_file(beside, ignored)) return beside;
    }
    if (folder == folder.parent_path()) break;
  }
  fail(ErrorCode::io, "'{}' names the model '{}', which is neither beside it nor in a folder above it; name it with --model",
       file.string(), model);
}

// The number in "input_12.pb"; -1 for other names.
int position_in(const std::string& stem, std::string_view prefix) {
  if (!stem.starts_with(prefix)) return -1;
  const std::string digits = stem.substr(prefix.size());
  const bool ok = !digits.empty() && digits.size() < 7 &&
                  std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  return ok ? std::stoi(digits) : -1;
}

std::vector<std::pair<std::string, std::string>> numbered(const fs::path& folder, std::initializer_list<const char*> prefixes,
                                                          const std::vector<ValueSpec>& specs) {
  std::vector<std::pair<int, std::string>> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string ending = entry.path().extension().string();
    if (ending != ".pb" && ending != ".npy" && ending != ".json") continue;
    for (const char* prefix : prefixes) {
      const int at = position_in(entry.path().stem().string(), prefix);
      if (at >= 0) found.emplace_back(at, entry.path().string());
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [at, file] : found) {
    const auto i = static_cast<std::size_t>(at);
    if (i >= specs.size()) {
      fail(ErrorCode::invalid_argument, "'{}' is number {}, the model has only {}", file, at, specs.size());
    }
    out.emplace_back(specs[i].name, file);
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> archived(const fs::path& file, const std::vector<ValueSpec>& specs, bool all) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [name, tensor] : read_npz(file)) {
    const bool known = std::any_of(specs.begin(), specs.end(), [&, &n = name](const ValueSpec& s) { return s.name == n; });
    if (known) out.emplace_back(name, file.string());
    if (!known && all)
      fail(ErrorCode::invalid_argument, "'{}' contains '{}', which the model does not have", file.string(), name);
  }
  return out;
}

CaseSet read_folder(const fs::path& folder, const std::vector<ValueSpec>& inputs, const std::vector<ValueSpec>& outputs) {
  CaseSet set;
  set.name = folder.filename().string();
  std::error_code ignored;
  if (fs::is_regular_file(folder / "outputs.npz", ignored)) {
    if (fs::is_regular_file(folder / "inputs.npz", ignored)) set.inputs = archived(folder / "inputs.npz", inputs, true);
    set.outputs = archived(folder / "outputs.npz", outputs, true);
  } else {
    set.inputs = numbered(folder, {"input_", "in_"}, inputs);
    set.outputs = numbered(folder, {"output_", "out_"}, outputs);
  }
  return set;
}

}  // namespace

Case read_case_file(const fs::path& path) {
  const json j = parse_json(read_file(path, std::size_t{1} << 28), "'" + path.string() + "'");
  if (!j.is_object()) malformed(path, "expected an object");
  Case c;
  if (j.contains("model") && j["model"].is_string()) c.model = j["model"].get<std::string>();
  if (j.contains("sets")) {
    if (!j["sets"].is_array()) malformed(path, "\"sets\" must be a list");
    for (const json& set : j["sets"]) c.sets.push_back(read_set(set, path));
  } else {
    c.sets.push_back(read_set(j, path));
  }
  if (c.sets.empty()) malformed(path, "it has no sets");
  if (!c.model.empty()) c.model = find_case_model(path, c.model.string());
  return c;
}

Case read_case_folder(const fs::path& path, const std::vector<ValueSpec>& inputs, const std::vector<ValueSpec>& outputs) {
  Case c;
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) {
    if (path.extension() != ".npz")
      fail(ErrorCode::invalid_argument, "'{}': expected a folder, a .npz or a .case.json", path.string());
    c.sets.push_back({path.filename().string(), archived(path, inputs, false), archived(path, outputs, false)});
  } else if (fs::is_directory(path, ignored)) {
    std::vector<fs::path> folders;
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_")) folders.push_back(entry.path());
    }
    std::sort(folders.begin(), folders.end());
    if (folders.empty()) folders.push_back(path);
    for (const fs::path& f : folders) c.sets.push_back(read_folder(f, inputs, outputs));
  } else {
    fail(ErrorCode::io, "there is no file or folder '{}'", path.string());
  }
  for (const CaseSet& s : c.sets) {
    if (s.outputs.empty()) {
      fail(ErrorCode::invalid_argument,
           "'{}' contains no expected outputs: looked for test_data_set_*, output_N.pb, output_N.npy and outputs.npz",
           path.string());
    }
  }
  return c;
}

}  // namespace sdx::cli
