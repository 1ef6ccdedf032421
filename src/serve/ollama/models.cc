#include "serve/ollama/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text/json_text.h"
#include "base/text/model_name.h"
#include "serve/models/model_files.h"
#include "serve/openai/chat/time_text.h"
#include "serve/openai/fields.h"

namespace sdx::serve::ollama {
namespace {

using openai::Json;

constexpr std::string_view kLatest = ":latest";

std::string tagged(const std::string& name) { return name.find(':') == std::string::npos ? name + std::string(kLatest) : name; }

// Clients show its beginning and compare it; nothing is fetched by it.
std::string digest_of(const LoadedModel* model, const std::string& name) {
  std::string text = name;
  if (model != nullptr) text += fmt::format("|{}|{}", model->path.string(), model->version);
  std::string out;
  for (int part = 0; part < 4; ++part) {
    std::uint64_t hash = 0xCBF29CE484222325 + static_cast<std::uint64_t>(part);
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
    out += fmt::format("{:016x}", hash);
  }
  return out;
}

std::string architecture_of(const LoadedModel* model) {
  if (model == nullptr || !model->language) return {};
  return model->language->model.info().architecture;
}

Json details_of(const LoadedModel* model) {
  const std::string family = architecture_of(model);
  return {{"parent_model", ""},   {"format", model != nullptr && model->language ? model->language->model.info().format : "onnx"},
          {"family", family},     {"families", family.empty() ? Json::array() : Json::array({family})},
          {"parameter_size", ""}, {"quantization_level", ""}};
}

Json entry(const std::string& name, const LoadedModel* model) {
  Json out = {{"name", tagged(name)}, {"model", tagged(name)}};
  const auto changed = model != nullptr ? model->loaded_at : std::chrono::system_clock::time_point();
  out["modified_at"] = openai::time_text(changed);
  out["size"] = model != nullptr ? model_bytes_on_disk(model->path) : 0;
  out["digest"] = digest_of(model, name);
  out["details"] = details_of(model);
  return out;
}

bool speaks(const ModelStatus& status) {
  return !status.kind || *status.kind == ModelKind::language || *status.kind == ModelKind::embedding;
}

bool speaks(const LoadedModel& model) { return model.kind == ModelKind::language || model.kind == ModelKind::embedding; }

Json capabilities_of(const LoadedModel& model) {
  if (model.kind == ModelKind::embedding) return Json::array({"embedding"});
  Json out = Json::array({"completion"});
  if (!model.language || !model.language->chat) return out;
  const std::string& source = model.language->chat->source();
  if (model.language->chat->tool_source().find("tools") != std::string::npos) out.push_back("tools");
  if (source.find("enable_thinking") != std::string::npos || source.find("<think>") != std::string::npos)
    out.push_back("thinking");
  return out;
}

// As a Modelfile has them, a line each.
std::string parameters_of(const LanguageModelInfo& info) {
  const SamplingSettings &s = info.defaults, plain;
  std::string out;
  const auto add = [&](std::string_view name, auto value, auto otherwise) {
    if (value != otherwise) out += fmt::format("{} {}\n", name, value);
  };
  if (s.greedy) {
    out += "temperature 0\n";
  } else {
    add("temperature", s.temperature, plain.temperature);
  }
  add("top_k", s.top_k, plain.top_k);
  add("top_p", s.top_p, plain.top_p);
  add("min_p", s.min_p, plain.min_p);
  add("repeat_penalty", s.repetition_penalty, plain.repetition_penalty);
  return out;
}

Json facts_of(const LanguageModelInfo& info) {
  const std::string name = info.architecture.empty() ? "model" : info.architecture;
  Json out = {{"general.architecture", name}};
  if (info.context > 0) out[name + ".context_length"] = info.context;
  out[name + ".block_count"] = info.layers;
  out[name + ".attention.head_count_kv"] = info.kv_heads;
  out[name + ".vocab_size"] = info.vocabulary;
  return out;
}

}  // namespace

std::string known_name(const Catalog& catalog, const std::string& name) {
  const std::vector<ModelStatus> all = catalog.list();
  const auto has = [&](const std::string& one) {
    return std::any_of(all.begin(), all.end(), [&](const ModelStatus& status) { return status.name == one; });
  };
  if (has(name)) return name;
  for (const PulledModel& model : catalog.pulled()) {
    if (tagged(model.asked) == tagged(name)) return model.name;
  }
  std::string plain = name.ends_with(kLatest) ? name.substr(0, name.size() - kLatest.size()) : name;
  if (has(plain)) return plain;
  // What `sdx pull` has put into the repository's folder.
  const std::string folder = model_folder_name(name);
  return has(folder) ? folder : plain;
}

namespace {

// What clients call a model: the name by which it was pulled, else the catalogue's.
std::map<std::string, std::string> names_for_clients(const Catalog& catalog) {
  std::map<std::string, std::string> out;
  for (const PulledModel& model : catalog.pulled()) out.emplace(model.name, model.asked);
  return out;
}

std::string name_for_clients(const std::map<std::string, std::string>& names, const std::string& name) {
  const auto found = names.find(name);
  return found == names.end() ? name : found->second;
}

}  // namespace

std::string tags_json(const Catalog& catalog) {
  const std::map<std::string, std::string> asked = names_for_clients(catalog);
  std::map<std::string, ModelPtr> names;
  for (const ModelStatus& status : catalog.list()) {
    if (speaks(status)) names.emplace(status.name, nullptr);
  }
  for (const ModelPtr& model : catalog.loaded()) {
    if (const auto found = names.find(model->name); found != names.end()) found->second = model;
  }
  Json list = Json::array();
  for (const auto& [name, model] : names) list.push_back(entry(name_for_clients(asked, name), model.get()));
  return dump_json(Json{{"models", std::move(list)}});
}

std::string running_json(const Catalog& catalog) {
  const std::map<std::string, std::string> asked = names_for_clients(catalog);
  Json list = Json::array();
  for (const ModelPtr& model : catalog.loaded()) {
    if (!speaks(*model)) continue;
    Json one = entry(name_for_clients(asked, model->name), model.get());
    one.erase("modified_at");
    one["expires_at"] = "2318-01-01T00:00:00Z";  // models stay until memory is short
    one["size_vram"] = 0;
    if (model->language) one["context_length"] = model->language->model.info().context;
    list.push_back(std::move(one));
  }
  return dump_json(Json{{"models", std::move(list)}});
}

std::string show_json(const LoadedModel& model) {
  Json out = {{"modelfile", "FROM " + model.name + "\n"}, {"parameters", ""}, {"template", ""}};
  out["details"] = details_of(&model);
  out["model_info"] = Json::object();
  if (model.language) {
    const LanguageModelInfo& info = model.language->model.info();
    out["parameters"] = parameters_of(info);
    if (model.language->chat) out["template"] = model.language->chat->source();
    out["model_info"] = facts_of(info);
  } else if (model.embedder && model.embedder->max_length() > 0) {
    out["model_info"] = {{"general.architecture", "encoder"}, {"encoder.context_length", model.embedder->max_length()}};
  }
  out["capabilities"] = capabilities_of(model);
  out["modified_at"] = openai::time_text(model.loaded_at);
  return dump_json(out);
}

}  // namespace sdx::serve::ollama
