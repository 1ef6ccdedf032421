#pragma once
// Turns a request into a trainer with its data.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sdx/train/fit.hpp>

#include "train/loop/data/open.h"
#include "train/loop/request.h"
#include "train/loop/task.h"

namespace sdx::train::loop {

struct Prepared {
  ArtifactPaths paths;
  std::unique_ptr<CheckpointState> state;
  Task task;
  OpenedData data;
  FitOptions fit;
  TrainerOptions trainer_options;
  std::unique_ptr<Trainer> trainer;  // over `state`
  std::int64_t batches_done = 0;     // by an earlier process
  std::vector<std::string> outputs;  // of the exported model
  std::vector<std::string> notes;
};

// Throws Error before anything is changed. `features`: how many samples' features have been computed; may be empty.
Prepared prepare(const Request& request, const std::function<void(std::int64_t done, std::int64_t total)>& features = {});

}  // namespace sdx::train::loop
