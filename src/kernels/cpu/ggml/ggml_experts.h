#pragma once
// The experts of a step, with weights in ggml's blocks: reads only the experts that some token goes through, each once.

#include <cstdint>

#include "kernels/cpu/ggml/ggml.h"

namespace sdx::cpu {

// One of an expert's three products, for all experts.
struct ExpertMatrix {
  const GgmlFormat* format = nullptr;
  const char* const* weights = nullptr;  // by expert
  const float* bias = nullptr;           // [experts, rows]; may be null
};

// y[tokens, k] = for each token, the sum of weight times answer of its experts; an answer is down(act(gate(x)) * (clamp(up(x)) +
// beta)), act(v) = min(v, limit) * sigmoid(alpha * min(v, limit)), clamp to [-limit, limit]. Tokens of expert e are
// token[begin[e], begin[e + 1]). Sums are in the order of experts. Thread-safe, split over current_pool(). y must not overlap x.
struct ExpertsArgs {
  std::int64_t experts = 0, tokens = 0, k = 0, f = 0;
  ExpertMatrix gate, up, down;
  const std::int64_t* begin = nullptr;
  const std::int64_t* token = nullptr;
  const float* weight = nullptr;
  float alpha = 1.0F, beta = 0.0F, limit = 0.0F;
  GgmlAccuracy accuracy = GgmlAccuracy::float32;
  const float* x = nullptr;
  float* y = nullptr;
};
void ggml_experts(const ExpertsArgs& args);

}  // namespace sdx::cpu
