#pragma once
// Errors as OpenAI's interface has them: {"error": {"message", "type", "param", "code"}} with an HTTP status.

#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include <sdx/error.hpp>

#include "serve/http/message.h"

namespace sdx::serve::openai {

struct ApiError : std::exception {
  ApiError() = default;
  ApiError(int with_status, std::string text, std::string with_type = "invalid_request_error")
      : status(with_status), message(std::move(text)), type(std::move(with_type)) {}
  const char* what() const noexcept override { return message.c_str(); }

  int status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::optional<std::string> param, code;  // null where there are none
  int retry_after = 0;                     // seconds; 0: no Retry-After
};

// A request that cannot be answered as it is: 400. "" stands for null.
[[noreturn]] void refuse(std::string message, std::string_view param = {}, std::string_view code = {});

// The answer to an error of the engine: mistakes of the caller are 400, a full queue 503, a deadline 504, all others 500.
ApiError api_error(const Error& error);
// The answer to the exception in a catch block; exceptions that are not our errors become 500 without details.
ApiError current_api_error();

// `response` with the header Retry-After, where the error says when to try again.
Response with_retry(Response response, const ApiError& error);
std::string error_json(const ApiError& error);
Response error_response(const ApiError& error);

}  // namespace sdx::serve::openai
