#pragma once

#include <sdx/train.h>

#include <memory>
#include <sdx/train/checkpoint.hpp>

#include "session/c/c_interface.h"

// Trainers share the state.
struct sdx_checkpoint {
  std::shared_ptr<sdx::train::CheckpointState> state;
};
