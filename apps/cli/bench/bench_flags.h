#pragma once
// What `sdx bench` and `sdx sweep` share.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sdx/runner.hpp>

#include <sdx/registry.hpp>

#include "cli/arguments.h"
#include "cli/session_flags.h"
#include "cli/values/inputs.h"

namespace sdx::cli {

// All that measuring needs.
struct BenchSetup {
  std::string shown;  // the model, for people
  BenchOptions options;
  std::vector<ValueSpec> specs;            // the model's inputs
  std::shared_ptr<const void> conversion;  // holds a converted model while it is in use
  std::string converted;                   // its file's name; empty: the model is as it was
};

struct BenchFlags {
  SessionFlags session;
  InputFlags inputs;
  std::vector<std::string> backends;
  std::vector<int> threads;
  std::vector<std::int64_t> batch_sizes;
  BenchOptions given;  // the typed values, in the form in which they are used
  std::string duration;
  bool arrival = false;  // whether it was typed
  bool no_isolate = false, no_interleave = false, dry_run = false;
  std::string json, csv, markdown, html;

  // `batches`: the letter and the name of the option for batch sizes.
  void add_to(const Command& command, const char* batches);
  // `of_model`: options of its session. Throws UsageError.
  BenchOptions options(SessionOptions of_model) const;

  // In a dry run nothing is converted; the types of `specs` are those that a conversion would give. Throws UsageError, Error.
  BenchSetup set_up() const;

 private:
  void use_entry(const RegistryEntry& entry, const std::vector<ValueSpec>& specs, BenchOptions& o) const;
  Command command_;  // outlives these flags
};

// Runs the benchmark with a progress bar, after a check that the requested files can be written. Returns 1 if nothing could be
// measured, or a backend failed for another reason than being unavailable.
int run_bench(const BenchFlags& flags, BenchRun& run);
// --dry-run: prints what run_bench() would do, after the same checks.
void show_bench_plan(const BenchFlags& flags);
// Prints the table, or the format that goes to standard output, and writes the files. Returns whether it was the table.
bool show_bench(const BenchFlags& flags, const BenchRun& run);

}  // namespace sdx::cli
