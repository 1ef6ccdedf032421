#pragma once
// Fields that all parts of an answer have.

#include <cstdint>
#include <string>
#include <string_view>

#include <sdx/text.hpp>

namespace sdx::serve::openai {

struct AnswerHead {
  std::string id;            // "chatcmpl-…"
  std::int64_t created = 0;  // seconds since 1970
  std::string model, fingerprint;
};

struct Usage {
  std::int64_t prompt = 0, completion = 0, cached = 0, reasoning = 0;
  void add(const Generation& generation);
};

// {"id": …, "object": …, "created": …, "model": …, "system_fingerprint": … without the closing brace.
std::string answer_prefix(const AnswerHead& head, std::string_view object);
// {"prompt_tokens": …}
std::string usage_json(const Usage& usage);

// An event of a stream.
inline constexpr std::string_view kEventBegin = "data: ", kEventEnd = "\n\n", kStreamEnd = "data: [DONE]\n\n";

// The client's words for how an answer ended.
std::string_view finish_reason(const Choice& choice, bool calls);

}  // namespace sdx::serve::openai
