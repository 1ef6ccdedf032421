#include "hub/repository_files.h"

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text/ascii.h"
#include "tensor/gguf/gguf_names.h"

namespace sdx::hub {
namespace {

constexpr std::string_view kWeights = "model.safetensors", kListing = "model.safetensors.index.json";

std::string folder_of(const std::string& name) {
  const auto slash = name.rfind('/');
  return slash == std::string::npos ? "" : name.substr(0, slash + 1);
}

std::string name_in_folder(const std::string& name) { return name.substr(folder_of(name).size()); }

// Whether the name of a file is that of a quantisation, in any case of letters: "model-Q4_K_M", "model.q4_k_m", "Q4_K_M".
bool ends_in_tag(const std::string& name, const std::string& tag) {
  const std::string stem = ascii_lower(model_name_of(name)), end = ascii_lower(tag);
  if (!stem.ends_with(end)) return false;
  return stem.size() == end.size() || std::string_view("-._").find(stem[stem.size() - end.size() - 1]) != std::string_view::npos;
}

// Files of a folder that a listing divides a model into: "model-00001-of-00003.safetensors".
bool is_shard(const std::string& name) { return name.starts_with("model-") && name.ends_with(".safetensors"); }

// A folder of sentence-transformers' modules, of which modules.json tells: "1_Pooling/".
bool is_module(const std::string& folder) {
  const std::size_t digits = folder.find_first_not_of("0123456789");
  return digits != 0 && digits != std::string::npos && folder[digits] == '_' && folder.find('/') == folder.size() - 1;
}

}  // namespace

const HubFile& choose_model(const HubListing& listing, const std::string& wanted, const std::string& id) {
  std::vector<std::string> models;
  for (const HubFile& f : listing.files) {
    if (f.name.ends_with(".onnx")) models.push_back(f.name);
  }
  std::sort(models.begin(), models.end());
  std::string chosen = wanted;
  if (chosen.empty() && models.size() == 1) chosen = models.front();
  for (const std::string& usual :
       {std::string("model.onnx"), std::string("onnx/model.onnx"), id.substr(id.rfind('/') + 1) + ".onnx"}) {
    if (chosen.empty() && listing.find(usual) != nullptr) chosen = usual;
  }
  if (const HubFile* file = chosen.empty() ? nullptr : listing.find(chosen)) return *file;
  if (models.empty()) {
    fail(ErrorCode::invalid_argument, "{} has no .onnx file{}, no GGUF file and no model.safetensors", id,
         wanted.empty() ? "" : ", nor '" + wanted + "'");
  }
  const std::string near = closest(wanted, models);
  const std::size_t all = models.size();
  models.resize(std::min<std::size_t>(all, 20));
  fail(ErrorCode::invalid_argument, "{}{}; name one as hf://{}/{}. Models: {}{}", id,
       wanted.empty() ? " has several models" : " has no file '" + wanted + "'", id, near.empty() ? models.front() : near,
       join(models), all > models.size() ? ", …" : "");
}

std::vector<HubFile> choose_gguf(const HubListing& listing, const std::string& tag, const std::string& id) {
  std::vector<std::string> models;
  for (const HubFile& f : listing.files) {
    if (is_whole_gguf(f.name)) models.push_back(f.name);
  }
  // Of "model-Q4_K_M" and "model-UD-Q4_K_M" the shorter one is meant.
  std::sort(models.begin(), models.end(),
            [](const std::string& a, const std::string& b) { return std::pair(a.size(), a) < std::pair(b.size(), b); });
  const std::string wanted = tag.empty() ? "Q4_K_M" : tag;
  auto found = std::find_if(models.begin(), models.end(), [&](const std::string& name) { return ends_in_tag(name, wanted); });
  if (found == models.end() && tag.empty()) found = std::min_element(models.begin(), models.end());
  if (found == models.end()) {
    const std::size_t all = models.size();
    models.resize(std::min<std::size_t>(all, 20));
    fail(ErrorCode::invalid_argument, "{} has no GGUF file{}; it has {}{}", id,
         tag.empty() ? "" : fmt::format(" of the quantisation '{}'", tag), models.empty() ? "none at all" : join(models),
         all > models.size() ? ", …" : "");
  }
  std::vector<HubFile> out;
  for (const std::filesystem::path& part : gguf_parts(*found)) {
    const HubFile* file = listing.find(part.generic_string());
    if (file == nullptr) fail(ErrorCode::io, "{} has '{}', but not its part '{}'", id, *found, part.generic_string());
    out.push_back(*file);
  }
  return out;
}

bool is_safetensors(const std::string& name) { return name.ends_with(".safetensors") || name_in_folder(name) == kListing; }

std::vector<HubFile> choose_safetensors(const HubListing& listing, const std::string& wanted) {
  const std::string folder = folder_of(wanted);
  if (const HubFile* whole = listing.find(wanted.empty() ? std::string(kWeights) : wanted);
      whole != nullptr && !is_shard(name_in_folder(whole->name)) && whole->name.ends_with(".safetensors")) {
    return {*whole};
  }
  const HubFile* index = listing.find(fmt::format("{}{}", folder, kListing));
  if (index == nullptr) return {};
  std::vector<HubFile> out{*index};
  for (const HubFile& f : listing.files) {
    if (folder_of(f.name) == folder && is_shard(name_in_folder(f.name))) out.push_back(f);
  }
  return out;
}

std::vector<Companion> companions(const HubListing& listing, const std::string& model) {
  constexpr const char* kUsual[] = {"config.json",
                                    "tokenizer.json",
                                    "tokenizer_config.json",
                                    "special_tokens_map.json",
                                    "added_tokens.json",
                                    "vocab.txt",
                                    "vocab.json",
                                    "merges.txt",
                                    "tokenizer.model",
                                    "spiece.model",
                                    "sentencepiece.bpe.model",
                                    "chat_template.jinja",
                                    "chat_template.json",
                                    "generation_config.json",
                                    "preprocessor_config.json",
                                    "labels.txt",
                                    "labels.json",
                                    "id2label.json",
                                    "modules.json",
                                    "sentence_bert_config.json",
                                    "config_sentence_transformers.json",
                                    "sparse_linear.safetensors",
                                    "colbert_linear.safetensors",
                                    "sdx.yml",
                                    "gpux.yml"};
  std::vector<Companion> out;
  for (const std::string name : kUsual) {
    const HubFile* file = listing.find(folder_of(model) + name);
    if (file == nullptr) file = listing.find(name);
    if (file != nullptr) out.push_back({*file, name});
  }
  const HubFile* modules = listing.find(folder_of(model) + "modules.json");
  if (modules == nullptr) modules = listing.find("modules.json");
  if (modules == nullptr) return out;
  const std::string root = folder_of(modules->name);
  for (const HubFile& f : listing.files) {
    if (!f.name.starts_with(root)) continue;
    const std::string name = f.name.substr(root.size());
    if (is_module(folder_of(name)) && (name.ends_with("/config.json") || name.ends_with(".safetensors")))
      out.push_back({f, name});
  }
  return out;
}

}  // namespace sdx::hub
