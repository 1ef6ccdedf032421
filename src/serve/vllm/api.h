#pragma once
// vLLM's /score and /classify. docs/serve/interfaces.md.

#include "serve/http/router.h"
#include "serve/openai/chat/run.h"

namespace sdx::serve::vllm {

// `shared` must outlive the server that calls the routes.
void add_routes(Router& router, openai::Shared& shared);

}  // namespace sdx::serve::vllm
