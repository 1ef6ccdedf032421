#pragma once
// Anthropic's interface: /v1/messages and /v1/messages/count_tokens. docs/serve/interfaces.md.

#include "serve/http/router.h"
#include "serve/openai/chat/run.h"

namespace sdx::serve::anthropic {

// `shared` must outlive the server that calls the routes.
void add_routes(Router& router, openai::Shared& shared);

}  // namespace sdx::serve::anthropic
