#pragma once
// Carries out a request of `sdx faces detect|crop|align|blur`.

#include "vision/batch/request.h"

namespace sdx::vision::batch {

// Returns the exit code: 0, 1 where a picture failed, 130 (Ctrl-C) or 143 (SIGTERM) after an interrupt. Throws Error where
// nothing can be done at all.
int run(const Request& request, const Console& console);

}  // namespace sdx::vision::batch
