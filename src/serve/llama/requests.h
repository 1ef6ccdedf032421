#pragma once
// Requests, parsed, checked and translated. docs/serve/interfaces.md lists their fields.

#include <string>

#include "serve/openai/fill.h"
#include "serve/openai/requests.h"

namespace sdx::serve::llama {

struct CompletionRequest {
  openai::ChatRequest chat;  // with a raw prompt; "" as the model: the server's only one
  bool return_tokens = false;
};

// A prompt may join texts and tokens, which only the model's tokenizer can do.
using PromptPart = openai::PromptText;

struct TokenizeRequest {
  std::string model, content;
  bool add_special = false, with_pieces = false;
  openai::Ignored ignored;
};

struct DetokenizeRequest {
  std::string model;
  openai::TokenList tokens;
  openai::Ignored ignored;
};

// All throw openai::ApiError.
CompletionRequest read_completion(const openai::Json& body, std::vector<PromptPart>& prompt);
// /infill: the same with the texts around the answer, instead of a prompt.
CompletionRequest read_infill(const openai::Json& body, openai::FillRequest& fill);
TokenizeRequest read_tokenize(const openai::Json& body);
DetokenizeRequest read_detokenize(const openai::Json& body);
// /embedding; "" as the model: the server's only one.
openai::EmbeddingRequest read_embedding(const openai::Json& body);

}  // namespace sdx::serve::llama
