#pragma once
// Converts a request to settings of an engine, and its results to usage figures.

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serve/models/catalog.h"
#include "serve/monitor/metrics.h"
#include "serve/openai/answer_head.h"
#include "serve/openai/requests.h"

namespace sdx::serve::openai {

// Names of fields and words for messages about a prompt that is too long.
enum class PromptKind { chat, completion, embedding, message };
// Throws ApiError (400, context_length_exceeded). `asked`: requested tokens of the answer; 0: none. `more`: the prompt has more
// tokens than were counted.
[[noreturn]] void too_long(PromptKind kind, std::int64_t context, std::int64_t prompt, std::int64_t asked, bool more = false);
// Throws as too_long() does for a text that is so much too long that its beginning shows it: all the tokens of megabytes would
// take a hundred times their memory.
void check_length(const Tokenizer& tokenizer, const std::string& text, PromptKind kind, std::int64_t context);
// The tokens of a text, as LanguageModel::generate() makes them; check_length() comes first. `plain`: as of PlainPrompt.
TokenList tokens_of(const LanguageModel& model, const std::string& text, bool special_tokens, PromptKind kind,
                    std::span<const std::size_t> plain = {});

// The most tokens of the answer: the requested number, or fewer if the context ends before. Throws as too_long() does for a
// prompt that leaves no room.
std::int64_t answer_room(const GenerationFields& fields, PromptKind kind, const LanguageModelInfo& info, std::int64_t prompt);

// All but detokenize, logprobs, n and the mask.
GenerationSettings generation_settings(const GenerationFields& fields, const LanguageModel& model, std::int64_t max_tokens);
// Holds the whole answer to fields.format. Adds to `ignored` what a schema demands in vain.
void hold_to_format(GenerationSettings& settings, const GenerationFields& fields, const LanguageModel& model, Ignored& ignored);

// Throws ApiError for a condition of the schema that says which values are meant, and that answers are not held to. Bounds, as
// uniqueItems and multipleOf, are no such condition.
void refuse_in_part(const std::vector<std::string>& unenforced, const Json& schema, const std::string& param);

// Tokens that end an answer.
std::vector<TokenId> end_tokens(const GenerationSettings& settings, const LanguageModelInfo& info);

AnswerHead new_head(std::string_view prefix, const std::string& model, const std::string& fingerprint);

// Latencies and numbers of tokens of one request. `model`: the catalogue's name, never the client's spelling, since a label lives
// as long as the server. For one thread at a time.
class Measured {
 public:
  Measured(Metrics& metrics, const std::string& model, std::chrono::steady_clock::time_point arrived);
  void token();
  void end(const Usage& usage, std::string_view reason);

 private:
  using Clock = std::chrono::steady_clock;
  Metrics& metrics_;
  Labels labels_;
  Histogram& first_token_;
  Histogram& between_;
  Clock::time_point arrived_;
  std::optional<Clock::time_point> last_;
};

}  // namespace sdx::serve::openai
