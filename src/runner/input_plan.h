#pragma once
// What a benchmark feeds to a model.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <sdx/runner.hpp>

namespace sdx {

// The inputs of one batch size, as far as they are the same for all backends.
struct InputPlan {
  std::int64_t batch = 1;
  NamedValues given;
  std::vector<std::pair<std::string, Shape>> shapes;  // of those to make up
  std::vector<BenchInput> described;
  std::vector<std::string> notes;
  bool overridden = false;  // the model's file declares another batch size
};

// The spec of that name. Throws Error(invalid_argument) with the closest match.
const ValueSpec& spec_named(const std::vector<ValueSpec>& specs, const std::string& name);

// batch 0: as the inputs come. Throws Error(invalid_argument) where the model has no batch axis, or an input cannot be made up.
InputPlan plan_inputs(const std::vector<ValueSpec>& specs, const BenchOptions& options, std::int64_t batch);

}  // namespace sdx
