#pragma once
// Shared by the paths. For the sources of Api only.

#include <string>

#include "serve/openai/api.h"
#include "serve/openai/generation.h"
#include "serve/openai/heartbeats.h"
#include "serve/openai/model_access.h"
#include "serve/openai/prompt_logprobs.h"
#include "serve/openai/requests.h"

namespace sdx::serve::openai {

struct Api::Impl {
  Impl(Catalog& catalog, Metrics& all, const ApiOptions& given)
      : options(given), models(catalog), metrics(all), heartbeats(given.heartbeat) {}

  // Answer later, or at once with an error.
  void chat(const RequestPtr& request, const ResponderPtr& responder);
  void completions(const RequestPtr& request, const ResponderPtr& responder);
  // Answer at once.
  Response embeddings(const Request& request);
  Response rerank(const Request& request);
  Response list_models();
  Response model(const std::string& name);

  ApiOptions options;
  ModelAccess models;
  Metrics& metrics;
  Heartbeats heartbeats;
  Line prompt_logprobs;
  const std::int64_t started =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
};

}  // namespace sdx::serve::openai
