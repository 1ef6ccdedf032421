#pragma once

#include "train/loop/request.h"

namespace sdx::train::loop {

// `sdx train`. Returns the exit code: 0, or 130 (Ctrl-C) or 143 (SIGTERM) after an interrupt. Throws Error.
int run(const Request& request, const Console& console);

}  // namespace sdx::train::loop
