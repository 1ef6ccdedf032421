#include "serve/openai/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "base/text/json_text.h"
#include "serve/openai/api_impl.h"
#include "serve/openai/chat/handlers.h"
#include "serve/openai/chat/time_text.h"

namespace sdx::serve::openai {
namespace {

// The catalogue tells when a model was made available only by loading it. Facts that its files have are there once it is loaded:
// the context by vLLM's name, and others by llama.cpp's.
void append_model(std::string& out, const std::string& name, std::int64_t created, const LoadedModel* loaded) {
  out += "{\"id\":";
  append_json_string(out, name);
  fmt::format_to(std::back_inserter(out), R"(,"object":"model","created":{},"owned_by":"sardonyx")", created);
  if (loaded != nullptr && loaded->language) {
    const LanguageModelInfo& info = loaded->language->model.info();
    if (info.context > 0) fmt::format_to(std::back_inserter(out), R"(,"max_model_len":{})", info.context);
    fmt::format_to(std::back_inserter(out), R"(,"meta":{{"n_ctx":{0},"n_ctx_train":{0},"n_vocab":{1},"size":{2}}})",
                   info.context > 0 ? std::to_string(info.context) : "null", info.vocabulary, loaded->file_bytes);
  }
  out += '}';
}

// In the form of Anthropic's interface, whose clients say so in a header field.
void append_anthropic_model(std::string& out, const std::string& name, std::int64_t created) {
  const std::string text = json_string(name);
  fmt::format_to(std::back_inserter(out), R"({{"type":"model","id":{0},"display_name":{0},"created_at":"{1}"}})", text,
                 time_text(std::chrono::system_clock::from_time_t(created)));
}

bool is_anthropic(const Request& request) { return !request.header("anthropic-version").empty(); }

bool speaks_here(const ModelStatus& status) { return status.kind != ModelKind::tensors; }

}  // namespace

Response Api::Impl::list_models(const Request& request) {
  std::map<std::string, ModelPtr> names;
  for (const ModelStatus& status : models.catalog().list()) {
    if (speaks_here(status)) names.emplace(status.name, nullptr);
  }
  for (const ModelPtr& model : models.catalog().loaded()) {
    if (const auto found = names.find(model->name); found != names.end()) found->second = model;
  }
  const bool anthropic = is_anthropic(request);
  std::string out = anthropic ? R"({"data":[)" : R"({"object":"list","data":[)";
  for (const auto& [name, model] : names) {
    if (!out.ends_with('[')) out += ',';
    if (anthropic) {
      append_anthropic_model(out, name, started);
    } else {
      append_model(out, name, started, model.get());
    }
  }
  out += ']';
  if (anthropic) {
    out += R"(,"has_more":false,"first_id":)" + (names.empty() ? "null" : json_string(names.begin()->first));
    out += R"(,"last_id":)" + (names.empty() ? "null" : json_string(names.rbegin()->first));
  }
  return json_response(out + "}");
}

Response Api::Impl::model(const Request& request) {
  const std::string name(request.part("model"));
  for (const ModelStatus& status : models.catalog().list()) {
    if ((status.name != name && status.name + ":" + status.version != name) || !speaks_here(status)) continue;
    std::string out;
    if (is_anthropic(request)) {
      append_anthropic_model(out, name, started);
    } else {
      const std::vector<ModelPtr> loaded = models.catalog().loaded();
      const auto found = std::find_if(loaded.begin(), loaded.end(),
                                      [&](const ModelPtr& m) { return m->name == status.name && m->version == status.version; });
      append_model(out, name, started, found != loaded.end() ? found->get() : nullptr);
    }
    return json_response(std::move(out));
  }
  no_such_model(name);
}

Api::Api(Catalog& catalog, Metrics& metrics, const ApiOptions& options)
    : impl_(std::make_unique<Impl>(catalog, metrics, options)) {}
Api::~Api() = default;
Shared& Api::shared() { return *impl_; }

void Api::add_routes(Router& router) {
  Impl* const impl = impl_.get();
  const auto post = [impl](const char* pattern) { return pool_route("POST", pattern, impl->body_bytes); };
  router.add(quick_route("GET", "/v1/models"), at_once([impl](const Request& request) { return impl->list_models(request); }));
  router.add(quick_route("GET", "/v1/models/{model...}"),
             at_once([impl](const Request& request) { return impl->model(request); }));
  router.add(post("/v1/chat/completions"), later([impl](auto& request, auto& responder) { impl->chat(request, responder); }));
  router.add(post("/v1/completions"), later([impl](auto& request, auto& responder) { impl->completions(request, responder); }));
  router.add(post("/v1/embeddings"), at_once([impl](const Request& request) { return impl->embeddings(request); }));
  constexpr std::uint64_t kSoundBytes = std::uint64_t{26} << 20;  // OpenAI takes 25 MiB
  for (const bool translate : {false, true}) {
    router.add(pool_route("POST", translate ? "/v1/audio/translations" : "/v1/audio/transcriptions",
                          std::max<std::uint64_t>(impl->body_bytes, kSoundBytes)),
               later([impl, translate](auto& request, auto& responder) { impl->transcribe(request, responder, translate); }));
  }
  for (const char* path : {"/v1/rerank", "/rerank"}) {
    router.add(post(path), at_once([impl](const Request& request) { return impl->rerank(request); }));
  }
}

}  // namespace sdx::serve::openai
