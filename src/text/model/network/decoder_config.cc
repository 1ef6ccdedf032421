#include "text/model/network/decoder_config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "base/words.h"

namespace sdx::text {
namespace {

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
  // One number, or an array of the same number for each layer.
  std::int64_t same_count(std::string_view name, std::int64_t most, std::int64_t otherwise) const {
    const GgufValue* v = file_.find(key(name));
    if (v == nullptr || v->type != GgufType::array) return count(name, most, otherwise);
    const std::vector<double> all = file_.numbers(key(name)).value();
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
    rope.attention_factor *= 1.0F + 0.1F * std::log(rope.factor);
    rope.beta_fast = r.positive("rope.scaling.yarn_beta_fast", rope.beta_fast);
    rope.beta_slow = r.positive("rope.scaling.yarn_beta_slow", rope.beta_slow);
  } else if (!scaling.empty() && scaling != "none") {
    fail(ErrorCode::not_implemented, "rope scaling '{}' is not supported; those that are: none, linear, yarn, longrope", scaling);
  }
  return rope;
}

void sliding_windows(const Reader& r, DecoderConfig& c, std::int64_t pattern) {
  const std::int64_t window = r.count_or_none("attention.sliding_window", kMostContext, 0);
  c.windows.assign(static_cast<std::size_t>(c.layers), 0);
  c.local.assign(static_cast<std::size_t>(c.layers), false);
  if (window == 0) return;
  for (std::int64_t i = 0; i < c.layers; ++i) {
    // Every `pattern`th layer sees everything.
    const bool local = pattern == 0 || i % pattern < pattern - 1;
    c.windows[static_cast<std::size_t>(i)] = local ? window : 0;
    c.local[static_cast<std::size_t>(i)] = local;
  }
}

void gemma(const Reader& r, DecoderConfig& c) {
  c.gelu = c.post_norms = true;
  c.embedding_scale = std::sqrt(static_cast<float>(c.width));
  c.attention_softcap = r.number("attn_logit_softcapping", c.architecture == "gemma2" ? 50.0F : 0.0F);
  c.logit_softcap = r.number("final_logit_softcapping", c.architecture == "gemma2" ? 30.0F : 0.0F);
  // The largest model of each generation divides by the width per head instead of the head's own size.
  const bool largest = c.layers == (c.architecture == "gemma2" ? 46 : 62);
  if (largest) {
    const std::int64_t per_head = c.width / c.heads;
    c.attention_scale = 1.0F / std::sqrt(static_cast<float>(per_head));
  }
  sliding_windows(r, c, r.count_or_none("attention.sliding_window_pattern", 1024, c.architecture == "gemma2" ? 2 : 6));
  if (c.architecture == "gemma3") {
    c.local_rope = RopeConfig();
    c.local_rope.base = r.positive("rope.freq_base_swa", 10000.0F);
  }
}

void read_experts(const GgufModel& file, const Reader& r, DecoderConfig& c) {
  ExpertConfig& e = c.experts;
  e.count = r.count_or_none("expert_count", 1 << 16, 0);
  const bool always = has_word("qwen2moe qwen3moe gpt-oss", c.architecture);
  if (e.count == 0 && !always) return;
  if (!always && c.architecture != "llama") {
    fail(ErrorCode::not_implemented, "key '{}': experts are not known to architecture '{}'", r.key("expert_count"),
         c.architecture);
  }
  e.count = r.count("expert_count", 1 << 16);
  e.used = r.count("expert_used_count", e.count);
  e.feed_forward = r.count_or_none("expert_feed_forward_length", kMostWidth * 16, c.feed_forward);
  e.normalize = file.metadata().truth(r.key("expert_weights_norm")).value_or(c.architecture != "qwen2moe");
  e.scale = r.positive_or_none("expert_weights_scale", 1.0F);
  if (c.architecture == "gpt-oss") set_gpt_oss(c, r.positive("swiglu_limit", 7.0F));
}

}  // namespace

void set_gpt_oss(DecoderConfig& c, float limit) {
  c.experts.alpha = 1.702F;
  c.experts.beta = 1.0F;
  c.experts.limit = limit;
  c.rope.truncate = false;
}

DecoderConfig read_decoder_config(const GgufModel& file) {
  DecoderConfig c;
  c.architecture = std::string(file.metadata().text("general.architecture").value_or(""));
  constexpr std::string_view kKnown = "llama qwen2 qwen3 gemma2 gemma3 phi3 qwen2moe qwen3moe gpt-oss";
  if (!has_word(kKnown, c.architecture)) {
    fail(ErrorCode::not_implemented, "architecture '{}' is not supported; those that are: {}", c.architecture, kKnown);
  }
  const Reader r(file.metadata(), c.architecture);
  c.context = r.count("context_length", kMostContext);
  c.width = r.count("embedding_length", kMostWidth);
  c.layers = r.count("block_count", kMostLayers);
  c.feed_forward = r.same_count("feed_forward_length", kMostWidth * 16, 0);
  if (c.feed_forward == 0 && !r.has("expert_feed_forward_length"))
    fail(ErrorCode::invalid_model, "the GGUF file lacks the key '{}'", r.key("feed_forward_length"));
  c.heads = r.same_count("attention.head_count", 1 << 16, 0);
  if (c.heads == 0) fail(ErrorCode::invalid_model, "the GGUF file lacks the key '{}'", r.key("attention.head_count"));
  c.kv_heads = r.same_count("attention.head_count_kv", 1 << 16, c.heads);
  if (c.heads % c.kv_heads != 0) fail(ErrorCode::invalid_model, "{} heads cannot share {} key heads", c.heads, c.kv_heads);
  c.head_size = r.count("attention.key_length", kMostWidth, c.width / c.heads);
  if (r.count("attention.value_length", kMostWidth, c.head_size) != c.head_size) {
    fail(ErrorCode::not_implemented, "keys and values of different lengths are not supported");
  }
  if (c.head_size < 1) fail(ErrorCode::invalid_model, "{} elements cannot be divided among {} heads", c.width, c.heads);
  c.rotary = r.count("rope.dimension_count", c.head_size, c.head_size);
  if (c.rotary % 2 != 0)
    fail(ErrorCode::invalid_model, "key '{}' must be even, received {}", r.key("rope.dimension_count"), c.rotary);
  c.epsilon = r.positive("attention.layer_norm_rms_epsilon", 1e-5F);
  // Converters permute the rows of llama's queries and keys so that neighbours are rotated together.
  c.interleaved = c.architecture == "llama";
  c.rope = read_rope(file, r, c);
  c.local_rope = c.rope;
  sliding_windows(r, c, c.architecture == "gpt-oss" ? 2 : 0);
  read_experts(file, r, c);
  if (c.architecture.starts_with("gemma")) gemma(r, c);
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
