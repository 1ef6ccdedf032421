#pragma once
// Errors as Ollama's interface has them: {"error": "…"} with an HTTP status.

#include <string>
#include <string_view>

#include "serve/http/message.h"
#include "serve/openai/error.h"
#include "serve/openai/reply.h"

namespace sdx::serve::ollama {

std::string error_json(std::string_view message);
// An ErrorShape.
Response error_shape(int status, std::string_view message);
Response error_response(const openai::ApiError& error);
// Streams are lines of JSON.
const openai::ReplyForm& reply_form();

}  // namespace sdx::serve::ollama
