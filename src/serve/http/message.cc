#include "serve/http/message.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text/ascii.h"
#include "base/text/json_text.h"

namespace sdx::serve {
namespace {

std::string_view type_of(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    case 503: return "unavailable_error";
    default: return status < 500 ? "invalid_request_error" : "server_error";
  }
}

}  // namespace

std::string_view header(const Headers& headers, std::string_view name) {
  const auto at = std::find_if(headers.begin(), headers.end(), [&](const auto& h) { return same_word(h.first, name); });
  return at == headers.end() ? std::string_view() : std::string_view(at->second);
}

std::string_view Request::parameter(std::string_view name) const {
  const auto at = std::find_if(query.begin(), query.end(), [&](const auto& p) { return p.first == name; });
  return at == query.end() ? std::string_view() : std::string_view(at->second);
}

std::string_view Request::part(std::string_view name) const {
  const auto at = std::find_if(parts.begin(), parts.end(), [&](const auto& p) { return p.first == name; });
  return at == parts.end() ? std::string_view() : std::string_view(at->second);
}

Notes& Notes::set_model(std::string_view model) {
  const std::lock_guard lock(mutex_);
  values_.model = model;
  return *this;
}

Notes& Notes::set_ignored(std::string_view names) {
  const std::lock_guard lock(mutex_);
  values_.ignored = names;
  return *this;
}

void Notes::set_prompt(std::string_view prompt) {
  const std::lock_guard lock(mutex_);
  values_.prompt = prompt;
}

void Notes::set_tokens(std::int64_t prompt, std::int64_t answer) {
  const std::lock_guard lock(mutex_);
  values_.prompt_tokens = prompt;
  values_.answer_tokens = answer;
}

void Notes::add_stage(const char* name, Clock::time_point begin, Clock::time_point end) {
  constexpr std::size_t most = 32;  // of a request with many parts
  if (!wants_stages_) return;
  const std::lock_guard lock(mutex_);
  if (values_.stages.size() < most) values_.stages.push_back({name, begin, end});
}

void Notes::add_generation(Clock::time_point submitted, double first_token_ms) {
  const auto first =
      submitted + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(first_token_ms));
  add_stage("prompt", submitted, first);
  add_stage("decode", first, Clock::now());
}

std::string Notes::ignored() const {
  const std::lock_guard lock(mutex_);
  return values_.ignored;
}

Notes::Values Notes::values() const {
  const std::lock_guard lock(mutex_);
  return values_;
}

std::string_view reason(int status) {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 421: return "Misdirected Request";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 499: return "Client Closed Request";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    case 529: return "Overloaded";
    default: return "Status";
  }
}

Response json_response(std::string json, int status) {
  Response response;
  response.status = status;
  response.headers = {{"Content-Type", "application/json"}};
  response.body = std::move(json);
  return response;
}

Response error_response(int status, std::string_view message) {
  const nlohmann::json document{{"error", {{"code", status}, {"message", message}}}};
  // Messages may quote what the client sent, which need not be UTF-8.
  return json_response(dump_json(document), status);
}

Response api_error(int status, std::string_view message, std::string_view type, std::string_view code, std::string_view param) {
  const auto or_null = [](std::string_view text) { return text.empty() ? nlohmann::json() : nlohmann::json(text); };
  const nlohmann::json document{{"error",
                                 {{"message", message},
                                  {"type", type.empty() ? type_of(status) : type},
                                  {"param", or_null(param)},
                                  {"code", or_null(code)}}}};
  return json_response(dump_json(document), status);
}

Response api_error_shape(int status, std::string_view message) { return api_error(status, message); }

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::invalid_model: return 400;
    case ErrorCode::not_implemented: return 501;
    case ErrorCode::provider_unavailable: return 503;
    case ErrorCode::out_of_memory: return 413;
    case ErrorCode::cancelled: return 499;
    case ErrorCode::deadline_exceeded: return 504;
    default: return 500;
  }
}

}  // namespace sdx::serve
