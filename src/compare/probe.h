#pragma once
// One run of a model with one backend's settings, in a process of its own if possible: settings that a process reads once
// (SDX_CPU_ISA, …) hold for this run alone, and a backend that crashes does not end this process.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <sdx/session.hpp>

namespace sdx::compare {

struct ProbeSide {
  std::string text;  // as asked for
  SessionOptions session;
  std::vector<std::pair<std::string, std::string>> environment;
};

// "cpu+no-optimize+threads=1+SDX_CPU_KERNEL=reference" over what both sides share. Throws Error(invalid_argument).
ProbeSide parse_side(const std::string& text, const SessionOptions& common);

struct Probe {
  std::vector<Value> values;  // of the outputs that were asked for
  Report report;              // providers, nodes and fallbacks alone
};

// Throws Error with the side's name in front; code internal where its process ended.
Probe run_probe(const ProbeSide& side, const std::filesystem::path& model, const NamedValues& inputs,
                const std::vector<std::string>& outputs);

}  // namespace sdx::compare
