#include "text/model/network/hf_defaults.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"

namespace sdx::text {
namespace {

constexpr std::array kDefaults{
    HfDefaults{.type = "llama", .has_mlp_bias = true, .context = 2048},
    HfDefaults{.type = "mistral", .context = 131072, .window = 4096, .kv_heads = 8},
    HfDefaults{.type = "qwen2", .biased_qkv = true, .mixes_layers = true, .context = 32768, .window = 4096, .kv_heads = 32},
    HfDefaults{.type = "qwen3", .mixes_layers = true, .context = 32768, .window = 4096, .head_size = 128, .kv_heads = 32},
    HfDefaults{.type = "gemma2",
               .gemma = true,
               .tied = true,
               .mixes_layers = true,
               .context = 8192,
               .window = 4096,
               .head_size = 256,
               .heads = 8,
               .kv_heads = 4},
    HfDefaults{.type = "gemma3_text",
               .gemma = true,
               .tied = true,
               .mixes_layers = true,
               .context = 131072,
               .window = 4096,
               .head_size = 256,
               .heads = 8,
               .kv_heads = 4,
               .theta = 1e6},
    HfDefaults{.type = "phi3", .context = 4096, .epsilon = 1e-5},
    HfDefaults{.type = "gemma", .gemma = true, .tied = true, .context = 8192, .head_size = 256, .heads = 16, .kv_heads = 16},
    HfDefaults{.type = "granite", .has_mlp_bias = true, .context = 2048},
    HfDefaults{.type = "smollm3",
               .tied = true,
               .mixes_layers = true,
               .has_mlp_bias = true,
               .context = 32768,
               .heads = 16,
               .kv_heads = 4,
               .theta = 2e6},
    HfDefaults{.type = "ernie4_5",
               .tied = true,
               .attention_bias = "use_bias",
               .mlp_bias = "use_bias",
               .has_mlp_bias = true,
               .context = 131072,
               .head_size = 128,
               .heads = 16,
               .kv_heads = 2,
               .epsilon = 1e-5,
               .theta = 5e5},
    HfDefaults{.type = "seed_oss",
               .has_mlp_bias = true,
               .biased = true,
               .context = 524288,
               .head_size = 128,
               .heads = 80,
               .kv_heads = 8},
    HfDefaults{.type = "olmo2", .context = 2048, .heads = 32, .epsilon = 1e-5},
    HfDefaults{
        .type = "olmo3", .mixes_layers = true, .context = 2048, .window = 4096, .heads = 32, .epsilon = 1e-5, .theta = 5e5},
    HfDefaults{
        .type = "exaone4", .mixes_layers = true, .context = 2048, .window = 4096, .heads = 32, .kv_heads = 32, .epsilon = 1e-5},
    HfDefaults{.type = "cohere",
               .tied = true,
               .epsilon_key = "layer_norm_eps",
               .context = 8192,
               .heads = 64,
               .epsilon = 1e-5,
               .theta = 5e5},
    HfDefaults{.type = "cohere2",
               .tied = true,
               .mixes_layers = true,
               .epsilon_key = "layer_norm_eps",
               .context = 8192,
               .window = 4096,
               .heads = 64,
               .epsilon = 1e-5},
    HfDefaults{.type = "starcoder2",
               .tied = true,
               .attention_bias = "use_bias",
               .mlp_bias = "use_bias",
               .epsilon_key = "norm_epsilon",
               .activation = "gelu_pytorch_tanh",
               .has_mlp_bias = true,
               .biased = true,
               .context = 4096,
               .heads = 24,
               .kv_heads = 2,
               .epsilon = 1e-5},
    HfDefaults{.type = "nemotron",
               .epsilon_key = "norm_eps",
               .activation = "relu2",
               .has_mlp_bias = true,
               .rotary = 0.5,
               .context = 4096,
               .heads = 48,
               .epsilon = 1e-5},
    HfDefaults{.type = "glm4",
               .biased = true,
               .rotary = 0.5,
               .context = 131072,
               .head_size = 128,
               .heads = 32,
               .kv_heads = 2,
               .epsilon = 1.5625e-7},
    HfDefaults{.type = "hunyuan_v1_dense", .context = 2048, .heads = 32, .epsilon = 1e-5},
    HfDefaults{
        .type = "ministral3", .context = 262144, .head_size = 128, .heads = 32, .kv_heads = 8, .epsilon = 1e-5, .theta = 1e6},
    HfDefaults{.type = "arcee", .activation = "relu2", .has_mlp_bias = true, .context = 4096, .heads = 32, .epsilon = 1e-5},
    HfDefaults{.type = "granitemoe", .context = 2048, .experts = 8, .experts_used = 2},
    HfDefaults{.type = "granitemoeshared", .context = 2048, .experts = 8, .experts_used = 2},
    HfDefaults{
        .type = "mixtral", .context = 131072, .kv_heads = 8, .experts = 8, .experts_used = 2, .epsilon = 1e-5, .theta = 1e6},
    HfDefaults{.type = "qwen2_moe",
               .biased_qkv = true,
               .mixes_layers = true,
               .context = 32768,
               .window = 4096,
               .heads = 16,
               .kv_heads = 16,
               .experts = 60,
               .experts_used = 4},
    HfDefaults{
        .type = "qwen3_moe", .context = 32768, .window = 4096, .heads = 32, .kv_heads = 4, .experts = 128, .experts_used = 8},
    HfDefaults{.type = "glm4_moe",
               .rotary = 0.5,
               .context = 131072,
               .heads = 96,
               .kv_heads = 8,
               .experts = 128,
               .experts_used = 8,
               .epsilon = 1e-5,
               .expert_feed_forward = 1408,
               .sigmoid = true},
    HfDefaults{.type = "deepseek_v2", .latent = true, .context = 2048, .heads = 32, .experts = 64, .expert_feed_forward = 1407},
    HfDefaults{.type = "deepseek_v3",
               .latent = true,
               .context = 4096,
               .heads = 128,
               .experts = 256,
               .experts_used = 8,
               .epsilon = 1e-6,
               .expert_feed_forward = 2048,
               .groups = 8,
               .groups_used = 4,
               .expert_scale = 2.5,
               .sigmoid = true},
    HfDefaults{.type = "qwen3_next",
               .delta = true,
               .rotary = 0.25,
               .context = 32768,
               .head_size = 256,
               .heads = 16,
               .kv_heads = 2,
               .experts = 512,
               .experts_used = 10,
               .feed_forward = 5632},
    HfDefaults{
        .type = "qwen3_5_text", .delta = true, .rotary = 0.25, .context = 32768, .head_size = 256, .heads = 16, .kv_heads = 4},
    HfDefaults{.type = "qwen3_5_moe_text",
               .delta = true,
               .rotary = 0.25,
               .context = 32768,
               .head_size = 256,
               .heads = 16,
               .kv_heads = 2,
               .experts = 256,
               .experts_used = 8,
               .feed_forward = 512},
    HfDefaults{.type = "lfm2",
               .tied = true,
               .epsilon_key = "norm_eps",
               .context = 128000,
               .heads = 32,
               .kv_heads = 8,
               .feed_forward = 12288,
               .epsilon = 1e-5,
               .theta = 1e6},
    HfDefaults{.type = "granitemoehybrid",
               .scan = true,
               .context = 2048,
               .heads = 32,
               .experts = 8,
               .experts_used = 2,
               .feed_forward = 11008},
    HfDefaults{
        .type = "falcon_h1", .scan = true, .context = 8192, .heads = 32, .kv_heads = 8, .feed_forward = 14336, .epsilon = 1e-5},
    HfDefaults{.type = "nemotron_h",
               .scan = true,
               .epsilon_key = "layer_norm_epsilon",
               .activation = "relu2",
               .context = 4096,
               .head_size = 128,
               .heads = 32,
               .kv_heads = 8,
               .feed_forward = 21504,
               .epsilon = 1e-5},
    HfDefaults{.type = "mamba2", .scan = true, .epsilon_key = "layer_norm_epsilon", .context = 1 << 20, .epsilon = 1e-5},
    HfDefaults{.type = "gpt_oss",
               .mixes_layers = true,
               .biased = true,
               .context = 131072,
               .window = 128,
               .head_size = 64,
               .heads = 64,
               .kv_heads = 8,
               .experts = 128,
               .experts_used = 4,
               .epsilon = 1e-5,
               .theta = 150000.0}};

}  // namespace

const HfDefaults* find_hf_defaults(std::string_view type) {
  const auto d = std::find_if(kDefaults.begin(), kDefaults.end(), [&](const HfDefaults& k) { return k.type == type; });
  return d == kDefaults.end() ? nullptr : &*d;
}

std::string hf_types() {
  std::string all = "gemma3, mistral3, qwen3_5, qwen3_5_moe";
  for (const HfDefaults& d : kDefaults) all += ", " + std::string(d.type);
  return all;
}

std::int64_t check_range(const ConfigObject& o, const char* key, std::int64_t n, std::int64_t most) {
  if (n < 1 || n > most) fail(ErrorCode::invalid_model, "{} must be from 1 to {}, received {}", o.shown(key), most, n);
  return n;
}
std::int64_t read_count(ConfigObject& o, const char* key, std::int64_t most, std::int64_t otherwise) {
  const auto n = o.integer(key);
  if (!n && otherwise == 0) fail(ErrorCode::invalid_model, "{} is missing", o.shown(key));
  return check_range(o, key, n.value_or(otherwise), most);
}
double read_positive(ConfigObject& o, const char* key, double otherwise) {
  const double v = o.number(key).value_or(otherwise);
  if (!(v > 0.0 && v <= static_cast<double>(std::numeric_limits<float>::max())))
    fail(ErrorCode::invalid_model, "{} must be greater than 0, and finite, received {}", o.shown(key), v);
  return v;
}

}  // namespace sdx::text
