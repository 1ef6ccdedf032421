#pragma once
// Several requests as one run's inputs, and the run's outputs cut into theirs.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sdx/session.hpp>

namespace sdx::serve {

// The parts of a model's declaration that joining needs.
struct JoinRules {
  std::vector<ValueSpec> inputs, outputs;
  std::string mask_input;  // BatchOptions::mask_input
};

// A key that requests must share to run together.
struct JoinKey {
  std::string text;
  std::int64_t rows = 0;    // samples
  std::int64_t length = 0;  // of its texts, where they are filled up to a common one; else 0
};

// Nothing where the request has to run alone.
std::optional<JoinKey> join_key(const JoinRules& rules, const NamedValues& inputs);

struct JoinPart {
  const NamedValues* inputs;
  std::int64_t rows, length;
};

// All parts behind each other; their keys' texts are equal. Throws Error(out_of_memory).
NamedValues join(const JoinRules& rules, std::span<const JoinPart> parts);

// One request's share. Views of `outputs` where rows are whole. Nothing where the outputs' first extents are not the batch.
std::vector<NamedValues> cut(const JoinRules& rules, const NamedValues& outputs, std::span<const JoinPart> parts);

}  // namespace sdx::serve
