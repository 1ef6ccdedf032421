#include "serve/anthropic/error.h"

#include "base/text/json_text.h"

namespace sdx::serve::anthropic {
namespace {

std::string_view type_of(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 413: return "request_too_large";
    case 429: return "rate_limit_error";
    case 504: return "timeout_error";
    case 529: return "overloaded_error";
    default: return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

}  // namespace

int status_of(int status) { return status == 503 ? 529 : status; }

std::string error_json(int status, std::string_view message) {
  std::string out = R"({"type":"error","error":{"type":")";
  out += type_of(status_of(status));
  out += R"(","message":)";
  append_json_string(out, message);
  return out + "}}";
}

Response error_shape(int status, std::string_view message) {
  return json_response(error_json(status, message), status_of(status));
}

Response error_response(const openai::ApiError& error) {
  return openai::with_retry(error_shape(error.status, error.message), error);
}

const openai::ReplyForm& reply_form() {
  static const openai::ReplyForm form{
      "text/event-stream; charset=utf-8", "event: ping\ndata: {\"type\":\"ping\"}\n\n",
      [](const openai::ApiError& error) { return "event: error\ndata: " + error_json(error.status, error.message) + "\n\n"; },
      error_response};
  return form;
}

}  // namespace sdx::serve::anthropic
