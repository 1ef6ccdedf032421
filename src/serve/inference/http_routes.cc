#include "serve/inference/http_routes.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/text/json_text.h"
#include "serve/inference/describe.h"
#include "serve/inference/infer_json.h"
#include "serve/inference/routes.h"

namespace sdx::serve {
namespace {

using nlohmann::json;

Response answer(const json& document) { return json_response(dump_json(document)); }

std::optional<std::size_t> header_length(const Request& request) {
  const std::string_view text = request.header("Inference-Header-Content-Length");
  if (text.empty()) return std::nullopt;
  std::size_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error != std::errc() || end != text.data() + text.size()) {
    fail(ErrorCode::invalid_argument, "Inference-Header-Content-Length must be a number of bytes, received '{}'", text);
  }
  return length;
}

void infer_over_http(Catalog& catalog, const RequestPtr& request, const ResponderPtr& responder) {
  request->notes->set_model(request->part("model"));
  const std::optional<std::size_t> length = header_length(*request);
  auto parsed = std::make_shared<InferRequest>();
  if (length == std::size_t{0}) {
    add_raw_input(*parsed, *model_of(catalog, *request), request->body, request);
  } else {
    *parsed = parse_infer_request(request->body, length, request);
  }
  parsed->model = request->part("model");
  parsed->version = request->part("version");
  parsed->run.cancel = cancel_with(*responder);
  InferRequest asked = *parsed;
  parsed->inputs = {};
  infer(catalog, std::move(asked),
        [parsed, responder, notes = request->notes, begin = Notes::Clock::now()](const InferResult& result) {
          add_stages(*notes, begin, result.times);
          try {
            responder->respond(result.error ? error_answer(result.error) : infer_response(*parsed, result));
          } catch (...) {
            responder->respond(error_answer(std::current_exception()));
          }
        });
}

Response model_ready(Catalog& catalog, const Request& request) {
  const ModelPtr model = model_of(catalog, request);  // or throws why not
  return answer({{"name", model->name}, {"ready", true}});
}

void add_server_routes(Router& router, Catalog& catalog) {
  const auto health = [&](const char* pattern, const Handler& handler) {
    Route route = protocol_route("GET", pattern, Runs::at_once);
    route.needs = Needs::nothing;
    route.limited = false;
    router.add(route, handler);
  };
  health("/v2/health/live", [](const Request&) { return answer({{"live", true}}); });
  health("/v2/health/ready", [&catalog](const Request&) {
    const bool ready = catalog.ready();
    return json_response(json{{"ready", ready}}.dump(), ready ? 200 : 503);
  });
  router.add(protocol_route("GET", "/v2", Runs::at_once), [](const Request&) { return answer(describe_server()); });
  router.add(protocol_route("GET", "/v2/models/stats"),
             [&catalog](const Request&) { return answer(describe_statistics(catalog, {}, {})); });
}

void add_model_routes(Router& router, Catalog& catalog, const InferenceOptions& options) {
  const auto get = [&](const char* behind, const Handler& handler) { add_for_model(router, "GET", behind, 0, handler); };
  get("", [&catalog](const Request& request) {
    const ModelPtr model = model_of(catalog, request);
    return answer(describe_model(*model, versions_of(catalog, model->name)));
  });
  get("/ready", [&catalog](const Request& request) { return model_ready(catalog, request); });
  get("/config", [&catalog](const Request& request) { return answer(describe_config(*model_of(catalog, request))); });
  get("/stats", [&catalog](const Request& request) {
    const ModelPtr model = model_of(catalog, request);
    return answer(describe_statistics(catalog, model->name, request.part("version")));
  });
  add_for_model(router, "POST", "/infer", options.body_bytes,
                AsyncHandler([&catalog](const RequestPtr& request, const ResponderPtr& responder) {
                  infer_over_http(catalog, request, responder);
                }));
}

}  // namespace

Response protocol_error(int status, std::string_view message) {
  Response response = json_response(dump_json(json{{"error", message}}), status);
  return response;
}

Response error_answer(const std::exception_ptr& error) {
  const ErrorMeaning meaning = meaning_of(error);
  Response response = protocol_error(meaning.status, meaning.message);
  if (meaning.retry_after > 0) response.headers.emplace_back("Retry-After", std::to_string(meaning.retry_after));
  return response;
}

Handler answering(Handler handler) {
  return [handler = std::move(handler)](const Request& request) {
    try {
      return handler(request);
    } catch (...) {
      return error_answer(std::current_exception());
    }
  };
}

AsyncHandler answering(AsyncHandler handler) {
  return [handler = std::move(handler)](const RequestPtr& request, const ResponderPtr& responder) {
    try {
      handler(request, responder);
    } catch (...) {
      responder->respond(error_answer(std::current_exception()));
    }
  };
}

ModelPtr model_of(Catalog& catalog, const Request& request) {
  return catalog.get(request.part("model"), request.part("version"));
}

void add_stages(Notes& notes, Notes::Clock::time_point begin, const BatchTimes& times) {
  const auto compute = begin + std::chrono::duration_cast<Notes::Clock::duration>(times.queue);
  notes.add_stage("queue", begin, compute);
  notes.add_stage("compute", compute,
                  compute + std::chrono::duration_cast<Notes::Clock::duration>(times.input + times.infer + times.output));
}

CancelToken cancel_with(Responder& responder) {
  CancelToken token;
  responder.on_gone([token]() mutable { token.cancel(); });
  return token;
}

Route protocol_route(std::string_view method, std::string_view pattern, Runs runs, std::uint64_t body) {
  Route route;
  route.method = method;
  route.pattern = pattern;
  route.runs = runs;
  route.body_bytes = body;
  route.shape = protocol_error;
  return route;
}

void add_inference_routes(Router& router, Catalog& catalog, const InferenceOptions& options) {
  add_server_routes(router, catalog);
  add_model_routes(router, catalog, options);
  add_repository_routes(router, catalog, options);
  add_generate_routes(router, catalog);
  add_predict_routes(router, catalog, options);
}

}  // namespace sdx::serve
