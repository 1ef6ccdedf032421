#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text/json_text.h"
#include "serve/inference/describe.h"
#include "serve/inference/routes.h"

namespace sdx::serve {
namespace {

using nlohmann::json;

// An empty body is an empty object.
json read_object(const Request& request) {
  if (request.body.empty()) return json::object();
  json document = json::parse(request.body, nullptr, false);
  if (!document.is_object()) fail(ErrorCode::invalid_argument, "the body is not a JSON object");
  // Clients write null for absent members.
  for (auto at = document.begin(); at != document.end();) at = at->is_null() ? document.erase(at) : std::next(at);
  return document;
}

json parameters_of(const Request& request) {
  json document = read_object(request);
  const auto at = document.find("parameters");
  if (at == document.end() || at->is_null()) return json::object();
  if (!at->is_object()) fail(ErrorCode::invalid_argument, "\"parameters\" must be an object");
  return *at;
}

Response index(const Catalog& catalog, const Request& request) {
  const json document = read_object(request);
  const auto ready = document.find("ready");
  if (ready != document.end() && !ready->is_boolean()) fail(ErrorCode::invalid_argument, "\"ready\" must be true or false");
  const json list = describe_repository(catalog, ready != document.end() && ready->get<bool>());
  return json_response(dump_json(list));
}

Response load(Catalog& catalog, const Request& request) {
  std::optional<ModelSettings> settings;
  const json parameters = parameters_of(request);
  for (const auto& [key, value] : parameters.items()) {
    if (value.is_null()) continue;
    if (key.starts_with("file:")) {
      fail(ErrorCode::not_implemented, "models are loaded only from the repository: '{}' is not supported", key.substr(0, 100));
    }
    if (key != "config") fail(ErrorCode::invalid_argument, "loading has no parameter '{}'; it has config", key.substr(0, 100));
    if (!value.is_string()) fail(ErrorCode::invalid_argument, "\"config\" must be a string that contains JSON");
    settings = settings_of_request(value.get_ref<const std::string&>());
  }
  catalog.load(request.part("model"), settings);
  return json_response("{}");
}

constexpr const char* kNoSharedMemory = "shared memory is not supported: send tensors in the request (binary_data_size)";

void add_settings_routes(Router& router) {
  // Requests of Triton's clients. Traces and logs of this server are set on its command line.
  const json trace{{"trace_level", {"OFF"}}, {"trace_rate", "1000"}, {"trace_count", "-1"},
                   {"log_frequency", "0"},   {"trace_file", ""},     {"trace_mode", "opentelemetry"}};
  const json log{{"log_file", ""},    {"log_info", true},       {"log_warning", true},
                 {"log_error", true}, {"log_verbose_level", 0}, {"log_format", "default"}};
  const auto show = [](const json& settings) { return [text = settings.dump()](const Request&) { return json_response(text); }; };
  const auto refuse = [](const char* why) { return [why](const Request&) { return protocol_error(400, why); }; };
  router.add(protocol_route("GET", "/v2/trace/setting", Runs::at_once), show(trace));
  router.add(protocol_route("GET", "/v2/models/{model}/trace/setting", Runs::at_once), show(trace));
  router.add(protocol_route("GET", "/v2/logging", Runs::at_once), show(log));
  const char* why_trace = "traces are set when the server starts (--otlp)";
  router.add(protocol_route("POST", "/v2/trace/setting", Runs::at_once), refuse(why_trace));
  router.add(protocol_route("POST", "/v2/models/{model}/trace/setting", Runs::at_once), refuse(why_trace));
  router.add(protocol_route("POST", "/v2/logging", Runs::at_once), refuse("logs are set when the server starts (--log-format)"));
  for (const char* kind : {"/v2/systemsharedmemory/{rest...}", "/v2/cudasharedmemory/{rest...}"}) {
    for (const char* method : {"GET", "POST"}) {
      router.add(protocol_route(method, kind, Runs::at_once),
                 [](const Request&) { return protocol_error(501, kNoSharedMemory); });
    }
  }
}

}  // namespace

void add_repository_routes(Router& router, Catalog& catalog, const InferenceOptions& options) {
  router.add(protocol_route("POST", "/v2/repository/index"),
             answering(Handler([&catalog](const Request& request) { return index(catalog, request); })));
  const auto add = [&](const char* pattern, const Handler& change) {
    const Handler refused = [](const Request&) {
      return protocol_error(403, "this server does not load or unload models on request");
    };
    router.add(protocol_route("POST", pattern, Runs::on_pool, 16 << 20), options.control ? answering(change) : refused);
  };
  add("/v2/repository/models/{model}/load", [&catalog](const Request& request) { return load(catalog, request); });
  add("/v2/repository/models/{model}/unload", [&catalog](const Request& request) {
    parameters_of(request);  // unload_dependents: no model depends on another
    catalog.unload(request.part("model"));
    return json_response("{}");
  });
  add_settings_routes(router);
}

}  // namespace sdx::serve
