#include "serve/http/message.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

namespace sdx::serve {
namespace {

bool same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

std::string_view header(const Headers& headers, std::string_view name) {
  const auto at = std::find_if(headers.begin(), headers.end(), [&](const auto& h) { return same(h.first, name); });
  return at == headers.end() ? std::string_view() : std::string_view(at->second);
}

std::string_view Request::parameter(std::string_view name) const {
  const auto at = std::find_if(query.begin(), query.end(), [&](const auto& p) { return p.first == name; });
  return at == query.end() ? std::string_view() : std::string_view(at->second);
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
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
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
  return json_response(document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), status);
}

}  // namespace sdx::serve
