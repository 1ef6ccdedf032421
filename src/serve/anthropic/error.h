#pragma once
// Errors as Anthropic's interface has them: {"type": "error", "error": {"type", "message"}} with an HTTP status.

#include <string>
#include <string_view>

#include "serve/http/message.h"
#include "serve/openai/error.h"
#include "serve/openai/reply.h"

namespace sdx::serve::anthropic {

// Statuses as Anthropic uses them: an overloaded server is 529.
int status_of(int status);
std::string error_json(int status, std::string_view message);
// An ErrorShape.
Response error_shape(int status, std::string_view message);
Response error_response(const openai::ApiError& error);
const openai::ReplyForm& reply_form();

}  // namespace sdx::serve::anthropic
