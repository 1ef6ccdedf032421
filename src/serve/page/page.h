#pragma once
// The page at "/", for people: talk with language models, try any other, see which there are and how the server does. It asks the
// server's own interfaces for everything and nobody else for anything.

#include "serve/http/router.h"

namespace sdx::serve {

void add_page(Router& router);

}  // namespace sdx::serve
