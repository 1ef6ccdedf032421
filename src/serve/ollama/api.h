#pragma once
// Ollama's interface: /api/chat, /api/generate, /api/embed, /api/tags and others. docs/serve/interfaces.md.

#include "serve/http/router.h"
#include "serve/openai/chat/run.h"

namespace sdx::serve::ollama {

class Pulls;

// `shared` and `pulls` must outlive the server that calls the routes.
void add_routes(Router& router, openai::Shared& shared, Pulls& pulls);

}  // namespace sdx::serve::ollama
