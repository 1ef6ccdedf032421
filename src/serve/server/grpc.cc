#include "serve/server/grpc.h"

#include <nlohmann/json.hpp>

#include "base/system/mapped_file.h"
#include "serve/grpc_api.h"
#include "serve/inference/grpc_host.h"

namespace sdx::serve {
namespace {

constexpr std::size_t kPemBytes = std::size_t{1} << 20;

GrpcError error_of(const Response& response) {
  const nlohmann::json document = nlohmann::json::parse(response.body, nullptr, false);
  GrpcError out{response.status, {}};
  if (document.is_object() && document.contains("error")) {
    const nlohmann::json& error = document["error"];
    const nlohmann::json& message = error.is_object() ? error.value("message", nlohmann::json()) : error;
    if (message.is_string()) out.message = message.get<std::string>();
  }
  return out;
}

// The same keys and limits as for HTTP. Calls come from programs: pages of other sites cannot make them.
std::optional<GrpcError> ask_guard(Guard& guard, GrpcCall& call) {
  Request request;
  request.method = "POST";
  request.headers.emplace_back("authorization", call.authorization);
  request.client = call.peer;
  Route route;
  route.method = "POST";
  route.needs = call.health ? Needs::nothing : Needs::key;
  route.limited = !call.health;
  if (const auto refused = guard.check_key(request, &route)) return error_of(*refused);
  if (const auto refused = guard.check_load(request, route)) return error_of(*refused);
  call.held = std::move(request.held);
  return std::nullopt;
}

// Without counting.
std::optional<GrpcError> key_error(Guard& guard, std::string_view authorization) {
  Request request;
  request.headers.emplace_back("authorization", authorization);
  Route route;
  route.limited = false;
  const auto refused = guard.check_key(request, &route);
  return refused ? std::optional(error_of(*refused)) : std::nullopt;
}

struct Pem {
  std::string certificate, key;
};

Pem read_pem(const ServeRequest& request) {
  return {read_file(request.tls_cert, kPemBytes), read_file(request.tls_key, kPemBytes)};
}

}  // namespace

void reload_certificate(GrpcServer& server, const ServeRequest& request) {
  const Pem pem = read_pem(request);
  server.replace_certificate(pem.certificate, pem.key);
}

std::unique_ptr<GrpcServer> start_grpc(const ServeRequest& request, const Settings& settings, Catalog& catalog, Guard& guard) {
  if (settings.grpc_port == -2) return nullptr;
  GrpcOptions options;
  options.host = settings.host;
  options.port = settings.grpc_port;
  if (!request.tls_cert.empty()) {
    Pem pem = read_pem(request);
    options.certificate = std::move(pem.certificate);
    options.key = std::move(pem.key);
  }
  GrpcHost host = grpc_host(catalog);
  host.guard = [&guard](GrpcCall& call) { return ask_guard(guard, call); };
  host.key_error = [&guard](std::string_view authorization) { return key_error(guard, authorization); };
  return load_module<GrpcModule>().serve(options, std::move(host));
}

}  // namespace sdx::serve
