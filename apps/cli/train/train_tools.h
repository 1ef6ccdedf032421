#pragma once
// Training, loaded when one of its commands runs.

#include "train/tools.h"

namespace sdx::cli {

// Throws Error(io) where libsdx_train.so is missing or of another build.
const train::Tools& train_tools();

}  // namespace sdx::cli
