#pragma once
// What an architecture of transformers has without saying so: the meaning of keys of config.json that are left out, and names of
// keys that differ between architectures.

#include <cstdint>
#include <string>
#include <string_view>

#include "text/model/config_object.h"

namespace sdx::text {

struct HfDefaults {
  std::string_view type;
  bool gemma = false, tied = false, biased_qkv = false, mixes_layers = false, latent = false, delta = false, scan = false;
  // Names of keys, and what hidden_act must be; null: SiLU.
  const char *attention_bias = "attention_bias", *mlp_bias = "mlp_bias", *epsilon_key = "rms_norm_eps", *activation = nullptr;
  bool has_mlp_bias = false, biased = false;  // biased: where attention_bias is left out
  double rotary = 1.0;                        // the share of a head that is rotated
  std::int64_t context = 0, window = 0, head_size = 0, heads = 0, kv_heads = 0, experts = 0, experts_used = 0, feed_forward = 0;
  double epsilon = 1e-6, theta = 10000.0;
  // Of experts beside which there are some that all tokens go through.
  std::int64_t expert_feed_forward = 0, groups = 1, groups_used = 1;
  double expert_scale = 1.0;
  bool sigmoid = false;  // of experts' scores
};

// By model_type; null: unknown.
const HfDefaults* find_hf_defaults(std::string_view type);
// "gemma3, llama, ...": those that are known.
std::string hf_types();

// Numbers within a range; else they throw Error(invalid_model). `otherwise` 0: the key is required.
std::int64_t check_range(const ConfigObject& o, const char* key, std::int64_t n, std::int64_t most);
std::int64_t read_count(ConfigObject& o, const char* key, std::int64_t most, std::int64_t otherwise = 0);
double read_positive(ConfigObject& o, const char* key, double otherwise);

}  // namespace sdx::text
