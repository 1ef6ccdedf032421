#include "serve/openai/error.h"

#include <new>

#include "base/text/json_text.h"

namespace sdx::serve::openai {
namespace {

void append_optional(std::string& out, const std::optional<std::string>& text) {
  if (text) {
    append_json_string(out, *text);
  } else {
    out += "null";
  }
}

}  // namespace

void refuse(std::string message, std::string_view param, std::string_view code) {
  ApiError error(400, std::move(message));
  if (!param.empty()) error.param = param;
  if (!code.empty()) error.code = code;
  throw error;
}

ApiError api_error(const Error& error) {
  switch (error.code()) {
    case ErrorCode::invalid_argument:
    case ErrorCode::not_implemented: return {400, error.message()};
    case ErrorCode::out_of_memory: {
      ApiError full(503, "The server is overloaded: " + error.message(), "server_error");
      full.code = "overloaded";
      full.retry_after = 1;
      return full;
    }
    case ErrorCode::deadline_exceeded: {
      ApiError late(504, error.message(), "server_error");
      late.code = "timeout";
      return late;
    }
    case ErrorCode::cancelled: return {503, "The server is shutting down.", "server_error"};
    default: return {500, error.message(), "server_error"};
  }
}

ApiError current_api_error() {
  try {
    throw;
  } catch (const ApiError& error) {
    return error;
  } catch (const Error& error) {
    return api_error(error);
  } catch (const std::bad_alloc&) {
    return api_error(Error(ErrorCode::out_of_memory, "out of memory"));
  } catch (...) {
    return {500, "The server had an error while processing your request.", "server_error"};
  }
}

std::string error_json(const ApiError& error) {
  std::string out = "{\"error\":{\"message\":";
  append_json_string(out, error.message);
  out += ",\"type\":";
  append_json_string(out, error.type);
  out += ",\"param\":";
  append_optional(out, error.param);
  out += ",\"code\":";
  append_optional(out, error.code);
  return out + "}}";
}

Response with_retry(Response response, const ApiError& error) {
  if (error.retry_after > 0) response.headers.emplace_back("Retry-After", std::to_string(error.retry_after));
  return response;
}

Response error_response(const ApiError& error) { return with_retry(json_response(error_json(error), error.status), error); }

}  // namespace sdx::serve::openai
