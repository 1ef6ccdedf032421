#pragma once
// Shared by the paths. For the sources of Api only.

#include <string>

#include "serve/openai/api.h"
#include "serve/openai/chat/run.h"
#include "serve/openai/prompt_logprobs.h"

namespace sdx::serve::openai {

struct Api::Impl : Shared {
  Impl(Catalog& catalog, Metrics& all, const ApiOptions& given) : Shared(catalog, all, given.heartbeat, given.body_bytes) {}

  // Answer later, or at once with an error.
  void chat(const RequestPtr& request, const ResponderPtr& responder);
  void completions(const RequestPtr& request, const ResponderPtr& responder);
  void transcribe(const RequestPtr& request, const ResponderPtr& responder, bool translate);
  // Answer at once.
  Response embeddings(const Request& request);
  Response rerank(const Request& request);
  Response list_models(const Request& request);
  Response model(const Request& request);

  Line prompt_logprobs;
  const std::int64_t started =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
};

}  // namespace sdx::serve::openai
