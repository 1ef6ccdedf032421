#include "text/model/network/decoder_config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "base/words.h"

namespace sdx::text {
namespace {

constexpr std::string_view kKnown =
    "llama qwen2 qwen3 gemma gemma2 gemma3 phi3 granite smollm3 ernie4_5 seed_oss olmo2 exaone4 command-r cohere2 starcoder2 "
    "nemotron glm4 hunyuan-dense mistral3 arcee qwen2moe qwen3moe granitemoe gpt-oss glm4moe deepseek2 "
    "qwen3next qwen35 qwen35moe lfm2 granitehybrid mamba2 falcon-h1 nemotron_h";

class Reader {
 public:
  Reader(const GgufFile& file, std::string architecture) : file_(file), prefix_(std::move(architecture) + ".") {}

  std::string key(std::string_view name) const { return prefix_ + std::string(name); }
  std::int64_t count(std::string_view name, std::int64_t most) const {
    const auto n = file_.whole(key(name));
    if (!n) fail(ErrorCode::invalid_model, "the GGUF file lacks the key '{}'", key(name));
    return checked(name, static_cast<std::int64_t>(*n), most);
  }
  std::int64_t count(std::string_view name, std::int64_t most, std::int64_t otherwise) const {
    return has(name) ? count(name, most) : otherwise;
  }
  // Converters write 0 for what a model does not have, as if the key were not there.
  std::int64_t count_or_none(std::string_view name, std::int64_t most, std::int64_t otherwise) const {
    const auto n = file_.whole(key(name));
    return n.value_or(0) == 0 ? otherwise : checked(name, static_cast<std::int64_t>(*n), most);
  }
  // One number, or an array of the same number for each layer; 0 for layers of which some are something else.
  std::int64_t same_count(std::string_view name, std::int64_t most, std::int64_t otherwise) const {
    const GgufValue* v = file_.find(key(name));
    if (v == nullptr || v->type != GgufType::array) return count(name, most, otherwise);
    std::vector<double> all = file_.numbers(key(name)).value();
    const bool mixed = has("ssm.conv_kernel") || has("shortconv.l_cache");
    if (mixed && std::any_of(all.begin(), all.end(), [](double n) { return n != 0; })) std::erase(all, 0.0);
    if (all.empty() || std::any_of(all.begin(), all.end(), [&](double n) { return n != all[0]; })) {
      fail(ErrorCode::not_implemented, "key '{}' differs from layer to layer, which is not supported", key(name));
    }
    if (!(all[0] >= 1 && all[0] <= static_cast<double>(most))) return checked(name, 0, most);
    return checked(name, static_cast<std::int64_t>(all[0]), most);
  }
  float number(std::string_view name, float otherwise) const {
    const auto v = file_.number(key(name));
    if (!v) return otherwise;
    if (!std::isfinite(*v) || std::abs(*v) > static_cast<double>(std::numeric_limits<float>::max())) {
      fail(ErrorCode::invalid_model, "key '{}' must be a finite number, received {}", key(name), *v);
    }
    return static_cast<float>(*v);
  }
  float positive(std::string_view name, float otherwise) const {
    const float v = number(name, otherwise);
    if (!(v > 0.0F)) fail(ErrorCode::invalid_model, "key '{}' must be greater than 0, received {}", key(name), v);
    return v;
  }
  float positive_or_none(std::string_view name, float otherwise) const {
    return number(name, 0.0F) == 0.0F ? otherwise : positive(name, otherwise);
  }
  bool has(std::string_view name) const { return file_.find(key(name)) != nullptr; }
  std::string text(std::string_view name) const { return std::string(file_.text(key(name)).value_or("")); }

 private:
  std::int64_t checked(std::string_view name, std::int64_t n, std::int64_t most) const {
    if (n < 1 || n > most) fail(ErrorCode::invalid_model, "key '{}' must be from 1 to {}, received {}", key(name), most, n);
    return n;
  }

  const GgufFile& file_;
  std::string prefix_;
};

std::vector<float> divisors_of(const GgufModel& file, std::string_view name, std::int64_t rotary) {
  const StoredTensor* t = file.find_tensor(name);
  if (t == nullptr) return {};
  const GgmlFormat* format = find_ggml(t->type);
  if (format == nullptr || format->block != 1 || t->elements() != rotary / 2) {
    fail(ErrorCode::invalid_model, "tensor '{}' must hold {} floats", name, rotary / 2);
  }
  std::vector<float> values(static_cast<std::size_t>(rotary / 2));
  ggml_dequantize(*format, t->data.data(), rotary / 2, values.data());
  for (const float v : values) {
    if (!(v > 0.0F) || !std::isfinite(v))
      fail(ErrorCode::invalid_model, "tensor '{}' contains {}, which is not a divisor", name, v);
  }
  return values;
}

// Converters copy transformers' attention_factor, which is the whole factor, to the second key, and Olmo 3's to the first.
float yarn_size(const Reader& r, const DecoderConfig& c, float factor) {
  const auto scale = [&](float m) { return 1.0F + 0.1F * m * std::log(factor); };
  const float some = r.positive("rope.scaling.attn_factor", 1.0F);
  if (r.has("rope.scaling.yarn_attn_factor")) return r.positive("rope.scaling.yarn_attn_factor", 1.0F);
  if (c.architecture == "olmo2" && r.has("rope.scaling.attn_factor")) return some;
  // mscale is 1 where mscale_all_dim is given here.
  const float all = c.architecture == "mistral3" ? r.number("rope.scaling.yarn_log_multiplier", 0.0F) : 0.0F;
  return some * (all == 0.0F || factor <= 1.0F ? scale(1.0F) : scale(1.0F) / scale(all));
}

RopeConfig read_rope(const GgufModel& file, const Reader& r, const DecoderConfig& c) {
  RopeConfig rope;
  rope.base = r.positive("rope.freq_base", 10000.0F);
  const std::string scaling = r.text("rope.scaling.type");
  rope.original_context = r.count_or_none("rope.scaling.original_context_length", kMostContext, c.context);
  rope.factor = r.positive_or_none("rope.scaling.factor", r.positive_or_none("rope.scale_linear", 1.0F));
  rope.attention_factor = r.positive("rope.scaling.attn_factor", 1.0F);
  rope.divisors = divisors_of(file, "rope_freqs.weight", c.rotary);
  if (const StoredTensor* t = file.find_tensor("rope_factors_long.weight")) {
    rope.scaling = RopeScaling::longrope;
    rope.long_divisors = divisors_of(file, t->name, c.rotary);
    rope.divisors = divisors_of(file, "rope_factors_short.weight", c.rotary);
    if (rope.divisors.empty())
      fail(ErrorCode::invalid_model, "there is 'rope_factors_long.weight' but no 'rope_factors_short.weight'");
  } else if (scaling == "linear" || (scaling.empty() && rope.factor != 1.0F)) {
    rope.scaling = RopeScaling::linear;
  } else if (scaling == "yarn") {
    rope.scaling = RopeScaling::yarn;
    rope.attention_factor = yarn_size(r, c, rope.factor);
    rope.beta_fast = r.positive("rope.scaling.yarn_beta_fast", rope.beta_fast);
    rope.beta_slow = r.positive("rope.scaling.yarn_beta_slow", rope.beta_slow);
  } else if (!scaling.empty() && scaling != "none") {
    fail(ErrorCode::not_implemented, "rope scaling '{}' is not supported; those that are: none, linear, yarn, longrope", scaling);
  }
  return rope;
}

// Every how many layers one sees everything; 0: none does.
std::int64_t usual_pattern(std::string_view architecture) {
  if (has_word("gpt-oss gemma2", architecture)) return 2;
  if (has_word("cohere2 olmo2 exaone4", architecture)) return 4;
  return architecture == "gemma3" ? 6 : 0;
}

void sliding_windows(const GgufModel& file, const Reader& r, DecoderConfig& c) {
  const std::int64_t window = r.count_or_none("attention.sliding_window", kMostContext, 0);
  c.windows.assign(static_cast<std::size_t>(c.layers), 0);
  c.local.assign(static_cast<std::size_t>(c.layers), false);
  if (window == 0) return;
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  const GgufValue* listed = file.metadata().find(r.key(kPattern));
  std::vector<double> list;
  if (listed != nullptr && listed->type == GgufType::array) {
    list = file.metadata().numbers(r.key(kPattern)).value_or(std::vector<double>());
    if (list.size() != static_cast<std::size_t>(c.layers))
      fail(ErrorCode::invalid_model, "key '{}' must say for each of {} layers whether it has a window", r.key(kPattern),
           c.layers);
  }
  const std::int64_t usual = usual_pattern(c.architecture);
  const std::int64_t pattern = usual == 0 || !list.empty() ? 0 : r.count_or_none(kPattern, kMostLayers, usual);
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool local = list.empty() ? pattern == 0 || i % pattern < pattern - 1 : list[at] != 0;
    c.windows[at] = local ? window : 0;
    c.local[at] = local;
  }
}

void scales(const GgufModel& file, const Reader& r, DecoderConfig& c) {
  if (c.architecture.starts_with("granite")) {
    c.embedding_scale = r.positive_or_none("embedding_scale", 1.0F);
    c.residual_scale = r.positive_or_none("residual_scale", 1.0F);
    c.logit_scale = 1.0F / r.positive_or_none("logit_scale", 1.0F);
    c.attention_scale = r.positive_or_none("attention.scale", 0.0F);
    // The key says for these whether heads are rotated.
    if (!file.metadata().truth(r.key("rope.scaling.finetuned")).value_or(true)) leave_unrotated(c, 1);
  }
  if (has_word("command-r cohere2", c.architecture)) c.logit_scale = r.positive_or_none("logit_scale", 1.0F);
  if (c.architecture == "mistral3") c.query_growth = r.number("attention.temperature_scale", 0.0F);
}

void read_latent(const Reader& r, DecoderConfig& c) {
  LatentConfig& l = c.latent;
  l.size = r.count("attention.kv_lora_rank", kMostWidth);
  l.queries = r.count_or_none("attention.q_lora_rank", kMostWidth, 0);
  // Older files have the lengths of single heads under the usual names.
  const bool apart = r.has("attention.key_length_mla");
  const std::int64_t key = r.count(apart ? "attention.key_length_mla" : "attention.key_length", kMostWidth);
  l.value = r.count(apart ? "attention.value_length_mla" : "attention.value_length", kMostWidth);
  c.rotary = r.count("rope.dimension_count", kMostWidth);
  if (c.rotary >= key || c.rotary % 2 != 0)
    fail(ErrorCode::invalid_model, "key '{}' = {} does not fit keys of {}", r.key("rope.dimension_count"), c.rotary, key);
  l.plain = key - c.rotary;
}

void read_delta(const Reader& r, DecoderConfig& c) {
  DeltaConfig& d = c.delta;
  d.heads = r.count("ssm.time_step_rank", 1 << 16);
  d.key_heads = r.count("ssm.group_count", 1 << 16);
  d.key_size = r.count("ssm.state_size", kMostWidth);
  d.value_size = r.count("ssm.inner_size", kMostWidth * 16) / d.heads;
  d.tiled = c.architecture != "qwen3next";
  check_delta(d);
}

void read_scan(const Reader& r, DecoderConfig& c) {
  ScanConfig& s = c.scan;
  s.heads = r.count("ssm.time_step_rank", 1 << 16);
  s.groups = r.count("ssm.group_count", 1 << 16, 1);
  s.state_size = r.count("ssm.state_size", kMostWidth);
  s.head_size = r.count("ssm.inner_size", kMostWidth * 16) / s.heads;
  if (c.architecture == "nemotron_h") s.least_step = 0.001F;
  check_scan(s);
}

RopeConfig plain_rope(float base) {
  RopeConfig rope;
  rope.base = base;
  return rope;
}

void gemma(const Reader& r, DecoderConfig& c) {
  c.embedding_scale = std::sqrt(static_cast<float>(c.width));
  if (c.architecture == "gemma") return;
  c.attention_softcap = r.number("attn_logit_softcapping", c.architecture == "gemma2" ? 50.0F : 0.0F);
  c.logit_softcap = r.number("final_logit_softcapping", c.architecture == "gemma2" ? 30.0F : 0.0F);
  // The largest model of each generation divides by the width per head instead of the head's own size.
  const bool largest = c.layers == (c.architecture == "gemma2" ? 46 : 62);
  if (largest) {
    const std::int64_t per_head = c.width / c.heads;
    c.attention_scale = 1.0F / std::sqrt(static_cast<float>(per_head));
  }
  if (c.architecture == "gemma3") {
    c.local_rope = plain_rope(r.positive("rope.freq_base_swa", 10000.0F));
  }
}

void read_experts(const GgufModel& file, const Reader& r, DecoderConfig& c) {
  ExpertConfig& e = c.experts;
  e.count = r.count_or_none("expert_count", 1 << 16, 0);
  const bool always = has_word("qwen2moe qwen3moe granitemoe gpt-oss glm4moe deepseek2 qwen3next qwen35moe", c.architecture);
  if (e.count == 0 && !always) return;  // Granite's hybrids may have none
  if (!always && !has_word("llama granitehybrid", c.architecture)) {
    fail(ErrorCode::not_implemented, "key '{}': experts are not known to architecture '{}'", r.key("expert_count"),
         c.architecture);
  }
  e.count = r.count("expert_count", 1 << 16);
  e.used = r.count("expert_used_count", e.count);
  e.feed_forward = r.count_or_none("expert_feed_forward_length", kMostWidth * 16, c.feed_forward);
  e.normalize = file.metadata().truth(r.key("expert_weights_norm")).value_or(!has_word("qwen2moe deepseek2", c.architecture));
  e.scale = r.positive_or_none("expert_weights_scale", 1.0F);
  constexpr std::int64_t kSoftmax = 1, kSigmoid = 2;
  e.sigmoid = r.count_or_none("expert_gating_func", kSigmoid, c.architecture == "glm4moe" ? kSigmoid : kSoftmax) == kSigmoid;
  e.groups = r.count_or_none("expert_group_count", e.count, 1);
  e.groups_used = r.count_or_none("expert_group_used_count", e.groups, e.groups);
  if (c.architecture == "gpt-oss") set_gpt_oss(c, r.positive("swiglu_limit", 7.0F));
}

}  // namespace

bool is_decoder_architecture(std::string_view name) { return has_word(kKnown, name); }

bool permuted_in_gguf(std::string_view architecture) {
  return has_word("llama granite granitemoe granitehybrid smollm3 mistral3 arcee", architecture);
}

void set_architecture(DecoderConfig& c) {
  const std::string_view a = c.architecture;
  c.interleaved = has_word("ernie4_5 command-r cohere2 glm4 deepseek2", a);
  c.layer_norm = has_word("command-r cohere2 starcoder2 nemotron", a);
  c.norm_bias = has_word("starcoder2 nemotron", a);
  c.parallel = has_word("command-r cohere2", a);
  c.pre_norms = !has_word("olmo2 exaone4", a);
  c.post_norms = has_word("gemma2 gemma3 olmo2 exaone4 glm4", a);
  c.gated = !has_word("starcoder2 nemotron arcee nemotron_h", a);
  c.single_parts = has_word("mamba2 nemotron_h", a);
  if (a.starts_with("gemma") || a == "starcoder2") c.activation = NetworkActivation::gelu;
  if (has_word("nemotron arcee nemotron_h", a)) c.activation = NetworkActivation::relu_squared;
  c.norm_after_rotation = a == "hunyuan-dense";
  c.two_ropes = has_word("gemma3 olmo2", a);
  c.gated_attention = has_word("qwen3next qwen35 qwen35moe", a);
}

void check_scan(const ScanConfig& s) {
  if (s.heads < 1 || s.groups < 1 || s.heads % s.groups != 0 || s.state_size < 1 || s.head_size < 1) {
    fail(ErrorCode::invalid_model, "{} heads of {} values cannot share {} groups of {} keys", s.heads, s.head_size, s.groups,
         s.state_size);
  }
}

void check_delta(const DeltaConfig& d) {
  if (d.heads < 1 || d.key_heads < 1 || d.heads % d.key_heads != 0 || d.key_size < 1 || d.value_size < 1) {
    fail(ErrorCode::invalid_model, "{} heads of {} values cannot share {} of {} keys", d.heads, d.value_size, d.key_heads,
         d.key_size);
  }
}

void set_latent(DecoderConfig& c, double growth) {
  const double factor = static_cast<double>(c.rope.factor), length = static_cast<double>(c.latent.plain + c.rotary);
  const double m = c.rope.scaling == RopeScaling::none || factor <= 1.0 ? 1.0 : 1.0 + growth * std::log(factor);
  c.attention_scale = static_cast<float>(m * m / std::sqrt(length));
  c.kv_heads = 1;
  c.head_size = c.rotary + c.latent.size;
}

void leave_unrotated(DecoderConfig& c, std::int64_t interval) {
  c.unrotated.clear();
  for (std::int64_t i = 0; i < c.layers; ++i) c.unrotated.push_back((i + 1) % interval == 0);
}

void rotate_windows_only(DecoderConfig& c) {
  c.unrotated.clear();
  for (const std::int64_t window : c.windows) c.unrotated.push_back(window == 0);
}

void set_gpt_oss(DecoderConfig& c, float limit) {
  c.experts.alpha = 1.702F;
  c.experts.beta = 1.0F;
  c.experts.limit = limit;
  c.rope.truncate = false;
}

namespace {

// Networks without attention.
DecoderConfig read_mamba(const Reader& r, DecoderConfig c) {
  set_architecture(c);
  c.epsilon = r.positive("attention.layer_norm_rms_epsilon", 1e-5F);
  set_no_attention(c);
  read_scan(r, c);
  return c;
}

}  // namespace

void set_no_attention(DecoderConfig& c) {
  c.heads = c.kv_heads = 1;
  c.head_size = c.rotary = 2;
  c.windows.assign(static_cast<std::size_t>(c.layers), 0);
  c.local.assign(static_cast<std::size_t>(c.layers), false);
}

DecoderConfig read_decoder_config(const GgufModel& file, bool embeds) {
  DecoderConfig c;
  const std::string named(file.metadata().text("general.architecture").value_or(""));
  const bool gemma_embedding = embeds && named == "gemma-embedding";  // Gemma 3 that sees to both sides
  c.architecture = gemma_embedding ? "gemma3" : named;
  if (!has_word(kKnown, c.architecture)) {
    fail(ErrorCode::not_implemented, "architecture '{}' is not supported; those that are: {}", c.architecture, kKnown);
  }
  const Reader r(file.metadata(), named);
  c.bidirectional = gemma_embedding || !file.metadata().truth(r.key("attention.causal")).value_or(true);
  if (c.bidirectional && !embeds)
    fail(ErrorCode::not_implemented, "key '{}' is false: the model makes vectors of texts, not answers",
         r.key("attention.causal"));
  c.context = r.count("context_length", kMostContext);
  c.width = r.count("embedding_length", kMostWidth);
  c.layers = r.count("block_count", kMostLayers);
  c.spare_layers = r.count_or_none("nextn_predict_layers", c.layers - 1, 0);
  c.layers -= c.spare_layers;
  if (c.architecture == "mamba2") return read_mamba(r, std::move(c));
  c.feed_forward = r.same_count("feed_forward_length", kMostWidth * 16, 0);
  if (c.feed_forward == 0 && !r.has("expert_feed_forward_length"))
    fail(ErrorCode::invalid_model, "the GGUF file lacks the key '{}'", r.key("feed_forward_length"));
  c.heads = r.same_count("attention.head_count", 1 << 16, 0);
  if (c.heads == 0) fail(ErrorCode::invalid_model, "the GGUF file lacks the key '{}'", r.key("attention.head_count"));
  c.kv_heads = r.same_count("attention.head_count_kv", 1 << 16, c.heads);
  if (c.heads % c.kv_heads != 0) fail(ErrorCode::invalid_model, "{} heads cannot share {} key heads", c.heads, c.kv_heads);
  c.head_size = r.count("attention.key_length", kMostWidth, c.width / c.heads);
  const bool latent = c.architecture == "deepseek2";
  if (!latent && r.count("attention.value_length", kMostWidth, c.head_size) != c.head_size) {
    fail(ErrorCode::not_implemented, "keys and values of different lengths are not supported");
  }
  if (c.head_size < 1) fail(ErrorCode::invalid_model, "{} elements cannot be divided among {} heads", c.width, c.heads);
  c.rotary = r.count("rope.dimension_count", c.head_size, c.head_size);
  if (c.rotary % 2 != 0)
    fail(ErrorCode::invalid_model, "key '{}' must be even, received {}", r.key("rope.dimension_count"), c.rotary);
  set_architecture(c);
  if (latent) read_latent(r, c);
  if (has_word("qwen3next qwen35 qwen35moe", c.architecture)) read_delta(r, c);
  if (has_word("granitehybrid falcon-h1 nemotron_h", c.architecture)) read_scan(r, c);
  c.epsilon = r.positive(c.layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", 1e-5F);
  c.interleaved = c.interleaved || permuted_in_gguf(c.architecture);
  c.rope = read_rope(file, r, c);
  if (latent) {  // the file's factor is that of scores, for both sides of the product
    c.rope.attention_factor = 1.0F;
    set_latent(c, static_cast<double>(r.number("rope.scaling.yarn_log_multiplier", 0.0F)));
  }
  c.local_rope = c.rope;
  sliding_windows(file, r, c);
  read_experts(file, r, c);
  if (c.architecture.starts_with("gemma")) gemma(r, c);
  scales(file, r, c);
  if (c.architecture == "smollm3") leave_unrotated(c, 4);
  if (c.architecture == "nemotron_h") leave_unrotated(c, 1);
  const bool windows = r.count_or_none("attention.sliding_window", kMostContext, 0) != 0;
  if (c.architecture == "cohere2" || (c.architecture == "exaone4" && windows)) rotate_windows_only(c);
  if (c.architecture == "olmo2") c.local_rope = plain_rope(c.rope.base);
  return c;
}

namespace {

// The share of a frequency that is kept, by yarn's ramp between the dimensions that turn beta_fast and beta_slow times in the
// original context (arXiv:2309.00071).
double yarn_share(const RopeConfig& rope, std::int64_t rotary, std::int64_t i) {
  const auto dimension = [&](double turns) {
    return static_cast<double>(rotary) * std::log(static_cast<double>(rope.original_context) / (turns * 2.0 * std::numbers::pi)) /
           (2.0 * std::log(static_cast<double>(rope.base)));
  };
  double low = dimension(static_cast<double>(rope.beta_fast)), high = dimension(static_cast<double>(rope.beta_slow));
  if (rope.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(0.0, low);
  high = std::min(static_cast<double>(rotary) - 1.0, high);
  return 1.0 - std::clamp((static_cast<double>(i) - low) / std::max(0.001, high - low), 0.0, 1.0);
}

}  // namespace

void check_angles(std::int64_t positions, std::int64_t rotary) {
  constexpr std::int64_t kMost = std::int64_t{1} << 28;
  if (rotary > kMost / std::max<std::int64_t>(1, positions))
    fail(ErrorCode::invalid_model, "angles of {} elements for {} positions take too much memory", rotary, positions);
}

void rope_rows(const RopeConfig& rope, std::int64_t rotary, std::int64_t context, std::int64_t first, std::int64_t count,
               float* cos, float* sin) {
  const std::int64_t half = rotary / 2;
  const std::vector<float>& divisors =
      rope.scaling == RopeScaling::longrope && context > rope.original_context ? rope.long_divisors : rope.divisors;
  const auto size = static_cast<double>(rope.attention_factor);
  std::vector<float> frequency(static_cast<std::size_t>(half));
  for (std::int64_t i = 0; i < half; ++i) {
    double f = std::pow(static_cast<double>(rope.base), -2.0 * static_cast<double>(i) / static_cast<double>(rotary));
    if (!divisors.empty()) f /= static_cast<double>(divisors[static_cast<std::size_t>(i)]);
    if (rope.scaling == RopeScaling::linear) f /= static_cast<double>(rope.factor);
    if (rope.scaling == RopeScaling::yarn) {
      const double share = yarn_share(rope, rotary, i);
      f = f * share + f / static_cast<double>(rope.factor) * (1.0 - share);
    }
    frequency[static_cast<std::size_t>(i)] = static_cast<float>(f);  // as models were trained
  }
  for (std::int64_t row = 0; row < count; ++row) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(first + row) * static_cast<double>(frequency[static_cast<std::size_t>(i)]);
      cos[row * half + i] = static_cast<float>(size * std::cos(angle));
      sin[row * half + i] = static_cast<float>(size * std::sin(angle));
    }
  }
}

}  // namespace sdx::text
