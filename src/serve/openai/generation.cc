#include "serve/openai/generation.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/utf8.h"
#include "serve/http/access.h"

namespace sdx::serve::openai {
namespace {

constexpr std::int64_t kUnknownContext = 4096;  // of models whose files do not say: where an answer ends at the latest

const std::vector<double> kLatencies = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80};

std::string_view param_of(PromptKind kind) {
  return kind == PromptKind::chat || kind == PromptKind::message ? "messages"
         : kind == PromptKind::completion                        ? "prompt"
                                                                 : "input";
}

constexpr std::size_t kPiece = 128 * 1024;  // bytes of a text whose tokens are counted at a time
constexpr std::int64_t kSeam = 16;          // tokens that a piece may have because it was cut out

}  // namespace

void too_long(PromptKind kind, std::int64_t context, std::int64_t prompt, std::int64_t asked, bool more) {
  const std::string most = fmt::format("This model's maximum context length is {} tokens", context);
  const std::string number = fmt::format("{}{}", more ? "more than " : "", prompt);
  std::string message;
  if (kind == PromptKind::message) {
    message = fmt::format("prompt is too long: {} tokens > {} maximum", number, context);  // clients look for these words
  } else if (kind == PromptKind::chat && (asked == 0 || more)) {
    message =
        fmt::format("{}. However, your messages resulted in {} tokens. Please reduce the length of the messages.", most, number);
  } else if (kind == PromptKind::chat) {
    message = fmt::format(
        "{}. However, you requested {} tokens ({} in the messages, {} in the completion). Please reduce the length of the "
        "messages or completion.",
        most, prompt + asked, prompt, asked);
  } else {
    message = fmt::format(
        "{}, however you requested {} tokens ({} in your prompt; {} for the completion). Please reduce your prompt; or "
        "completion length.",
        most, more ? number : std::to_string(prompt + asked), number, asked);
  }
  refuse(message, param_of(kind), "context_length_exceeded");
}

void check_length(const Tokenizer& tokenizer, const std::string& text, PromptKind kind, std::int64_t context) {
  if (context <= 0 || text.size() <= kPiece) return;
  std::int64_t count = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = end_of_chars(text, begin + kPiece);
    const auto tokens = static_cast<std::int64_t>(tokenizer.encode(text.substr(begin, end - begin), false).size());
    count += std::max<std::int64_t>(0, tokens - kSeam);
    if (count > context) too_long(kind, context, count, 0, end < text.size());
    begin = end;
  }
}

TokenList tokens_of(const LanguageModel& model, const std::string& text, bool special_tokens, PromptKind kind,
                    std::span<const std::size_t> plain) {
  check_length(model.tokenizer(), text, kind, model.info().context);
  TokenList out = model.tokenizer().encode(text, plain, special_tokens).ids;
  if (out.empty()) {
    refuse(fmt::format("Invalid '{}': there are no tokens to continue from.", param_of(kind)), param_of(kind), "invalid_value");
  }
  return out;
}

std::int64_t answer_room(const GenerationFields& fields, PromptKind kind, const LanguageModelInfo& info, std::int64_t prompt) {
  if (info.context <= 0) return fields.max_tokens.value_or(kUnknownContext);
  const std::int64_t asked = fields.max_tokens.value_or(0);
  if (prompt >= info.context) too_long(kind, info.context, prompt, kind == PromptKind::completion ? asked : 0);
  // Clients have defaults for models with more room (32000): the answer ends where the context does.
  const std::int64_t room = info.context - prompt;
  return std::min(fields.max_tokens.value_or(room), room);
}

// Conditions that say which values are meant, rather than a bound on them. A pattern that stands for a format's words is no loss.
bool is_essential(const std::string& place, const Json& schema) {
  const std::size_t slash = place.rfind('/');
  if (!place.starts_with("#/") || slash == std::string::npos) return false;
  const std::string_view key = std::string_view(place).substr(slash + 1);
  for (const std::string_view known :
       {"not", "if", "contains", "maxContains", "dependentRequired", "dependentSchemas", "dependencies"}) {
    if (key == known) return true;
  }
  if (key != "pattern") return false;
  try {
    const Json& holder = schema.at(Json::json_pointer(place.substr(1, slash - 1)));
    return !holder.contains("format");
  } catch (const Json::exception&) {
    return false;
  }
}

void refuse_in_part(const std::vector<std::string>& unenforced, const Json& schema, const std::string& param) {
  for (const std::string& place : unenforced) {
    if (!is_essential(place, schema)) continue;
    refuse(fmt::format("Invalid schema for '{}': the condition at {} cannot be enforced, and 'strict' is true. Remove the "
                       "condition, or set 'strict' to false to have it left out.",
                       param, place),
           param, "invalid_value");
  }
}

GenerationSettings generation_settings(const GenerationFields& fields, const LanguageModel& model, std::int64_t max_tokens) {
  GenerationSettings s;
  s.max_tokens = max_tokens;
  s.min_tokens = std::min(fields.min_tokens, max_tokens);
  s.sampling = fields.sampling.over(model.info().defaults);
  s.stop = fields.stop;
  s.stop_tokens = fields.stop_tokens;
  s.ignore_end = fields.ignore_end;
  return s;
}

void hold_to_format(GenerationSettings& settings, const GenerationFields& fields, const LanguageModel& model, Ignored& ignored) {
  if (!fields.format) return;
  try {
    std::vector<std::string> unenforced;
    settings.mask = model.constrain(fields.format->format, fields.format->text, &unenforced);
    if (fields.format->strict && !unenforced.empty()) {
      refuse_in_part(unenforced, Json::parse(fields.format->text), fields.format->param);
    }
    for (const std::string& place : unenforced) ignored.add_exact(fields.format->param + place);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument && error.code() != ErrorCode::not_implemented) throw;
    refuse(fmt::format("Invalid '{}': {}", fields.format->param, error.message()), fields.format->param, "invalid_value");
  }
}

std::vector<TokenId> end_tokens(const GenerationSettings& settings, const LanguageModelInfo& info) {
  std::vector<TokenId> out = settings.stop_tokens;
  if (!settings.ignore_end) out.insert(out.end(), info.eos.begin(), info.eos.end());
  return out;
}

AnswerHead new_head(std::string_view prefix, const std::string& model, const std::string& fingerprint) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {std::string(prefix) + random_token(), std::chrono::duration_cast<std::chrono::seconds>(now).count(), model,
          fingerprint};
}

Measured::Measured(Metrics& metrics, const std::string& model, Clock::time_point arrived)
    : metrics_(metrics),
      labels_{{"model", model}},
      first_token_(metrics.histogram("sdx_time_to_first_token_seconds",
                                     "From a request's arrival to the first token of its answer.", kLatencies, labels_)),
      between_(metrics.histogram("sdx_inter_token_latency_seconds", "Between two tokens of a request.", kLatencies, labels_)),
      arrived_(arrived) {}

void Measured::token() {
  const Clock::time_point now = Clock::now();
  const auto seconds = std::chrono::duration<double>(now - last_.value_or(arrived_)).count();
  (last_ ? between_ : first_token_).observe(seconds);
  last_ = now;
}

void Measured::end(const Usage& usage, std::string_view reason) {
  metrics_.counter("sdx_prompt_tokens_total", "Tokens of prompts.", labels_).add(static_cast<double>(usage.prompt));
  metrics_.counter("sdx_prompt_tokens_cached_total", "Tokens of prompts that were not computed again.", labels_)
      .add(static_cast<double>(usage.cached));
  metrics_.counter("sdx_generation_tokens_total", "Tokens of answers.", labels_).add(static_cast<double>(usage.completion));
  metrics_.histogram("sdx_e2e_request_latency_seconds", "From a request's arrival to the end of its answer.", kLatencies, labels_)
      .observe(std::chrono::duration<double>(Clock::now() - arrived_).count());
  Labels ended = labels_;
  ended.emplace_back("finished_reason", reason);
  metrics_.counter("sdx_request_success_total", "Requests whose answers were complete.", ended).add();
}

}  // namespace sdx::serve::openai
