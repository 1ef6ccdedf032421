#pragma once
// Settings of one model apart from its files: from config.pbtxt, from a request to load it, or the defaults.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sdx/dtype.hpp>
#include <sdx/session.hpp>

#include "serve/models/batcher.h"

namespace sdx::serve {

// One input or output as a configuration declares it.
struct DeclaredValue {
  std::string name;
  DataType dtype = DataType::undefined;
  std::vector<std::int64_t> dims;  // without the batch where the model has one; -1: any extent
  std::string label_file;          // of an output: names of classes, beside the configuration
  bool optional = false;
};

// A run that is made when a model is loaded, so that no request waits for the additional work of the first run.
struct WarmUp {
  struct Input {
    std::string name;
    DataType dtype = DataType::undefined;
    std::vector<std::int64_t> dims;
    bool random = false;  // else zeros
  };
  std::string name;
  std::int64_t batch = 0;  // 0: dims are whole
  int count = 1;
  std::vector<Input> inputs;
};

struct ModelSettings {
  std::optional<std::int64_t> max_batch_size;  // 0: the model has no batch axis
  std::vector<std::int64_t> preferred;
  std::optional<std::chrono::microseconds> max_queue_delay;
  std::optional<int> queue, instances;
  std::optional<std::chrono::microseconds> timeout;
  std::vector<DeclaredValue> inputs, outputs;
  std::vector<WarmUp> warm_up;
  std::string file;                    // of the model in a version's folder; "": told from the files
  std::string mask_input;              // of BatchOptions
  std::vector<std::string> providers;  // instead of the server's
  std::optional<int> threads;
  std::vector<std::pair<std::string, std::string>> parameters;
  std::string platform, backend;  // as the configuration calls them
  // The versions of a repository's model that are served: the newest so many, those named, or all (0 and none).
  std::int64_t newest = 1;
  std::vector<std::int64_t> versions;
};

// From a model configuration in JSON with config.pbtxt's names: the parameter "config" of POST …/load, and the converted form of
// config.pbtxt. Members without a meaning here are added to `ignored`. Throws Error(invalid_argument) naming the member that is
// wrong, and for settings that would change answers if they were ignored: sequence_batching, ensemble_scheduling, reshape, ragged
// batches.
ModelSettings settings_of_json(std::string_view json, std::vector<std::string>& ignored);

}  // namespace sdx::serve
