#pragma once
// Training over epochs, loaded when `sdx train` runs.

#include "train/loop/tools.h"

namespace sdx::cli {

// Throws Error(io) where libsdx_train.so is missing or of another build.
const train::loop::Tools& train_loop_tools();

}  // namespace sdx::cli
