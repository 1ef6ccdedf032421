#pragma once
// The configuration of a language model's network: read from a GGUF file's metadata here, from config.json in hf_config.h.

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
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

// x * sigmoid(x); GELU by its tanh; the square of what is above 0.
enum class NetworkActivation { silu, gelu, relu_squared };

// The experts of a layer, where it has a router.
struct ExpertConfig {
  std::int64_t count = 0, used = 0;          // 0: there are none
  std::int64_t feed_forward = 0;             // of each
  bool normalize = true;                     // weights are shares of the chosen experts' softmax, else of all experts'
  float scale = 1.0F;                        // of the weights
  bool sigmoid = false;                      // each expert's probability is its own, not a share
  std::int64_t groups = 1, groups_used = 1;  // experts are chosen from the best groups
  // As in sdx.GgmlExperts: gates are x * sigmoid(alpha * x), beta is added to what they multiply, both are limited before.
  float alpha = 1.0F, beta = 0.0F, limit = std::numeric_limits<float>::infinity();
};

// Attention whose keys and values are products of one short vector for each token, which alone is kept (DeepSeek V2, V3). Its
// heads look like one that all queries share: rotated elements, then the latent vector.
struct LatentConfig {
  std::int64_t size = 0;     // of the vector; 0: attention is of the usual kind
  std::int64_t queries = 0;  // of a vector that queries are products of; 0: they are products of the layer's input
  std::int64_t plain = 0;    // elements of a query that are not rotated
  std::int64_t value = 0;    // of a value
};

// Gated delta nets: a matrix for each head, in layers that have no attention.
struct DeltaConfig {
  std::int64_t heads = 0, key_heads = 0, key_size = 0, value_size = 0;  // heads 0: there are none
  bool tiled = false;       // head h has the keys of h % key_heads, as Qwen3.5's GGUF files have it; else neighbours share them
  bool log_decays = false;  // decays are stored as logarithms
};

// Selective scans of Mamba 2: a matrix for each head, keys and queries for each group of heads.
struct ScanConfig {
  std::int64_t heads = 0, head_size = 0, groups = 0, state_size = 0;  // heads 0: there are none
  float least_step = 0.0F, most_step = std::numeric_limits<float>::infinity();
  bool log_decays = false;     // decays are stored as logarithms
  bool norm_first = false;     // before the gate, else behind it
  std::vector<float> factors;  // of gates, values, keys, queries, time steps; empty: 1
  float out_scale = 1.0F;
};

struct DecoderConfig {
  std::string architecture;  // "llama"
  std::int64_t context = 0, width = 0, layers = 0, feed_forward = 0, heads = 0, kv_heads = 0, head_size = 0, vocabulary = 0;
  std::int64_t rotary = 0;        // elements of a head that are rotated
  std::int64_t spare_layers = 0;  // behind the others, for drafts of further tokens; they are not used
  bool interleaved = false;
  float epsilon = 1e-5F;
  float attention_scale = 0.0F;    // 0: 1 / sqrt(head_size)
  float attention_softcap = 0.0F;  // 0: none
  float logit_softcap = 0.0F;
  float logit_scale = 1.0F;
  float embedding_scale = 1.0F;
  float residual_scale = 1.0F;  // of what a layer's parts add
  float norm_shift = 0.0F;      // is added to the norms' weights
  bool layer_norm = false;      // norms subtract the mean; else they divide by the root mean square alone
  bool norm_bias = false;       // layer_norm: and add a vector
  NetworkActivation activation = NetworkActivation::silu;
  bool gated = true;                           // what is activated multiplies another product
  bool pre_norms = true;                       // a norm before attention and before the feed-forward part
  bool post_norms = false;                     // a norm after attention and after the feed-forward part
  bool parallel = false;                       // both parts take the same norm, and their sum is added
  bool norm_after_rotation = false;            // of queries and keys
  bool single_parts = false;                   // a layer is attention, a scan or a feed-forward part, with a norm before it
  float attention_out_scale = 1.0F;            // of what attention adds
  float gate_scale = 1.0F, down_scale = 1.0F;  // of the feed-forward part's gates, and of what it adds
  bool gated_attention = false;                // what a head finds is multiplied by a sigmoid of the token's own
  bool bidirectional = false;                  // of embedders: tokens see those behind them, too; windows reach to both sides
  float query_growth = 0.0F;          // queries grow with the logarithm of how often their position holds the original context
  std::vector<std::int64_t> windows;  // per layer: keys that a query sees, itself included; 0: all
  std::vector<bool> local;            // per layer: whether `local_rope` counts, if `two_ropes`
  std::vector<bool> unrotated;        // per layer: whether heads are not rotated; empty: all are
  bool two_ropes = false;
  RopeConfig rope, local_rope;
  ExpertConfig experts;
  LatentConfig latent;
  DeltaConfig delta;
  ScanConfig scan;
};

// Whether converters to GGUF permute the rows of queries and keys, so that neighbours are rotated together.
bool permuted_in_gguf(std::string_view architecture);

// What does not depend on the file, by the architecture's name in GGUF files.
void set_architecture(DecoderConfig& c);

// Throw Error(invalid_model) for numbers that do not fit together.
void check_delta(const DeltaConfig& d);
void check_scan(const ScanConfig& s);

// Sizes of heads, where no layer has attention.
void set_no_attention(DecoderConfig& c);

// SmolLM3: every `interval`th layer does not rotate its heads.
void leave_unrotated(DecoderConfig& c, std::int64_t interval);

// Command R7B, EXAONE 4: layers that see everything do not rotate their heads.
void rotate_windows_only(DecoderConfig& c);

// gpt-oss: the limits of its gates, and angles whose mixture of frequencies is not rounded to whole dimensions.
void set_gpt_oss(DecoderConfig& c, float limit);

// Whether it is the name of a language model's architecture in GGUF files.
bool is_decoder_architecture(std::string_view name);

// Sets what follows from `c.latent` and `c.rotary`. `growth`: of the logarithm of the context's factor in the scores' scale.
void set_latent(DecoderConfig& c, double growth);

// Throws Error(not_implemented) for an unknown architecture or property, and Error(invalid_model) for impossible numbers.
// `embeds`: for vectors of texts, which some architectures are made for alone.
DecoderConfig read_decoder_config(const GgufModel& file, bool embeds = false);

// The most tokens of a text that vectors are made of: its angles are constants.
inline constexpr std::int64_t kMostTextTokens = std::int64_t{1} << 17;
// Throws Error(invalid_model) where tables of angles would take more than a gigabyte.
void check_angles(std::int64_t positions, std::int64_t rotary);

// Cosines and sines for positions [first, first + count): [count, rotary / 2] each. `context`: for how many positions the model
// is to be used, which decides between divisors and long_divisors.
void rope_rows(const RopeConfig& rope, std::int64_t rotary, std::int64_t context, std::int64_t first, std::int64_t count,
               float* cos, float* sin);

}  // namespace sdx::text
