#include "serve/openai/answer_head.h"

#include <fmt/format.h>

#include "base/text/json_text.h"

namespace sdx::serve::openai {

void Usage::add(const Generation& generation) {
  prompt += generation.prompt_tokens;
  completion += generation.completion_tokens;
  cached += generation.cached_tokens;
}

std::string answer_prefix(const AnswerHead& head, std::string_view object) {
  std::string out = fmt::format(R"({{"id":"{}","object":"{}","created":{},"model":)", head.id, object, head.created);
  append_json_string(out, head.model);
  return out + fmt::format(R"(,"system_fingerprint":"{}")", head.fingerprint);
}

std::string usage_json(const Usage& u) {
  return fmt::format(
      R"({{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}},)"
      R"("completion_tokens_details":{{"reasoning_tokens":{}}}}})",
      u.prompt, u.completion, u.prompt + u.completion, u.cached, u.reasoning);
}

std::string_view finish_reason(const Choice& choice, bool calls) {
  if (choice.finish_reason == "length") return "length";
  return calls ? "tool_calls" : "stop";
}

}  // namespace sdx::serve::openai
