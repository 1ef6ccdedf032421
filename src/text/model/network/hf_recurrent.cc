#include "text/model/network/hf_recurrent.h"

#include <cmath>

#include "base/error.h"

namespace sdx::text {
namespace {

using nlohmann::json;

float factor(ConfigObject& o, const char* key) { return static_cast<float>(read_positive(o, key, 1.0)); }

// Empty: there are none.
std::vector<float> factors(ConfigObject& o, const char* key, std::size_t count) {
  const json* list = o.take(key);
  if (list == nullptr || list->is_null()) return {};
  std::vector<float> values;
  for (const json& v : *list) values.push_back(v.is_number() ? v.get<float>() : 0.0F);
  if (!list->is_array() || values.size() != count ||
      std::any_of(values.begin(), values.end(), [](float v) { return !(v > 0.0F); }))
    fail(ErrorCode::invalid_model, "{} must be a list of {} numbers greater than 0", o.shown(key), count);
  return values;
}

// [least, most]; infinity is an object or a word.
void read_steps(ConfigObject& o, ScanConfig& s) {
  const json* limits = o.take("time_step_limit");
  if (limits == nullptr || limits->is_null()) return;
  if (!limits->is_array() || limits->size() != 2)
    fail(ErrorCode::invalid_model, "{} must be a list of two numbers", o.shown("time_step_limit"));
  const auto set = [](const json& v, float& to) {
    if (v.is_number()) to = v.get<float>();
  };
  set((*limits)[0], s.least_step);
  set((*limits)[1], s.most_step);
  if (!(s.least_step >= 0.0F && s.least_step < s.most_step))
    fail(ErrorCode::invalid_model, "{}: time steps cannot be from {} to {}", o.shown("time_step_limit"), s.least_step,
         s.most_step);
}

// Factors of Falcon-H1, which its GGUF files have in their weights. Those of the input of attention act on queries and on keys.
void read_falcon(ConfigObject& o, DecoderConfig& c) {
  c.embedding_scale = factor(o, "embedding_multiplier");
  c.logit_scale = factor(o, "lm_head_multiplier");
  const float in = factor(o, "attention_in_multiplier");
  c.attention_scale = factor(o, "key_multiplier") * in * in / std::sqrt(static_cast<float>(c.head_size));
  c.attention_out_scale = in * factor(o, "attention_out_multiplier");
  const std::vector<float> fed = factors(o, "mlp_multipliers", 2);
  if (!fed.empty()) c.gate_scale = fed[0], c.down_scale = fed[1];
  const float all = factor(o, "ssm_in_multiplier");
  c.scan.factors = factors(o, "ssm_multipliers", 5);
  if (c.scan.factors.empty()) c.scan.factors.assign(5, 1.0F);
  for (float& f : c.scan.factors) f *= all;
  c.scan.out_scale = factor(o, "ssm_out_multiplier");
  c.scan.norm_first = o.flag("mamba_norm_before_gate").value_or(true);
}

}  // namespace

void read_delta(ConfigObject& o, DeltaConfig& d) {
  d.key_heads = read_count(o, "linear_num_key_heads", 1 << 16, 16);
  d.heads = read_count(o, "linear_num_value_heads", 1 << 16, 32);
  d.key_size = read_count(o, "linear_key_head_dim", kMostWidth, 128);
  d.value_size = read_count(o, "linear_value_head_dim", kMostWidth, 128);
  d.log_decays = true;
  check_delta(d);
}

void read_scan(ConfigObject& o, const HfDefaults& d, HfNetwork& n) {
  DecoderConfig& c = n.decoder;
  ScanConfig& s = c.scan;
  const bool mamba = d.type == "mamba2", nemotron = d.type == "nemotron_h", falcon = d.type == "falcon_h1";
  s.heads = read_count(o, mamba ? "num_heads" : nemotron ? "mamba_num_heads" : "mamba_n_heads", 1 << 16, 128);
  s.groups = read_count(o, mamba || nemotron ? "n_groups" : "mamba_n_groups", s.heads, mamba || nemotron ? 8 : 1);
  const std::int64_t usual = falcon ? 256 : d.type == "granitemoehybrid" ? 256 : 128;
  s.state_size = read_count(o, mamba ? "state_size" : nemotron ? "ssm_state_size" : "mamba_d_state", kMostWidth, usual);
  const char* size = mamba ? "head_dim" : nemotron ? "mamba_head_dim" : "mamba_d_head";
  if (o.integer(size)) {
    s.head_size = read_count(o, size, kMostWidth);
  } else if (mamba || nemotron) {
    s.head_size = 64;
  } else {  // "auto"
    const std::int64_t inner =
        falcon ? read_count(o, "mamba_d_ssm", kMostWidth, 1024) : c.width * read_count(o, "mamba_expand", 64, 2);
    s.head_size = inner / s.heads;
  }
  s.log_decays = true;
  read_steps(o, s);
  if (nemotron) {  // its limits are others
    s.least_step = static_cast<float>(read_positive(o, "time_step_min", 0.001));
    s.most_step = std::numeric_limits<float>::infinity();
    leave_unrotated(c, 1);
  }
  check_scan(s);
  if (falcon) read_falcon(o, c);
  for (const char* key : {"mamba_proj_bias", "use_bias", "attention_bias", "mlp_bias", "projectors_bias"}) o.refuse(key, false);
  if (mamba || nemotron) n.prefix = "backbone.";
  if (d.type != "granitemoehybrid") return;
  if (o.text("position_embedding_type").value_or("") != "rope") leave_unrotated(c, 1);
  // Without experts, the part that all tokens go through is all there is.
  if (c.experts.count == 0) c.feed_forward = read_count(o, "shared_intermediate_size", kMostWidth * 16, 1024);
}

void read_short_convolution(ConfigObject& o, DecoderConfig& c) {
  c.feed_forward = read_count(o, "block_ff_dim", kMostWidth * 16, c.feed_forward);
  o.refuse("conv_bias", false);
  if (!o.flag("block_auto_adjust_ff_dim").value_or(true)) return;
  const std::int64_t multiple = read_count(o, "block_multiple_of", kMostWidth, 256);
  const std::int64_t two_thirds = 2 * c.feed_forward / 3;  // rounded down before the multiplier, as transformers does
  const double size = std::floor(static_cast<double>(two_thirds) * read_positive(o, "block_ffn_dim_multiplier", 1.0));
  if (!(size >= 1.0 && size <= static_cast<double>(kMostWidth * 16)))
    fail(ErrorCode::invalid_model, "{} makes feed-forward parts of {} elements", o.shown("block_ffn_dim_multiplier"), size);
  c.feed_forward = (static_cast<std::int64_t>(size) + multiple - 1) / multiple * multiple;
}

std::int64_t listed_layers(ConfigObject& o) {
  for (const char* key : {"layers_block_type", "layer_types"}) {
    if (const json* list = o.take(key); list != nullptr && list->is_array())
      return check_range(o, key, static_cast<std::int64_t>(list->size()), kMostLayers);
  }
  const auto pattern = o.text("hybrid_override_pattern");
  if (pattern) return check_range(o, "hybrid_override_pattern", static_cast<std::int64_t>(pattern->size()), kMostLayers);
  return read_count(o, "num_hidden_layers", kMostLayers);
}

}  // namespace sdx::text
