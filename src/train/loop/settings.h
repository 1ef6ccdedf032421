#pragma once
// A request's words as values.

#include <optional>

#include "train/loop/data/open.h"
#include "train/loop/request.h"

namespace sdx::train::loop {

struct Settings {
  DataSettings data;
  FitOptions fit;  // batch is 0 where nothing was typed
  TrainerOptions trainer;
  std::optional<OptimizerKind> kind;
  std::optional<float> weight_decay, clip;
};

// Throws Error(invalid_argument) that names the flag. Looks at no file but the project's.
Settings settings_of(const Request& request);

}  // namespace sdx::train::loop
