#pragma once
// The code of `sdx faces`, in a separate library that other commands do not load.

#include "vision/batch/tools.h"

namespace sdx::cli {

// Loads libsdx_vision.so at the first call. Throws Error(io) where that cannot be done.
const vision::Tools& vision_tools();

}  // namespace sdx::cli
