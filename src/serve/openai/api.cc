#include "serve/openai/api.h"

#include <fmt/format.h>

#include <iterator>
#include <set>

#include "base/text/json_text.h"
#include "serve/openai/api_impl.h"

namespace sdx::serve::openai {
namespace {

// The catalogue tells when a model was made available only by loading it.
void append_model(std::string& out, const std::string& name, std::int64_t created) {
  out += "{\"id\":";
  append_json_string(out, name);
  fmt::format_to(std::back_inserter(out), R"(,"object":"model","created":{},"owned_by":"sardonyx"}})", created);
}

bool speaks_here(const ModelStatus& status) { return status.kind != ModelKind::tensors; }

}  // namespace

Response Api::Impl::list_models() {
  std::set<std::string> names;
  for (const ModelStatus& status : models.catalog().list()) {
    if (speaks_here(status)) names.insert(status.name);
  }
  std::string out = R"({"object":"list","data":[)";
  for (const std::string& name : names) {
    if (!out.ends_with('[')) out += ',';
    append_model(out, name, started);
  }
  return json_response(out + "]}");
}

Response Api::Impl::model(const std::string& name) {
  for (const ModelStatus& status : models.catalog().list()) {
    if ((status.name != name && status.name + ":" + status.version != name) || !speaks_here(status)) continue;
    std::string out;
    append_model(out, name, started);
    return json_response(std::move(out));
  }
  no_such_model(name);
}

Api::Api(Catalog& catalog, Metrics& metrics, const ApiOptions& options)
    : impl_(std::make_unique<Impl>(catalog, metrics, options)) {}
Api::~Api() = default;

void Api::add_routes(Router& router) {
  Impl* const impl = impl_.get();
  const auto route = [&](const char* method, const char* pattern, Runs runs) {
    Route out;
    out.method = method;
    out.pattern = pattern;
    out.runs = runs;
    if (runs == Runs::on_pool) out.body_bytes = impl->options.body_bytes;
    return out;
  };
  const auto at_once = [](auto answer) {
    return Handler([answer](const Request& request) {
      try {
        return answer(request);
      } catch (...) {
        return error_response(current_api_error());
      }
    });
  };
  const auto later = [](auto answer) {
    return AsyncHandler([answer](const RequestPtr& request, const ResponderPtr& responder) {
      try {
        answer(request, responder);
      } catch (...) {
        responder->respond(error_response(current_api_error()));
      }
    });
  };
  router.add(route("GET", "/v1/models", Runs::at_once), at_once([impl](const Request&) { return impl->list_models(); }));
  router.add(route("GET", "/v1/models/{model...}", Runs::at_once),
             at_once([impl](const Request& request) { return impl->model(std::string(request.part("model"))); }));
  router.add(route("POST", "/v1/chat/completions", Runs::on_pool),
             later([impl](auto& request, auto& responder) { impl->chat(request, responder); }));
  router.add(route("POST", "/v1/completions", Runs::on_pool),
             later([impl](auto& request, auto& responder) { impl->completions(request, responder); }));
  router.add(route("POST", "/v1/embeddings", Runs::on_pool),
             at_once([impl](const Request& request) { return impl->embeddings(request); }));
  for (const char* path : {"/v1/rerank", "/rerank"}) {
    router.add(route("POST", path, Runs::on_pool), at_once([impl](const Request& request) { return impl->rerank(request); }));
  }
}

}  // namespace sdx::serve::openai
