#include "serve/models/model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/system/file.h"
#include "base/system/mapped_file.h"
#include "base/words.h"
#include "onnx/external_names.h"
#include "project/find.h"
#include "serve/models/catalog.h"
#include "tensor/gguf/encoder_names.h"
#include "tensor/gguf/gguf_model.h"
#include "tensor/gguf/gguf_names.h"

namespace sdx::serve {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMostFiles = 10'000;  // of one model
constexpr int kDepth = 3;
constexpr std::size_t kConfigBytes = std::size_t{16} << 20;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// Every entry below a folder, hidden ones apart; sorted within each folder.
void walk(const fs::path& folder, int depth, std::size_t& count, const std::function<void(const fs::directory_entry&)>& take) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (++count > kMostFiles) {
      fail(ErrorCode::invalid_argument, "'{}' has more than {} files: no model", folder.string(), kMostFiles);
    }
    if (!it->path().filename().string().starts_with('.')) entries.push_back(*it);
  }
  std::sort(entries.begin(), entries.end());
  for (const fs::directory_entry& entry : entries) {
    take(entry);
    if (depth > 1 && entry.is_directory(error)) walk(entry.path(), depth - 1, count, take);
  }
}

void each_file(const fs::path& path, const std::function<void(const fs::path&)>& take) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    for (const fs::path& part : gguf_parts(path)) take(part);
    return;
  }
  std::size_t count = 0;
  walk(path, kDepth, count, [&](const fs::directory_entry& entry) {
    std::error_code ignored;
    if (entry.is_regular_file(ignored)) take(entry.path());
  });
}

json read_config(const fs::path& file) {
  try {
    json out = json::parse(read_file(file, kConfigBytes), nullptr, false);
    if (out.is_object()) return out;
  } catch (const Error&) {
  }
  return json::object();
}

std::vector<std::string> files_with_ending(const fs::path& folder, std::string_view ending) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.ends_with(ending) && !name.starts_with('.') && is_file(it->path())) out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool any_starts_with(const std::vector<std::string>& names, std::string_view start) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& n) { return n.starts_with(start); });
}

// The kind of an export by Hugging Face's tools, by the class that the network was trained for.
std::optional<ModelKind> kind_by_config(const json& config) {
  std::string all;
  if (const auto found = config.find("architectures"); found != config.end() && found->is_array()) {
    for (const json& one : *found) {
      if (one.is_string()) all += one.get<std::string>() + " ";
    }
  }
  const auto has = [&](std::string_view part) { return all.find(part) != std::string::npos; };
  // vLLM's names for language models that answer "yes" or "no".
  const bool asked = config.contains("classifier_from_token") || config.value("is_original_qwen3_reranker", json()) == true;
  if (has("ForSequenceClassification") || config.contains("sentence_transformers") || asked) return ModelKind::reranker;
  if (has("ForCausalLM") || has("LMHeadModel")) return ModelKind::language;
  return std::nullopt;
}

// What sentence-transformers has written, whose modules make vectors or scores.
ModelKind kind_by_modules(const fs::path& folder) {
  const json own = read_config(folder / "config_sentence_transformers.json");
  if (own.value("model_type", json()) == "CrossEncoder") return ModelKind::reranker;
  std::size_t modules = 0;
  try {
    const json list = json::parse(read_file(folder / "modules.json", kConfigBytes), nullptr, false);
    for (const json& one : list.is_array() ? list : json::array()) {
      const json type = one.is_object() ? one.value("type", json()) : json();
      if (!type.is_string()) continue;
      ++modules;
      const std::string& name = type.get_ref<const std::string&>();
      if (name.find(".cross_encoder.") != std::string::npos || name.ends_with("LogitScore")) return ModelKind::reranker;
    }
  } catch (const Error&) {  // whoever loads it says what is wrong
  }
  // Vectors of tokens are pooled by a second module; classes are not.
  const bool classes = modules == 1 && kind_by_config(read_config(folder / "config.json")) == ModelKind::reranker;
  return classes ? ModelKind::reranker : ModelKind::embedding;
}

// Whether the head of the model's card says that it ranks: Qwen3-Reranker's config.json is that of the language model.
bool ranks_by_card(const fs::path& folder) {
  constexpr std::string_view kKey = "pipeline_tag:";
  std::string card;
  try {
    card = read_file(folder / "README.md", kConfigBytes);
  } catch (const Error&) {  // there need not be one
  }
  std::istringstream lines(card);
  std::string line;
  if (!std::getline(lines, line) || !line.starts_with("---")) return false;
  while (std::getline(lines, line) && !line.starts_with("---")) {
    if (!line.starts_with(kKey)) continue;
    std::string value = line.substr(kKey.size());
    std::erase_if(value, [](char c) { return std::string_view(" \t\r\"'").find(c) != std::string_view::npos; });
    return value == "text-ranking";
  }
  return false;
}

bool hears(const json& config) { return config.value("model_type", json()) == "whisper"; }

// A folder with a tokenizer and an ONNX model.
ModelKind kind_of_export(const fs::path& folder) {
  std::vector<std::string> models = files_with_ending(folder, ".onnx");
  const std::vector<std::string> below = files_with_ending(folder / "onnx", ".onnx");
  models.insert(models.end(), below.begin(), below.end());
  const json config = read_config(folder / "config.json");
  if (hears(config)) return ModelKind::speech;
  if (any_starts_with(models, "decoder_")) return ModelKind::language;
  if (is_file(folder / "modules.json")) return kind_by_modules(folder);
  return kind_by_config(config).value_or(ModelKind::embedding);
}

bool has_tokenizer(const fs::path& folder) {
  for (const char* name : {"tokenizer.json", "tokenizer.model", "vocab.txt", "vocab.json"}) {
    if (is_file(folder / name)) return true;
  }
  return false;
}

// Reads the form that transformers writes.
bool has_safetensors(const fs::path& folder) {
  return is_file(folder / "config.json") &&
         (is_file(folder / "model.safetensors") || is_file(folder / "model.safetensors.index.json"));
}

// A file that cannot be read is reported when it is loaded.
ModelKind kind_of_gguf(const fs::path& file) {
  try {
    const auto model = GgufModel::open(file);  // the text is in its memory
    const auto architecture = model->metadata().text("general.architecture");
    if (!architecture) return ModelKind::language;
    constexpr std::uint64_t kRank = 4;
    const std::uint64_t pooling = model->metadata().whole(std::string(*architecture) + ".pooling_type").value_or(0);
    if (pooling == kRank) return ModelKind::reranker;
    // Language models that make vectors say how.
    if (pooling > 0 || has_word(kEncoderArchitectures, *architecture)) return ModelKind::embedding;
  } catch (const Error&) {
  }
  return ModelKind::language;
}

ModelFiles recognise_folder(const fs::path& folder) {
  if (const auto project = project::project_file_in(folder)) return {ModelKind::tensors, *project, true};
  if (is_file(folder / "genai_config.json")) return {ModelKind::language, folder};
  if (is_file(folder / "modules.json")) return {kind_by_modules(folder), folder};
  const std::vector<std::string> models = files_with_ending(folder, ".onnx");
  const bool onnx = !models.empty() || !files_with_ending(folder / "onnx", ".onnx").empty();
  if (onnx && has_tokenizer(folder)) return {kind_of_export(folder), folder};
  if (is_file(folder / "model.onnx")) return {ModelKind::tensors, folder / "model.onnx"};
  if (models.size() == 1) return {ModelKind::tensors, folder / models.front()};
  if (models.empty() && has_safetensors(folder)) {
    const json config = read_config(folder / "config.json");
    if (hears(config)) return {ModelKind::speech, folder};
    const auto type = config.find("model_type");
    const bool encoder =
        type != config.end() && type->is_string() && has_word(kEncoderTypes, type->get_ref<const std::string&>());
    if (kind_by_config(config) == ModelKind::reranker || ranks_by_card(folder)) return {ModelKind::reranker, folder};
    return {encoder ? ModelKind::embedding : ModelKind::language, folder};
  }
  if (models.empty()) {
    if (const auto gguf = gguf_in(folder)) return {kind_of_gguf(*gguf), *gguf};
  }
  if (models.size() > 1) {
    fail(ErrorCode::invalid_argument, "'{}' has {} .onnx files and none is model.onnx: name one", folder.string(), models.size());
  }
  fail(ErrorCode::invalid_argument,
       "'{}' is not a model: there is no sdx.yml, genai_config.json, modules.json, .onnx or .gguf file in it, and no config.json "
       "with model.safetensors",
       folder.string());
}

ModelFiles recognise_file(const fs::path& file) {
  const std::string ending = file.extension().string();
  if (ending == ".gguf") return {kind_of_gguf(file), file};
  if (ending == ".yml" || ending == ".yaml") return {ModelKind::tensors, file, true};
  return {ModelKind::tensors, file};
}

bool is_below(const fs::path& path, const fs::path& root) {
  const auto [in_root, in_path] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  return in_root == root.end();
}

}  // namespace

ModelFiles recognise_model(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) fail(ErrorCode::io, "there is no file or folder '{}'", path.string());
  return fs::is_directory(status) ? recognise_folder(path) : recognise_file(path);
}

std::uint64_t model_bytes_on_disk(const fs::path& path) {
  std::uint64_t bytes = 0;
  each_file(path, [&](const fs::path& file) {
    std::error_code error;
    const std::uint64_t size = fs::file_size(file, error);
    if (!error) bytes += size;
  });
  return bytes;
}

namespace {

// "": there is no such file.
std::string stamp_of(const fs::path& file) {
  const std::optional<FileFacts> facts = file_facts(file);
  if (!facts) return {};
  return fmt::format("{}:{}:{}:{};", file.string(), facts->stamp.bytes, facts->stamp.modified_ns, facts->stamp.changed_ns);
}

}  // namespace

std::string model_stamp(const fs::path& path) {
  std::string out;
  each_file(path, [&](const fs::path& file) { out += stamp_of(file); });
  return out;
}

std::vector<fs::path> files_of_model(const fs::path& path) {
  std::vector<fs::path> out;
  try {
    each_file(path, [&](const fs::path& file) { out.push_back(file); });
    fs::path model = path;
    if (const ModelFiles found = recognise_model(path); found.project) {
      model = Project::open(found.path).model();
      out.push_back(model);
    }
    if (model.extension() == ".onnx") {
      for (const std::string& name : external_names(model)) out.push_back(model.parent_path() / name);
    }
  } catch (const Error&) {  // whoever loads it says what is wrong
  }
  std::erase_if(out, [](const fs::path& file) { return !is_file(file); });
  return out;
}

std::optional<std::string> files_stamp(const std::vector<fs::path>& files) {
  std::string out;
  for (const fs::path& file : files) {
    const std::string one = stamp_of(file);
    if (one.empty()) return std::nullopt;
    out += one;
  }
  return out;
}

void check_inside(const fs::path& path, const fs::path& root) {
  const auto check = [&](const fs::path& one) {
    std::error_code error;
    const fs::path real = fs::canonical(one, error);
    if (error || !is_below(real, root)) {
      fail(ErrorCode::invalid_argument, "'{}' is a link that leads out of the repository, or to nothing", one.string());
    }
  };
  for (const fs::path& part : gguf_parts(path)) check(part);
  std::error_code error;
  if (!fs::is_directory(path, error)) return;
  std::size_t count = 0;
  walk(path, kDepth, count, [&](const fs::directory_entry& entry) {
    std::error_code ignored;
    if (entry.is_symlink(ignored)) check(entry.path());
  });
}

}  // namespace sdx::serve
