#include "text/model/network/hf_rope.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "base/error.h"
#include "base/words.h"

namespace sdx::text {
namespace {

using nlohmann::json;

std::vector<float> divisors(ConfigObject& o, const char* key, std::int64_t rotary) {
  const json* list = o.take(key);
  const auto wrong = [&] {
    fail(ErrorCode::invalid_model, "{} must be a list of {} numbers greater than 0", o.shown(key), rotary / 2);
  };
  if (list == nullptr || !list->is_array() || list->size() != static_cast<std::size_t>(rotary / 2)) wrong();
  std::vector<float> values;
  for (const json& v : *list) {
    values.push_back(v.is_number() ? v.get<float>() : 0.0F);
    if (!(values.back() > 0.0F) || !std::isfinite(values.back())) wrong();
  }
  return values;
}

// Llama 3.1: long waves are stretched, short ones kept, those between mixed.
void llama3(ConfigObject& o, std::int64_t rotary, RopeConfig& rope) {
  const double factor = read_positive(o, "factor", 0), low = read_positive(o, "low_freq_factor", 0),
               high = read_positive(o, "high_freq_factor", 0);
  if (!(high > low)) fail(ErrorCode::invalid_model, "{} must be greater than low_freq_factor", o.shown("high_freq_factor"));
  const auto original = static_cast<double>(rope.original_context);
  for (std::int64_t i = 0; i < rotary / 2; ++i) {
    const double wave = 2 * std::numbers::pi *
                        std::pow(static_cast<double>(rope.base), 2.0 * static_cast<double>(i) / static_cast<double>(rotary));
    double kept = (original / wave - low) / (high - low);
    kept = wave < original / high ? 1.0 : wave > original / low ? 0.0 : kept;
    rope.divisors.push_back(static_cast<float>(1.0 / (kept + (1.0 - kept) / factor)));
  }
}

void yarn(ConfigObject& o, RopeConfig& rope, std::int64_t context) {
  rope.scaling = RopeScaling::yarn;
  const double factor = read_positive(o, "factor", static_cast<double>(context) / static_cast<double>(rope.original_context));
  rope.factor = static_cast<float>(factor);
  rope.beta_fast = static_cast<float>(read_positive(o, "beta_fast", 32.0));
  rope.beta_slow = static_cast<float>(read_positive(o, "beta_slow", 1.0));
  rope.truncate = o.flag("truncate").value_or(true);
  const auto scale = [&](double m) { return factor <= 1.0 ? 1.0 : 0.1 * m * std::log(factor) + 1.0; };
  const double all = o.number("mscale_all_dim").value_or(0.0), some = o.number("mscale").value_or(0.0);
  const double inferred = all != 0.0 && some != 0.0 ? scale(some) / scale(all) : scale(1.0);
  rope.attention_factor = static_cast<float>(read_positive(o, "attention_factor", inferred));
}

void longrope(ConfigObject& o, RopeConfig& rope, std::int64_t rotary, std::int64_t context) {
  rope.scaling = RopeScaling::longrope;
  rope.divisors = divisors(o, "short_factor", rotary);
  rope.long_divisors = divisors(o, "long_factor", rotary);
  const auto original = static_cast<double>(rope.original_context);
  const double factor = read_positive(o, "factor", static_cast<double>(context) / original);
  const double inferred = factor <= 1.0 ? 1.0 : std::sqrt(1.0 + std::log(factor) / std::log(original));
  rope.attention_factor = static_cast<float>(read_positive(o, "attention_factor", inferred));
  for (const char* key : {"short_mscale", "long_mscale"}) o.refuse(key, 1.0);
}

// `o`: rope_parameters, or rope_scaling. `original`: the context in training, if another part of the file states it; 0: it does
// not.
RopeConfig read_scaling(ConfigObject o, const DecoderConfig& c, double theta, std::int64_t original) {
  RopeConfig rope;
  rope.base = static_cast<float>(read_positive(o, "rope_theta", theta));
  const auto inside = o.integer("original_max_position_embeddings");
  rope.original_context =
      original > 0 ? original : check_range(o, "original_max_position_embeddings", inside.value_or(c.context), kMostContext);
  const std::string old = o.text("type").value_or("default");
  std::string type = o.text("rope_type").value_or(old);
  if (c.architecture == "phi3" && (type == "su" || type == "yarn")) type = "longrope";
  if (type == "default") return rope;
  if (type == "linear") {
    rope.scaling = RopeScaling::linear;
    rope.factor = static_cast<float>(read_positive(o, "factor", 0));
  } else if (type == "llama3") {
    llama3(o, c.rotary, rope);
  } else if (type == "yarn") {
    yarn(o, rope, c.context);
  } else if (type == "longrope") {
    longrope(o, rope, c.rotary, c.context);
  } else if (type == "dynamic" && c.architecture == "hunyuan-dense" && o.has("alpha")) {
    // In spite of the name nothing depends on the length here.
    const auto size = static_cast<double>(c.head_size);
    rope.base =
        static_cast<float>(static_cast<double>(rope.base) * std::pow(read_positive(o, "alpha", 1.0), size / (size - 2.0)));
  } else {
    fail(ErrorCode::not_implemented, "{} = '{}' is not supported; those that are: default, linear, llama3, yarn, longrope",
         o.shown("rope_type"), type);
  }
  return rope;
}

}  // namespace

std::optional<ConfigObject> scaling_object(ConfigObject& o) {
  // Newer files have rope_parameters; a rope_scaling beside it counts.
  if (auto scaling = o.object("rope_scaling")) return scaling;
  return o.object("rope_parameters");
}

void read_ropes(ConfigObject& o, const HfDefaults& d, DecoderConfig& c) {
  const double theta = read_positive(o, "rope_theta", d.theta);
  const std::int64_t original = o.integer("original_max_position_embeddings")
                                    ? read_count(o, "original_max_position_embeddings", kMostContext)
                                : d.type == "phi3" ? 4096
                                                   : 0;
  c.rope.base = static_cast<float>(theta);
  c.rope.original_context = c.context;
  c.local_rope.base = static_cast<float>(read_positive(o, "rope_local_base_freq", d.type == "olmo3" ? theta : 10000.0));
  c.local_rope.original_context = c.context;
  auto scaling = scaling_object(o);
  if (!scaling && d.type == "gpt_oss") {
    c.rope.scaling = RopeScaling::yarn;
    c.rope.factor = 32.0F, c.rope.original_context = 4096, c.rope.truncate = false;
    c.rope.attention_factor = 1.0F + 0.1F * std::log(c.rope.factor);
  }
  if (!scaling && d.type == "ministral3") {
    c.rope.scaling = RopeScaling::yarn;
    c.rope.factor = 16.0F, c.rope.original_context = 16384;
    c.query_growth = 0.1F;
  }
  if (!scaling) return;
  if (d.type == "ministral3") c.query_growth = static_cast<float>(scaling->number("llama_4_scaling_beta").value_or(0.0));
  auto everywhere = scaling->object("full_attention"), nearby = scaling->object("sliding_attention");
  if (!everywhere && !nearby) {
    if (d.type == "olmo3" && !o.has("rope_scaling"))
      fail(ErrorCode::not_implemented, "{} is missing", scaling->shown("full_attention"));
    c.rope = read_scaling(*scaling, c, theta, original);
    // Files that ask for it often leave the context at what it was before.
    const double stretched = static_cast<double>(c.rope.factor) * static_cast<double>(c.rope.original_context);
    if (c.rope.scaling == RopeScaling::yarn && stretched <= static_cast<double>(kMostContext))
      c.context = std::max(c.context, static_cast<std::int64_t>(stretched));
    return;
  }
  if (!c.two_ropes) {
    fail(ErrorCode::not_implemented, "{}: angles that differ between kinds of layers are supported only for gemma3 and olmo3",
         scaling->shown("sliding_attention"));
  }
  if (everywhere) c.rope = read_scaling(*everywhere, c, theta, original);
  if (nearby) c.local_rope = read_scaling(*nearby, c, static_cast<double>(c.local_rope.base), original);
}

}  // namespace sdx::text
