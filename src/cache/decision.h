#pragma once
// The provider that measuring chose for a model, kept between runs.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sdx/session.hpp>

namespace sdx::cache {

// The result of measuring, and its conditions.
struct Decision {
  std::vector<MeasuredProvider> candidates;  // in the order of the chain
  std::string chosen;                        // provider; never empty
  std::string model;                         // name of its file, for people; may be empty
  std::string inputs;                        // "x: float32[1,3,224,224]"
  std::string when;                          // UTC, "2026-03-01T12:00:00Z"; of one that was read: when it was made
  std::string machine;                       // for people
};

// Returns nullopt if there is no decision, or if it cannot be read. Reading marks the file as used.
std::optional<Decision> read_decision(const std::filesystem::path& file);
// Throws Error(io).
void write_decision(const std::filesystem::path& file, const Decision& decision);

}  // namespace sdx::cache
