#pragma once
// Requests, parsed, checked and translated to chats and embeddings. docs/serve/interfaces.md lists their fields.

#include <string>
#include <string_view>

#include "serve/openai/requests.h"

namespace sdx::serve::ollama {

enum class Kind { chat, generate };

struct TextRequest {
  openai::ChatRequest chat;
  std::string suffix;  // the text behind the answer; the prompt is then the one before it
  bool empty = false;  // nothing to answer: the client only wants the model to be loaded
};

struct VectorRequest {
  openai::EmbeddingRequest texts;
  bool one = false;  // the answer is one vector: /api/embeddings
};

// All throw openai::ApiError.
TextRequest read_chat(const openai::Json& body);
// Without a system prompt or `raw`, the chat has one message; a model without a template continues the prompt.
TextRequest read_generate(const openai::Json& body);
VectorRequest read_embed(const openai::Json& body);
VectorRequest read_embeddings(const openai::Json& body);
// Of a request that names a model and nothing else of weight: `model`, or its older name `name`.
std::string read_model_name(const openai::Json& body, openai::Ignored& ignored);
// Whether such a request wants its answer as a stream, as is usual.
bool read_stream(const openai::Json& body);

}  // namespace sdx::serve::ollama
