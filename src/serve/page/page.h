#pragma once
// The page at "/", for people: chat with language models, try out others, list them, and watch the server's metrics. It uses only
// the interfaces of this server, and nothing from elsewhere.

#include "serve/http/router.h"

namespace sdx::serve {

void add_page(Router& router);

}  // namespace sdx::serve
