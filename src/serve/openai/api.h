#pragma once
// OpenAI's interface: /v1/models, /v1/chat/completions, /v1/completions, /v1/embeddings, /v1/rerank. docs/serve/openai.md.

#include <chrono>
#include <memory>

#include "serve/http/router.h"
#include "serve/models/catalog.h"
#include "serve/monitor/metrics.h"

namespace sdx::serve::openai {

struct Shared;  // chat/run.h

struct ApiOptions {
  std::chrono::milliseconds heartbeat{30000};  // silence of a stream after which it gets a comment
  std::uint64_t body_bytes = 16 << 20;         // of a request
};

// Thread-safe. Catalogue and metrics must outlive it; it must outlive the server that calls its routes.
class Api {
 public:
  Api(Catalog& catalog, Metrics& metrics, const ApiOptions& options = {});
  ~Api();
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  void add_routes(Router& router);
  // For further interfaces to the same models.
  Shared& shared();

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace sdx::serve::openai
