#pragma once
// Requests, parsed and checked. docs/serve/interfaces.md lists their fields.

#include <string>
#include <vector>

#include "serve/openai/requests.h"

namespace sdx::serve::vllm {

// Pairs of texts: as many on both sides, or one on the first.
struct ScoreRequest {
  std::string model;
  std::vector<std::string> first, second;
  bool cut = false;  // texts that are too long for an embedding model; else they are refused
  openai::Ignored ignored;
};

struct ClassifyRequest {
  std::string model;
  std::vector<std::string> texts;
  openai::Ignored ignored;
};

// Both throw openai::ApiError.
ScoreRequest read_score(const openai::Json& body);
ClassifyRequest read_classify(const openai::Json& body);

}  // namespace sdx::serve::vllm
