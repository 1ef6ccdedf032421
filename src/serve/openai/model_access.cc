#include "serve/openai/model_access.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/model_name.h"
#include "serve/openai/error.h"

namespace sdx::serve::openai {
namespace {

constexpr std::size_t kMostNameBytes = 300;  // of a name and a version; folders have at most 255

std::uint64_t fnv(std::uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

std::string fingerprint_of(const LoadedModel& model) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(model.path, error);
  std::uint64_t hash = fnv(0xCBF29CE484222325, SDX_VERSION);
  hash = fnv(hash, fmt::format("|{}|{}|{}", model.path.string(), model.bytes, written.time_since_epoch().count()));
  return fmt::format("fp_{:010x}", hash & 0xFFFFFFFFFF);
}

[[noreturn]] void wrong_kind(const std::string& name, ModelKind kind, std::string_view path) {
  std::string_view other = "the paths of /v2";
  if (kind == ModelKind::language) other = "/v1/chat/completions or /v1/completions";
  if (kind == ModelKind::embedding) other = "/v1/embeddings";
  if (kind == ModelKind::reranker) other = "/v1/rerank";
  if (kind == ModelKind::speech) other = "/v1/audio/transcriptions";
  ApiError error(404, fmt::format("The model `{}` is not supported by {}. Did you mean to use {}?", name, path, other));
  error.param = "model";
  throw error;
}

}  // namespace

void no_such_model(const std::string& name) {
  ApiError error(404, fmt::format("The model `{}` does not exist or you do not have access to it.", name.substr(0, 200)));
  error.param = "model";
  error.code = "model_not_found";
  throw error;
}

ModelFacts::ModelFacts(const LoadedModel& model) : fingerprint_(fingerprint_of(model)) {
  if (!model.language || !model.language->chat) return;
  format_ = answer_format(*model.language->chat);
  for (const std::string* source : {&model.language->chat->source(), &model.language->chat->tool_source()}) {
    for (const std::string& mark : {format_.reasoning_begin, format_.reasoning_end}) {
      reasons_ = reasons_ || (!mark.empty() && source->find(mark) != std::string::npos);
    }
  }
  knows_developers_ = model.language->chat->source().find("developer") != std::string::npos;
}

std::shared_ptr<const TokenTexts> ModelFacts::texts(const LanguageModel& model) {
  const std::lock_guard lock(mutex_);
  if (!texts_) texts_ = std::make_shared<const TokenTexts>(model.tokenizer());
  return texts_;
}

bool ModelAccess::has(const std::string& name) const {
  const std::vector<ModelStatus> all = catalog_.list();
  return std::any_of(all.begin(), all.end(), [&](const ModelStatus& status) { return status.name == name; });
}

ModelPtr ModelAccess::find(const std::string& name) {
  if (name.size() > kMostNameBytes) no_such_model(name);
  try {
    try {
      return catalog_.get(name);
    } catch (const UnknownModel&) {
      const std::size_t colon = name.rfind(':');
      if (colon == std::string::npos || colon + 1 == name.size()) throw;
      // The folder of a pulled model, "qwen3-0.6b" for "qwen3:0.6b".
      if (const std::string folder = model_folder_name(name); has(folder)) return catalog_.get(folder);
      return catalog_.get(name.substr(0, colon), name.substr(colon + 1));
    }
  } catch (const UnknownModel&) {
    no_such_model(name);
  } catch (const Error& error) {
    ApiError unavailable(503, fmt::format("The model `{}` cannot be used: {}", name, error.message()), "server_error");
    unavailable.code = "model_unavailable";
    throw unavailable;
  }
}

std::shared_ptr<ModelFacts> ModelAccess::facts(const ModelPtr& model) {
  const std::lock_guard lock(mutex_);
  auto& [owner, facts] = facts_[model.get()];
  if (!facts || owner.lock() != model) {
    facts = std::make_shared<ModelFacts>(*model);
    owner = model;
  }
  std::shared_ptr<ModelFacts> out = facts;
  std::erase_if(facts_, [](const auto& item) { return item.second.first.expired(); });
  return out;
}

Found ModelAccess::get(const std::string& name, ModelKind kind, std::string_view path) {
  ModelPtr model = find(name);
  if (model->kind != kind) wrong_kind(name, model->kind, path);
  std::shared_ptr<ModelFacts> known = facts(model);
  return {std::move(model), std::move(known)};
}

}  // namespace sdx::serve::openai
