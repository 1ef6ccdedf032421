#pragma once
// Attributes of GgmlMatMul, GgmlGather and GgmlExperts.

#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/signature.h"
#include "tensor/ggml.h"

namespace sdx::ops {

struct GgmlAttrs {
  std::string_view type;  // "q4_1": a GgmlFormat's name
  std::int64_t k = 0;     // elements of a row

  void fields(auto& f) {
    f.required("type", type);
    f.required("K", k);
  }
};

// GgmlMatMul: with groups, each of A's `groups` parts of K elements is multiplied by its share of the rows.
struct GgmlProductAttrs {
  GgmlAttrs rows;
  std::int64_t groups = 1;
  std::int64_t accuracy_level = 0;

  void fields(auto& f) {
    rows.fields(f);
    f("groups", groups);
    f("accuracy_level", accuracy_level);
  }
};
// The least precise type that activations may be rounded to, as MatMulNBits has it: 1 float32, 2 float16, 3 bfloat16, 4 int8; 0
// leaves it to ggml's own rule, which is int8. Throws Error(invalid_model) for other numbers.
bool ggml_may_round(std::int64_t accuracy_level);

struct GgmlRows {
  const GgmlFormat* format;
  std::int64_t k;
  std::int64_t bytes;  // of a row
};
// Throws Error(invalid_model) for an unknown type and a K that is not a whole number of blocks.
GgmlRows ggml_rows(const GgmlAttrs& attr);
// `n`: of the weights. Throws Error(invalid_model) where they cannot be divided.
std::int64_t ggml_groups(const GgmlProductAttrs& attr, std::int64_t n);

// A feed-forward part of a mixture of experts: each token goes through the `top_k` experts with the highest scores. An expert is
// down(min(gate, limit) * sigmoid(alpha * min(gate, limit)) * (clamp(up, -limit, limit) + beta)).
// With `sigmoid` each expert's score has a probability of its own; choice_bias is added to it for the choice alone. Experts are
// chosen from the `groups_used` best of `groups` groups side by side: of probabilities of their own the sum of a group's two best
// counts, of shares the best one.
struct GgmlExpertsAttrs {
  std::int64_t experts = 0, top_k = 1;
  std::int64_t k = 0, f = 0;  // elements of a row of gate and up; of down
  std::string_view gate_type, up_type, down_type;
  bool normalize = true;  // weights are shares of the chosen experts' softmax, else of all experts'
  float scale = 1.0F;     // of the weights
  float alpha = 1.0F, beta = 0.0F, limit = std::numeric_limits<float>::infinity();
  bool sigmoid = false;
  std::int64_t groups = 1, groups_used = 1;
  std::int64_t accuracy_level = 0;

  void fields(auto& a) {
    a.required("experts", experts);
    a.required("top_k", top_k);
    a.required("K", k);
    a.required("F", f);
    a.required("gate_type", gate_type);
    a.required("up_type", up_type);
    a.required("down_type", down_type);
    a("normalize_routing_weights", normalize);
    a("routing_scale", scale);
    a("activation_alpha", alpha);
    a("activation_beta", beta);
    a("swiglu_limit", limit);
    a("sigmoid", sigmoid);
    a("groups", groups);
    a("groups_used", groups_used);
    a("accuracy_level", accuracy_level);
  }
};
enum class GgmlExpertsIn : std::uint8_t { x, scores, gate_bias, up_bias, down_bias, choice_bias, weights };

struct GgmlExperts {
  std::int64_t experts, top_k;
  GgmlRows gate, up, down;
  bool normalize;
  float scale, alpha, beta, limit;
  bool sigmoid;
  std::int64_t groups, groups_used;
};
// Throws Error(invalid_model) as ggml_rows() does, and for impossible numbers.
GgmlExperts ggml_experts(const GgmlExpertsAttrs& attr);

// Tokens grouped by expert: those of expert e are [begin[e], begin[e + 1]), in order.
struct ExpertRows {
  std::vector<std::int64_t> begin, token;
  std::vector<float> weight;  // of the expert's answer for the token
};
// `scores`: [tokens, experts]; `choice_bias`: [experts], or null. Of equal scores the first expert's is taken; what is not a
// number counts as the least.
ExpertRows choose_experts(const GgmlExperts& e, const float* scores, const float* choice_bias, std::int64_t tokens);

// Where the rows of each expert's three matrices begin. The weights are 3 or 3 * experts tensors uint8[rows, row bytes]: gates,
// ups, downs, each for all experts one behind the other or for one. Nothing: they are of another shape.
struct ExpertWeights {
  std::vector<const char*> gate, up, down;
};
std::optional<ExpertWeights> expert_weights(const GgmlExperts& e, const std::vector<const Tensor*>& weights);

}  // namespace sdx::ops
