#pragma once
// `sdx faces bench`: measures each stage, runtime by runtime.

#include "vision/batch/request.h"

namespace sdx::vision::batch {

// Throws Error(invalid_argument).
void check_bench(const Request& request);
// Returns the exit code. Nothing is written but the results.
int bench(const Request& request, const Console& console);

}  // namespace sdx::vision::batch
