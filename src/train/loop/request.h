#pragma once
// The arguments of `sdx train`, as they were typed.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/text/console.h"

namespace sdx::train::loop {

// Texts are as typed and empty where nothing was.
struct Request {
  std::filesystem::path artifacts, data, eval;
  std::int64_t epochs = 1, batch = 0, accumulate = 1;  // batch 0: as the data come, or the model demands, else 32
  double learning_rate = 0.001;
  std::string schedule = "constant";
  std::int64_t warmup = 0;
  std::string optimizer;
  std::optional<double> weight_decay, clip;
  std::uint64_t seed = 0;
  std::int64_t patience = 0, save_every = 0;
  double validation_split = 0;
  bool no_shuffle = false, drop_last = false, resume = false, json = false, bfloat16 = false, cache_features = false,
       dry_run = false;

  // Data.
  std::string augment, label, text, on_bad = "stop", memory = "2GiB";
  std::filesystem::path project, tokenizer;
  std::string resize, normalize;  // WxH
  std::vector<std::string> mean, deviation;
  std::int64_t max_length = 0;

  int threads = 0, workers = 0;
  std::filesystem::path output, export_model, report, labels;
  std::vector<std::string> outputs;  // of the exported model
};

}  // namespace sdx::train::loop
