#pragma once
// Training: artifacts, checkpoints, modules, optimisers, trainers, epochs. docs/training.md. In libsdx_train.so.

#include <sdx/train/artifacts.hpp>   // IWYU pragma: export
#include <sdx/train/checkpoint.hpp>  // IWYU pragma: export
#include <sdx/train/fit.hpp>         // IWYU pragma: export
#include <sdx/train/optimizer.hpp>   // IWYU pragma: export
#include <sdx/train/trainer.hpp>     // IWYU pragma: export
