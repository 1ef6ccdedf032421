#pragma once
// Shows where the time goes, operator by operator and node by node.

#include <filesystem>
#include <vector>

#include <sdx/runner.hpp>

namespace sdx::benchmark {

struct Profile {
  std::vector<OperatorTime> operators;  // by operator and kernel, most expensive first
  std::vector<NodeTime> nodes;          // most expensive first
};

// Opens the model with a profiler, runs it a few times, and sums up. Writes a Chrome trace unless `trace` is empty. Throws as
// Session does.
Profile profile_model(const std::filesystem::path& model, SessionOptions options, const NamedValues& inputs,
                      const std::filesystem::path& trace);

}  // namespace sdx::benchmark
