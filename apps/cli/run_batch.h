#pragma once
// One model over many samples, with results that survive an interruption.

#include <functional>
#include <string>

#include <sdx/session.hpp>

#include "cli/values/postprocess.h"
#include "cli/values/samples.h"

namespace sdx::cli {

struct BatchRun {
  const Session& session;
  const Samples& samples;
  const Postprocessor& post;
  std::function<void(const NamedValues&)> check;  // of a sample's inputs; throws
  RunOptions options;
  std::string output;                           // a folder, FILE.jsonl, FILE.json; "" or "-": standard output
  bool json = false;                            // JSON Lines on standard output
  std::int64_t batch_size = 1;                  // samples that one run takes, where model and samples let themselves be stacked
  bool overwrite = false;                       // a folder's results are made again
  bool dry_run = false;                         // only report what would be done
  std::function<std::string()> without_effect;  // flags without effect; complete when samples have been read
  std::string identity;                         // of model and settings: an interrupted FILE.jsonl continues if it is the same
};

// Throws UsageError for an output that cannot hold many results.
void check_batch_output(const std::string& output);

// A sample that fails is reported and does not stop the others; Ctrl-C stops after the current one. Returns the exit code:
// kFailed if a sample failed.
int run_batch(const BatchRun& run);

}  // namespace sdx::cli
