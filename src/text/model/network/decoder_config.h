#pragma once
// The configuration of a language model's network: read from a GGUF file's metadata here, from config.json in hf_config.h.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tensor/gguf/gguf_model.h"

namespace sdx::text {

// Limits for the numbers in files.
inline constexpr std::int64_t kMostLayers = 1024, kMostWidth = std::int64_t{1} << 20, kMostContext = std::int64_t{1} << 26;

enum class RopeScaling { none, linear, yarn, longrope };

// Angles of rotary embeddings, of one kind of layers.
struct RopeConfig {
  float base = 10000.0F;
  RopeScaling scaling = RopeScaling::none;
  float factor = 1.0F;                         // of the context
  std::int64_t original_context = 0;           // yarn, longrope: what the model was trained with before
  float attention_factor = 1.0F;               // cosines and sines are multiplied by it
  float beta_fast = 32.0F, beta_slow = 1.0F;   // yarn: turns in the original context between which frequencies are mixed
  bool truncate = true;                        // yarn: to whole dimensions
  std::vector<float> divisors, long_divisors;  // of the frequencies; empty: none. long_divisors: beyond original_context
};

// The experts of a layer, where it has a router.
struct ExpertConfig {
  std::int64_t count = 0, used = 0;  // 0: there are none
  std::int64_t feed_forward = 0;     // of each
  bool normalize = true;             // weights are shares of the chosen experts' softmax, else of all experts'
  float scale = 1.0F;                // of the weights
  // As in sdx.GgmlExperts: gates are x * sigmoid(alpha * x), beta is added to what they multiply, both are limited before.
  float alpha = 1.0F, beta = 0.0F, limit = std::numeric_limits<float>::infinity();
};

struct DecoderConfig {
  std::string architecture;  // "llama"
  std::int64_t context = 0, width = 0, layers = 0, feed_forward = 0, heads = 0, kv_heads = 0, head_size = 0, vocabulary = 0;
  std::int64_t rotary = 0;  // elements of a head that are rotated
  bool interleaved = false;
  float epsilon = 1e-5F;
  float attention_scale = 0.0F;    // 0: 1 / sqrt(head_size)
  float attention_softcap = 0.0F;  // 0: none
  float logit_softcap = 0.0F;
  float embedding_scale = 1.0F;
  float norm_shift = 0.0F;            // is added to the norms' weights
  bool gelu = false;                  // else SiLU
  bool post_norms = false;            // Gemma: a norm after attention and after the feed-forward part as well
  std::vector<std::int64_t> windows;  // per layer: keys that a query sees, itself included; 0: all
  std::vector<bool> local;            // per layer: whether `local_rope` counts
  RopeConfig rope, local_rope;
  ExpertConfig experts;
};

// gpt-oss: the limits of its gates, and angles whose mixture of frequencies is not rounded to whole dimensions.
void set_gpt_oss(DecoderConfig& c, float limit);

// Throws Error(not_implemented) for an unknown architecture or property, and Error(invalid_model) for impossible numbers.
DecoderConfig read_decoder_config(const GgufModel& file);

// Cosines and sines for positions [first, first + count): [count, rotary / 2] each. `context`: for how many positions the model
// is to be used, which decides between divisors and long_divisors.
void rope_rows(const RopeConfig& rope, std::int64_t rotary, std::int64_t context, std::int64_t first, std::int64_t count,
               float* cos, float* sin);

}  // namespace sdx::text
