#pragma once
// OpenAI's /v1/responses. docs/serve/interfaces.md.

#include <memory>

#include "serve/http/router.h"
#include "serve/openai/chat/run.h"
#include "serve/responses/store.h"

namespace sdx::serve::responses {

// `shared` and `store` must outlive the server that calls the routes.
void add_routes(Router& router, openai::Shared& shared, Store& store);

}  // namespace sdx::serve::responses
