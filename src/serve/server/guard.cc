#include "serve/server/guard.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/ascii.h"
#include "serve/http/text.h"

namespace sdx::serve {
namespace {

// The key of "Authorization: Bearer KEY".
std::string_view bearer(std::string_view field) {
  constexpr std::string_view scheme = "bearer ";
  if (field.size() < scheme.size() || ascii_lower(field.substr(0, scheme.size())) != scheme) return {};
  field.remove_prefix(scheme.size());
  while (field.starts_with(' ')) field.remove_prefix(1);
  return field;
}

// Anthropic's clients send the key in a field of its own.
std::string_view key_of(const Request& request) {
  const std::string_view key = bearer(request.header("authorization"));
  return key.empty() ? request.header("x-api-key") : key;
}

Response busy(Response response, std::chrono::seconds retry_after) {
  response.headers.emplace_back("Retry-After", fmt::format("{}", std::max<std::int64_t>(1, retry_after.count())));
  return response;
}

}  // namespace

Guard::Guard(GuardOptions options, std::unique_ptr<Keys> keys) : options_(std::move(options)), keys_(std::move(keys)) {}

bool Guard::allows(std::string_view origin) const {
  return std::any_of(options_.origins.begin(), options_.origins.end(),
                     [&](const std::string& allowed) { return allowed == "*" || ascii_lower(allowed) == ascii_lower(origin); });
}

// A page of another site that the user's browser shows can send requests here, though not read the answers; a request that
// changes something needs no answer. The scheme is not compared, because a proxy may do the encrypting.
bool Guard::foreign(const Request& request) const {
  const std::string_view origin = request.header("origin");
  if (origin.empty() || allows(origin)) return false;
  const std::size_t slashes = origin.find("://");
  return slashes == std::string_view::npos || ascii_lower(origin.substr(slashes + 3)) != ascii_lower(request.header("host"));
}

std::optional<Response> Guard::check_caller(const Request& request) const {
  if (!options_.hosts.empty()) {
    const std::string name = ascii_lower(split_host(request.header("host")).name);
    if (std::find(options_.hosts.begin(), options_.hosts.end(), name) == options_.hosts.end()) {
      return api_error(421, "the request's Host is not a name of this server; --allow-host NAME adds one");
    }
  }
  if (foreign(request)) return api_error(403, "pages of other sites may not use this server; --cors ORIGIN allows it");
  return std::nullopt;
}

std::optional<Response> Guard::check_key(Request& request, const Route* found) {
  static const Route unknown;  // strangers do not learn which paths there are
  const Route& route = found ? *found : unknown;
  if (!keys_ || route.needs == Needs::nothing) return std::nullopt;
  auto answer = keys_->ask(key_of(request), route.limited, std::chrono::steady_clock::now(), std::chrono::system_clock::now());
  request.key = answer.name;
  request.held = std::move(answer.held);
  // OpenAI's clients look at the code; others have an error's shape of their own.
  const auto refuse = [&](int status, std::string_view message, std::string_view type, std::string_view code) {
    return route.shape == api_error_shape ? api_error(status, message, type, code) : route.shape(status, message);
  };
  const auto unauthorized = [&](std::string_view message, std::string_view code) {
    Response response = refuse(401, message, "invalid_request_error", code);
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
    return response;
  };
  switch (answer.verdict) {
    case Keys::Verdict::fine: return std::nullopt;
    case Keys::Verdict::missing:
      return unauthorized("this server needs an API key: send 'Authorization: Bearer KEY'", "missing_api_key");
    case Keys::Verdict::unknown: return unauthorized("this server does not know the API key", "invalid_api_key");
    case Keys::Verdict::expired: return refuse(403, "the API key has expired", "", "expired_api_key");
    case Keys::Verdict::too_often:
      return busy(refuse(429, "the API key has used up its requests for now", "", "rate_limit_exceeded"), answer.retry_after);
    case Keys::Verdict::too_many:
      return busy(refuse(429, "the API key's limit of concurrent requests is reached", "", "concurrency_limit_exceeded"),
                  answer.retry_after);
  }
  return std::nullopt;
}

std::optional<Response> Guard::check_load(Request& request, const Route& route) {
  if (!route.limited) return std::nullopt;
  if (running_->fetch_add(1) >= options_.most_running) {
    --*running_;
    return busy(route.shape(503, "the server is busy; try again later"), std::chrono::seconds(1));
  }
  // Lets go of the key's share as well.
  request.held = std::shared_ptr<void>(nullptr, [running = running_, held = std::move(request.held)](void*) { --*running; });
  return std::nullopt;
}

std::optional<Response> Guard::preflight(const Request& request, std::string_view allowed_methods) const {
  if (request.method != "OPTIONS" || allowed_methods.empty()) return std::nullopt;
  Response response;
  response.status = 204;
  response.headers.emplace_back("Allow", std::string(allowed_methods));
  const std::string_view origin = request.header("origin");
  if (origin.empty() || !allows(origin) || request.header("access-control-request-method").empty()) return response;
  response.headers.emplace_back("Access-Control-Allow-Methods", std::string(allowed_methods));
  response.headers.emplace_back("Access-Control-Max-Age", "600");
  const std::string_view fields = request.header("access-control-request-headers");
  if (!fields.empty()) response.headers.emplace_back("Access-Control-Allow-Headers", std::string(fields));
  return response;
}

void Guard::decorate(const Request& request, Response& response) const {
  if (!options_.origins.empty()) {
    response.headers.emplace_back("Vary", "Origin");
    const std::string_view origin = request.header("origin");
    if (!origin.empty() && allows(origin)) {
      response.headers.emplace_back("Access-Control-Allow-Origin", std::string(origin));
      response.headers.emplace_back("Access-Control-Expose-Headers", "*");
    }
  }
  if (request.id.empty()) return;
  response.headers.emplace_back("X-Request-Id", request.id);
  // Anthropic's clients know it by another name.
  if (!request.header("anthropic-version").empty()) response.headers.emplace_back("Request-Id", request.id);
}

}  // namespace sdx::serve
