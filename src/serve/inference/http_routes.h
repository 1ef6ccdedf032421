#pragma once
// The Open Inference Protocol (KServe v2) over HTTP with Triton's extensions, and the routes of projects:
// docs/serve/inference.md.

#include <cstdint>

#include "serve/http/router.h"
#include "serve/models/catalog.h"
#include "serve/monitor/metrics.h"

namespace sdx::serve {

struct InferenceOptions {
  std::uint64_t body_bytes = std::uint64_t{256} << 20;  // of a request with tensors
  bool control = true;                                  // models may be loaded and unloaded by requests
};

// All /v2/…, and POST /predict, GET /info. Everything given must outlive the server.
void add_inference_routes(Router& router, Catalog& catalog, const InferenceOptions& options = {});

// nv_inference_*, from the models' statistics.
void add_inference_metrics(Metrics& metrics, const Catalog& catalog);

// The error in the protocol's form: `{"error": "…"}`.
Response protocol_error(int status, std::string_view message);

}  // namespace sdx::serve
