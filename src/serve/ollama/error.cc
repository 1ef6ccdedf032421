#include "serve/ollama/error.h"

#include "base/text/json_text.h"

namespace sdx::serve::ollama {

std::string error_json(std::string_view message) { return "{\"error\":" + json_string(message) + "}"; }

Response error_shape(int status, std::string_view message) { return json_response(error_json(message), status); }

Response error_response(const openai::ApiError& error) {
  return openai::with_retry(error_shape(error.status, error.message), error);
}

const openai::ReplyForm& reply_form() {
  // Clients take every line for an answer, so there is none that means nothing.
  static const openai::ReplyForm form{
      "application/x-ndjson", "", [](const openai::ApiError& error) { return error_json(error.message) + "\n"; }, error_response};
  return form;
}

}  // namespace sdx::serve::ollama
