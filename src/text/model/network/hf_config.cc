#include "text/model/network/hf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "text/model/config_object.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The meaning of keys that are left out.
struct Defaults {
  std::string_view type;
  bool gemma = false, tied = false, biased_qkv = false, mixes_layers = false;
  std::int64_t context = 0, window = 0, head_size = 0, heads = 0, kv_heads = 0, experts = 0, experts_used = 0;
  double epsilon = 1e-6, theta = 10000.0;
};
constexpr std::array kDefaults{
    Defaults{.type = "llama", .context = 2048},
    Defaults{.type = "mistral", .context = 131072, .window = 4096, .kv_heads = 8},
    Defaults{.type = "qwen2", .biased_qkv = true, .mixes_layers = true, .context = 32768, .window = 4096, .kv_heads = 32},
    Defaults{.type = "qwen3", .mixes_layers = true, .context = 32768, .window = 4096, .head_size = 128, .kv_heads = 32},
    Defaults{.type = "gemma2",
             .gemma = true,
             .tied = true,
             .mixes_layers = true,
             .context = 8192,
             .window = 4096,
             .head_size = 256,
             .heads = 8,
             .kv_heads = 4},
    Defaults{.type = "gemma3_text",
             .gemma = true,
             .tied = true,
             .mixes_layers = true,
             .context = 131072,
             .window = 4096,
             .head_size = 256,
             .heads = 8,
             .kv_heads = 4,
             .theta = 1e6},
    Defaults{.type = "phi3", .context = 4096, .epsilon = 1e-5},
    Defaults{.type = "mixtral", .context = 131072, .kv_heads = 8, .experts = 8, .experts_used = 2, .epsilon = 1e-5, .theta = 1e6},
    Defaults{.type = "qwen2_moe",
             .biased_qkv = true,
             .mixes_layers = true,
             .context = 32768,
             .window = 4096,
             .heads = 16,
             .kv_heads = 16,
             .experts = 60,
             .experts_used = 4},
    Defaults{
        .type = "qwen3_moe", .context = 32768, .window = 4096, .heads = 32, .kv_heads = 4, .experts = 128, .experts_used = 8},
    Defaults{.type = "gpt_oss",
             .mixes_layers = true,
             .context = 131072,
             .window = 128,
             .head_size = 64,
             .heads = 64,
             .kv_heads = 8,
             .experts = 128,
             .experts_used = 4,
             .epsilon = 1e-5,
             .theta = 150000.0}};

std::string known_types() {
  std::string all = "gemma3";
  for (const Defaults& d : kDefaults) all += ", " + std::string(d.type);
  return all;
}

std::int64_t in_range(const ConfigObject& o, const char* key, std::int64_t n, std::int64_t most) {
  if (n < 1 || n > most) fail(ErrorCode::invalid_model, "{} must be from 1 to {}, received {}", o.shown(key), most, n);
  return n;
}
// `otherwise` 0: the key is required.
std::int64_t count(ConfigObject& o, const char* key, std::int64_t most, std::int64_t otherwise = 0) {
  const auto n = o.integer(key);
  if (!n && otherwise == 0) fail(ErrorCode::invalid_model, "{} is missing", o.shown(key));
  return in_range(o, key, n.value_or(otherwise), most);
}
double positive(ConfigObject& o, const char* key, double otherwise) {
  const double v = o.number(key).value_or(otherwise);
  if (!(v > 0.0 && v <= static_cast<double>(std::numeric_limits<float>::max())))
    fail(ErrorCode::invalid_model, "{} must be greater than 0, and finite, received {}", o.shown(key), v);
  return v;
}

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
  const double factor = positive(o, "factor", 0), low = positive(o, "low_freq_factor", 0),
               high = positive(o, "high_freq_factor", 0);
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
  const double factor = positive(o, "factor", static_cast<double>(context) / static_cast<double>(rope.original_context));
  rope.factor = static_cast<float>(factor);
  rope.beta_fast = static_cast<float>(positive(o, "beta_fast", 32.0));
  rope.beta_slow = static_cast<float>(positive(o, "beta_slow", 1.0));
  rope.truncate = o.flag("truncate").value_or(true);
  const auto scale = [&](double m) { return factor <= 1.0 ? 1.0 : 0.1 * m * std::log(factor) + 1.0; };
  const double all = o.number("mscale_all_dim").value_or(0.0), some = o.number("mscale").value_or(0.0);
  const double inferred = all != 0.0 && some != 0.0 ? scale(some) / scale(all) : scale(1.0);
  rope.attention_factor = static_cast<float>(positive(o, "attention_factor", inferred));
}

void longrope(ConfigObject& o, RopeConfig& rope, std::int64_t rotary, std::int64_t context) {
  rope.scaling = RopeScaling::longrope;
  rope.divisors = divisors(o, "short_factor", rotary);
  rope.long_divisors = divisors(o, "long_factor", rotary);
  const auto original = static_cast<double>(rope.original_context);
  const double factor = positive(o, "factor", static_cast<double>(context) / original);
  const double inferred = factor <= 1.0 ? 1.0 : std::sqrt(1.0 + std::log(factor) / std::log(original));
  rope.attention_factor = static_cast<float>(positive(o, "attention_factor", inferred));
  for (const char* key : {"short_mscale", "long_mscale"}) o.refuse(key, 1.0);
}

// `o`: rope_parameters, or rope_scaling. `original`: the context in training, if another part of the file states it; 0: it does
// not.
RopeConfig read_scaling(ConfigObject o, const DecoderConfig& c, double theta, std::int64_t original) {
  RopeConfig rope;
  rope.base = static_cast<float>(positive(o, "rope_theta", theta));
  const auto inside = o.integer("original_max_position_embeddings");
  rope.original_context =
      original > 0 ? original : in_range(o, "original_max_position_embeddings", inside.value_or(c.context), kMostContext);
  const std::string old = o.text("type").value_or("default");
  std::string type = o.text("rope_type").value_or(old);
  if (c.architecture == "phi3" && (type == "su" || type == "yarn")) type = "longrope";
  if (type == "default") return rope;
  if (type == "linear") {
    rope.scaling = RopeScaling::linear;
    rope.factor = static_cast<float>(positive(o, "factor", 0));
  } else if (type == "llama3") {
    llama3(o, c.rotary, rope);
  } else if (type == "yarn") {
    yarn(o, rope, c.context);
  } else if (type == "longrope") {
    longrope(o, rope, c.rotary, c.context);
  } else {
    fail(ErrorCode::not_implemented, "{} = '{}' is not supported; those that are: default, linear, llama3, yarn, longrope",
         o.shown("rope_type"), type);
  }
  return rope;
}

std::optional<ConfigObject> scaling_object(ConfigObject& o) {
  // Newer files have rope_parameters; a rope_scaling beside it counts.
  if (auto scaling = o.object("rope_scaling")) return scaling;
  return o.object("rope_parameters");
}

void read_ropes(ConfigObject& o, const Defaults& d, DecoderConfig& c) {
  const double theta = positive(o, "rope_theta", d.theta);
  const std::int64_t original = o.integer("original_max_position_embeddings")
                                    ? count(o, "original_max_position_embeddings", kMostContext)
                                : d.type == "phi3" ? 4096
                                                   : 0;
  c.rope.base = static_cast<float>(theta);
  c.rope.original_context = c.context;
  c.local_rope.base = static_cast<float>(positive(o, "rope_local_base_freq", 10000.0));
  c.local_rope.original_context = c.context;
  auto scaling = scaling_object(o);
  if (!scaling && d.type == "gpt_oss") {
    c.rope.scaling = RopeScaling::yarn;
    c.rope.factor = 32.0F, c.rope.original_context = 4096, c.rope.truncate = false;
    c.rope.attention_factor = 1.0F + 0.1F * std::log(c.rope.factor);
  }
  if (!scaling) return;
  auto everywhere = scaling->object("full_attention"), nearby = scaling->object("sliding_attention");
  if (!everywhere && !nearby) {
    c.rope = read_scaling(*scaling, c, theta, original);
    // Files that ask for it often leave the context at what it was before.
    const double stretched = static_cast<double>(c.rope.factor) * static_cast<double>(c.rope.original_context);
    if (c.rope.scaling == RopeScaling::yarn && stretched <= static_cast<double>(kMostContext))
      c.context = std::max(c.context, static_cast<std::int64_t>(stretched));
    return;
  }
  if (d.type != "gemma3_text") {
    fail(ErrorCode::not_implemented, "{}: angles that differ between kinds of layers are supported only for gemma3",
         scaling->shown("sliding_attention"));
  }
  if (everywhere) c.rope = read_scaling(*everywhere, c, theta, original);
  if (nearby) c.local_rope = read_scaling(*nearby, c, static_cast<double>(c.local_rope.base), original);
}

// The layers that see only a window.
void read_windows(ConfigObject& o, const Defaults& d, DecoderConfig& c) {
  const auto layers = static_cast<std::size_t>(c.layers);
  c.windows.assign(layers, 0);
  c.local.assign(layers, false);
  std::int64_t window = 0;
  if (!o.has("sliding_window")) {
    window = d.window;
  } else if (o.integer("sliding_window").value_or(0) != 0) {  // 0: none, as null
    window = count(o, "sliding_window", kMostContext);
  }
  const bool qwen = d.type.starts_with("qwen");
  const bool used = o.flag("use_sliding_window").value_or(false);
  const std::int64_t layers_at_edge = o.integer("max_window_layers").value_or(28);
  if (qwen && !used) window = 0;
  std::int64_t pattern = d.type == "gemma2" ? 2 : 6;
  if (d.type == "gemma3_text" && o.take("sliding_window_pattern") != nullptr)
    pattern = count(o, "sliding_window_pattern", kMostLayers);
  const json* types = o.take("layer_types");
  if (types != nullptr && (!types->is_array() || types->size() != layers)) {
    fail(ErrorCode::invalid_model, "{} must be a list of {} kinds of layers", o.shown("layer_types"), layers);
  }
  for (std::size_t i = 0; i < layers; ++i) {
    const auto at = static_cast<std::int64_t>(i);
    bool local = !d.mixes_layers || (d.gemma                 ? (at + 1) % pattern != 0
                                     : d.type == "gpt_oss"   ? at % 2 == 0
                                     : d.type == "qwen2_moe" ? at % 2 == 0 && at < layers_at_edge
                                                             : at >= layers_at_edge);
    if (d.mixes_layers && types != nullptr) {
      local = (*types)[i] == "sliding_attention";
      if (!local && (*types)[i] != "full_attention") {
        fail(ErrorCode::not_implemented, "{}: layers of the kind {} are not supported", o.shown("layer_types"),
             (*types)[i].dump());
      }
    }
    c.local[i] = local;
    if (local) c.windows[i] = window;
  }
  if (!d.mixes_layers && types != nullptr && std::any_of(types->begin(), types->end(), [](const json& t) {
        return t != "full_attention" && t != "sliding_attention";
      })) {
    fail(ErrorCode::not_implemented, "{} has a kind of layer that is not supported", o.shown("layer_types"));
  }
}

void read_sizes(ConfigObject& o, const Defaults& d, DecoderConfig& c) {
  c.context = count(o, "max_position_embeddings", kMostContext, d.context);
  c.width = count(o, "hidden_size", kMostWidth);
  c.layers = count(o, "num_hidden_layers", kMostLayers);
  c.feed_forward = count(o, "intermediate_size", kMostWidth * 16);
  c.heads = count(o, "num_attention_heads", 1 << 16, d.heads);
  const bool null_heads = o.has("num_key_value_heads") && o.take("num_key_value_heads") == nullptr;
  c.kv_heads = count(o, "num_key_value_heads", 1 << 16, d.kv_heads == 0 || null_heads ? c.heads : d.kv_heads);
  if (c.heads % c.kv_heads != 0) {
    fail(ErrorCode::invalid_model, "{}: {} heads cannot share {} key heads", o.shown("num_key_value_heads"), c.heads, c.kv_heads);
  }
  const std::int64_t share = c.width / c.heads;
  if (share < 1) fail(ErrorCode::invalid_model, "{} elements cannot be divided among {} heads", c.width, c.heads);
  c.head_size = count(o, "head_dim", kMostWidth, d.head_size > 0 ? d.head_size : share);
  c.rotary = c.head_size;
  double part = o.number("partial_rotary_factor").value_or(1.0);
  if (auto scaling = scaling_object(o)) part = scaling->number("partial_rotary_factor").value_or(part);
  if (part != 1.0 && d.type != "phi3") {
    fail(ErrorCode::not_implemented, "{} = {}: partially rotated heads are supported only for phi3",
         o.shown("partial_rotary_factor"), part);
  }
  if (!(part > 0.0 && part <= 1.0)) {
    fail(ErrorCode::invalid_model, "{} must be in (0, 1], received {}", o.shown("partial_rotary_factor"), part);
  }
  c.rotary = static_cast<std::int64_t>(static_cast<double>(c.head_size) * part);
  if (c.rotary < 2 || c.rotary % 2 != 0)
    fail(ErrorCode::invalid_model, "{} elements of a head cannot be rotated in pairs", c.rotary);
  c.epsilon = static_cast<float>(positive(o, "rms_norm_eps", d.epsilon));
}

void read_experts(ConfigObject& o, const Defaults& d, DecoderConfig& c) {
  if (d.experts == 0) return;
  ExpertConfig& e = c.experts;
  const char* key = o.has("num_local_experts") ? "num_local_experts" : "num_experts";
  e.count = count(o, key, 1 << 16, d.experts);
  e.used = count(o, "num_experts_per_tok", e.count, d.experts_used);
  const bool qwen = d.type.starts_with("qwen");
  e.feed_forward = qwen ? count(o, "moe_intermediate_size", kMostWidth * 16, d.type == "qwen2_moe" ? 1408 : 768) : c.feed_forward;
  e.normalize = !qwen || o.flag("norm_topk_prob").value_or(false);
  if (d.type != "gpt_oss") return;
  set_gpt_oss(c, static_cast<float>(positive(o, "swiglu_limit", 7.0)));
  c.experts.alpha = static_cast<float>(positive(o, "swiglu_alpha", 1.702));
}

void read_activation(ConfigObject& o, const Defaults& d) {
  const char* key = d.gemma ? "hidden_activation" : "hidden_act";
  const std::string_view usual = d.gemma ? "gelu_pytorch_tanh" : "silu";
  const std::string given = o.text(key).value_or(std::string(usual));
  if (given != usual && !(given == "swish" && !d.gemma)) {
    fail(ErrorCode::not_implemented, "{} = '{}' is not supported, expected '{}'", o.shown(key), given, usual);
  }
}

void read_gemma(ConfigObject& o, DecoderConfig& c) {
  c.gelu = c.post_norms = true;
  c.embedding_scale = std::sqrt(static_cast<float>(c.width));
  c.norm_shift = 1.0F;
  const bool second = c.architecture == "gemma2";
  const auto cap = [&](const char* key, float otherwise) {
    if (o.has(key) && o.take(key) == nullptr) return 0.0F;
    return o.take(key) == nullptr ? otherwise : static_cast<float>(positive(o, key, 0));
  };
  c.attention_softcap = cap("attn_logit_softcapping", second ? 50.0F : 0.0F);
  c.logit_softcap = cap("final_logit_softcapping", second ? 30.0F : 0.0F);
  c.attention_scale = static_cast<float>(1.0 / std::sqrt(positive(o, "query_pre_attn_scalar", 256.0)));
  o.refuse("use_bidirectional_attention", false);
}

void refuse_quantized(ConfigObject& o, const Defaults* d = nullptr) {
  auto q = o.object("quantization_config");
  if (!q) return;
  const std::string how = q->text("quant_method").value_or("?");
  if (how == "mxfp4" && d != nullptr && d->type == "gpt_oss") return;
  fail(ErrorCode::not_implemented,
       "{} = '{}' is not supported: weights must be F32, F16 or BF16. Use the original model with `sdx convert --dtype int4`, or "
       "its .gguf file",
       q->shown("quant_method"), how);
}

void read_biases(ConfigObject& o, const Defaults& d, HfNetwork& n) {
  const bool attention = o.flag("attention_bias").value_or(d.type == "gpt_oss");
  const bool all = attention && (d.type == "llama" || d.type.starts_with("qwen3") || d.type == "gpt_oss" || d.gemma);
  const bool unbiased = d.type == "qwen2_moe" && !o.flag("qkv_bias").value_or(true);
  if (all || (d.biased_qkv && !unbiased)) n.biased = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};
  if (all) n.biased.emplace_back("self_attn.o_proj");
  if (d.type == "gpt_oss") n.biased.emplace_back("mlp.router");
  if (o.flag("mlp_bias").value_or(false) && d.type == "llama") {
    for (const char* part : {"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) n.biased.emplace_back(part);
  }
}

void check_kind(ConfigObject& o) {
  const json* kinds = o.take("architectures");
  if (kinds == nullptr || !kinds->is_array() || kinds->empty()) return;
  const bool known = std::any_of(kinds->begin(), kinds->end(), [](const json& k) {
    if (!k.is_string()) return false;
    const std::string& name = k.get_ref<const std::string&>();
    return name.ends_with("ForCausalLM") || name.ends_with("ForConditionalGeneration");
  });
  if (!known)
    fail(ErrorCode::not_implemented, "{} = {}: it is not a text-generating language model", o.shown("architectures"),
         kinds->dump().substr(0, 100));
}

// The architecture's name in GGUF files, where it has one.
std::string gguf_name(std::string_view type) {
  if (type == "gemma3_text") return "gemma3";
  if (type == "qwen2_moe") return "qwen2moe";
  if (type == "qwen3_moe") return "qwen3moe";
  if (type == "gpt_oss") return "gpt-oss";
  return std::string(type);
}

HfNetwork read_text_network(ConfigObject& o, const Defaults& d) {
  HfNetwork n;
  DecoderConfig& c = n.decoder;
  c.architecture = gguf_name(d.type);
  refuse_quantized(o, &d);
  read_sizes(o, d, c);
  read_experts(o, d, c);
  read_activation(o, d);
  if (d.gemma) read_gemma(o, c);
  read_ropes(o, d, c);
  read_windows(o, d, c);
  read_biases(o, d, n);
  n.tied = o.flag("tie_word_embeddings").value_or(d.tied);
  return n;
}

}  // namespace

HfNetwork read_hf_network(const json& config) {
  ConfigObject o(config, "config.json: ");
  const std::string type = o.text("model_type").value_or("");
  check_kind(o);
  // Gemma 3 with pictures: its language model alone is used.
  const bool nested = type == "gemma3";
  const auto d = std::find_if(kDefaults.begin(), kDefaults.end(),
                              [&](const Defaults& k) { return k.type == (nested ? "gemma3_text" : type); });
  if (d == kDefaults.end()) {
    fail(ErrorCode::not_implemented, "{} = '{}' is not supported; those that are: {}", o.shown("model_type"), type,
         known_types());
  }
  if (!nested) return read_text_network(o, *d);
  refuse_quantized(o);
  auto inner = o.object("text_config");
  if (!inner) fail(ErrorCode::invalid_model, "{} is missing", o.shown("text_config"));
  HfNetwork n = read_text_network(*inner, *d);
  n.tied = o.flag("tie_word_embeddings").value_or(n.tied);
  n.prefix = "language_model.model.";
  n.head = "language_model.lm_head.weight";
  n.others = {"vision_tower.", "multi_modal_projector.", "model.vision_tower.", "model.multi_modal_projector."};
  return n;
}

HfSettings read_hf_settings(const fs::path& folder) {
  HfSettings s;
  std::error_code error;
  if (fs::exists(folder / "config.json", error)) {
    const json file = read_json_file(folder / "config.json");
    ConfigObject c(file, "config.json: ");
    s.architecture = c.text("model_type").value_or("");
    s.bos = c.token("bos_token_id");
    s.pad = c.token("pad_token_id");
    s.eos = c.tokens("eos_token_id");
    s.vocabulary = std::max<std::int64_t>(0, c.integer("vocab_size").value_or(0));
    for (const char* key : {"max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length"}) {
      if (s.context == 0) s.context = std::max<std::int64_t>(0, c.integer(key).value_or(0));
    }
  }
  if (!fs::exists(folder / "generation_config.json", error)) return s;
  const json file = read_json_file(folder / "generation_config.json");
  ConfigObject c(file, "generation_config.json: ");
  if (const auto eos = c.tokens("eos_token_id"); !eos.empty()) s.eos = eos;
  if (const auto bos = c.token("bos_token_id")) s.bos = bos;
  if (const auto pad = c.token("pad_token_id")) s.pad = pad;
  s.sampling.sample = c.flag("do_sample").value_or(false);
  s.sampling.temperature = c.floating("temperature");
  s.sampling.top_k = c.integer("top_k");
  s.sampling.top_p = c.floating("top_p");
  s.sampling.min_p = c.floating("min_p");
  s.sampling.typical_p = c.floating("typical_p");
  s.sampling.repetition_penalty = c.floating("repetition_penalty");
  return s;
}

}  // namespace sdx::text
