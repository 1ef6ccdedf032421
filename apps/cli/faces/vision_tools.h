#pragma once
// What works for `sdx faces`, in a library of its own: whoever runs other commands does not load it.

#include "vision/batch/tools.h"

namespace sdx::cli {

// Loads libsdx_vision.so at the first call. Throws Error(io) where that cannot be done.
const vision::Tools& vision_tools();

}  // namespace sdx::cli
