#pragma once
// A chat from its request to the end of its answer, in whichever form its client reads. The interfaces to language models share
// this: each reads requests and writes answers in its own form, and nothing else.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sdx/generation_engine.hpp>

#include "serve/openai/chat/writer.h"
#include "serve/openai/generation.h"
#include "serve/openai/heartbeats.h"
#include "serve/openai/model_access.h"
#include "serve/openai/reply.h"
#include "serve/openai/requests.h"

namespace sdx::serve::openai {

// What the interfaces to language models share. Thread-safe. Catalogue and metrics must outlive it; it must outlive the server.
struct Shared {
  Shared(Catalog& catalog, Metrics& all, std::chrono::milliseconds silence, std::uint64_t most_body_bytes)
      : models(catalog), metrics(all), heartbeats(silence), body_bytes(most_body_bytes) {}

  ModelAccess models;
  Metrics& metrics;
  Heartbeats heartbeats;
  const std::uint64_t body_bytes;  // of a request
};

// A chat's prompt: a text as its template renders it, or as the request gives it.
struct ChatPrompt {
  std::string text;
  TokenList tokens;
};

// Throws ApiError for a model without a template and for messages that its template refuses. `path`: the interface's, for
// messages.
ChatPrompt make_prompt(const ChatRequest& chat, const Found& found, PromptKind kind, std::string_view path);

struct PreparedChat {
  Found found;
  GenerationRequest job;  // without its callbacks
  AnswerFormat format;
  std::string prompt;
  std::int64_t prompt_tokens = 0;
  bool shortened = false;  // the context ends the answer before the requested number of tokens
};

// Finds the model, makes the prompt and the engine's settings; notes model, prompt and ignored fields. Throws ApiError.
PreparedChat prepare_chat(Shared& shared, const Request& request, const ChatRequest& chat, PromptKind kind,
                          std::string_view path);

// The number of tokens of a chat's prompt, for interfaces that count without answering; notes model and ignored fields. Throws
// ApiError.
std::size_t count_prompt(Shared& shared, const Request& request, const ChatRequest& chat, PromptKind kind, std::string_view path);

// Answers, now or later.
void answer_chat(Shared& shared, const RequestPtr& request, const ResponderPtr& responder, PreparedChat prepared,
                 std::unique_ptr<ChatWriter> writer, bool stream, const ReplyForm& form = openai_form());

}  // namespace sdx::serve::openai
