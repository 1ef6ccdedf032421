#pragma once
// llama.cpp's own interface: /completion, /tokenize, /detokenize, /apply-template, /embedding, /props, /slots.
// docs/serve/interfaces.md.

#include "serve/http/router.h"
#include "serve/openai/chat/run.h"

namespace sdx::serve::llama {

// `shared` must outlive the server that calls the routes.
void add_routes(Router& router, openai::Shared& shared);

}  // namespace sdx::serve::llama
