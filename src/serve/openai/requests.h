#pragma once
// Requests, parsed and checked. docs/serve/openai.md lists their fields.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <sdx/text.hpp>

#include "serve/openai/fields.h"

namespace sdx::serve::openai {

// Sampling settings; nothing: those that the model's files recommend.
struct SamplingFields {
  std::optional<double> temperature, top_p, min_p, typical_p, repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<std::int64_t> top_k, seed;
  std::vector<std::pair<TokenId, float>> logit_bias;

  SamplingSettings over(SamplingSettings defaults) const;
};

// The constraint of an answer.
struct FormatField {
  OutputFormat format = OutputFormat::json_object;
  std::string text, param;  // param: the field that asked for it
  bool strict = false;      // refused rather than held in part
};

// Fields that chats and completions share.
struct GenerationFields {
  std::string model;
  SamplingFields sampling;
  std::optional<std::int64_t> max_tokens;  // nothing: as many as fit
  bool unlimited = false;                  // that was asked for: -1
  std::int64_t min_tokens = 0;
  int n = 1;
  std::vector<std::string> stop;
  std::vector<TokenId> stop_tokens;
  bool ignore_end = false;
  std::optional<FormatField> format;
  bool stream = false, include_usage = false;
  Ignored ignored;
};

enum class ToolUse { none, automatic, required };

using TokenList = std::vector<TokenId>;
using PromptText = std::variant<std::string, TokenList>;

struct ChatRequest {
  GenerationFields generation;
  Json messages = Json::array();  // as templates want them: contents are texts, arguments of calls objects
  std::string tools;              // JSON text of the list; "": none
  ToolUse tool_use = ToolUse::none;
  std::vector<std::string> strict_tools;  // whose arguments must be held to their schemas as a whole
  std::string tool_name;                  // that must be called; "": any
  bool parallel_calls = true;
  bool add_generation_prompt = true;
  int logprobs = -1;                // of this many likeliest tokens; -1: none
  Json variables = Json::object();  // for the template
  std::string continued;            // the answer's beginning, which the request gives
  std::optional<PromptText> raw;    // the prompt itself, instead of messages
};

struct CompletionRequest {
  GenerationFields generation;
  std::vector<PromptText> prompts;
  std::string suffix;  // the text behind the answer
  bool echo = false;
  int logprobs = -1;
  int best_of = 1;  // answers of which the n best are returned
};

struct EmbeddingRequest {
  std::string model;
  std::vector<PromptText> input;
  bool base64 = false;
  bool cut = false;  // texts that are too long; else they are refused
  std::optional<std::int64_t> dimensions;
  Ignored ignored;
};

struct RerankRequest {
  std::string model, query;
  std::vector<std::string> documents;
  std::optional<std::int64_t> top_n;
  bool return_documents = true;
  Ignored ignored;
};

// All throw ApiError.
ChatRequest read_chat_request(const Json& body);
CompletionRequest read_completion_request(const Json& body);
EmbeddingRequest read_embedding_request(const Json& body);
RerankRequest read_rerank_request(const Json& body);

// Parts of them.
GenerationFields read_generation_fields(Fields& fields, bool chat);
Json read_messages(const Fields& fields, const Json& messages);
void read_tools(Fields& fields, ChatRequest& to);
// A text, a list of texts, a list of tokens or a list of lists of tokens.
std::vector<PromptText> read_texts(const Json& value, const std::string& param, std::size_t most);

}  // namespace sdx::serve::openai
