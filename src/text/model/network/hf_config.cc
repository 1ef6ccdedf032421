#include "text/model/network/hf_config.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/words.h"
#include "text/model/config_object.h"
#include "text/model/network/hf_defaults.h"
#include "text/model/network/hf_recurrent.h"
#include "text/model/network/hf_rope.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The layers that see only a window.
void read_windows(ConfigObject& o, const HfDefaults& d, DecoderConfig& c) {
  const auto layers = static_cast<std::size_t>(c.layers);
  c.windows.assign(layers, 0);
  c.local.assign(layers, false);
  std::int64_t window = 0;
  if (!o.has("sliding_window")) {
    window = d.window;
  } else if (o.integer("sliding_window").value_or(0) != 0) {  // 0: none, as null
    window = read_count(o, "sliding_window", kMostContext);
  }
  const bool qwen = d.type.starts_with("qwen") || d.type == "smollm3";
  const bool used = o.flag("use_sliding_window").value_or(false);
  const std::int64_t layers_at_edge = o.integer("max_window_layers").value_or(28);
  if (qwen && !used) window = 0;
  const bool quarters = has_word("olmo3 cohere2 exaone4", d.type);
  std::int64_t pattern = d.type == "gemma2" ? 2 : quarters ? 4 : 6;
  const bool has_pattern = has_word("gemma3_text cohere2 exaone4", d.type) && o.take("sliding_window_pattern") != nullptr;
  const bool pattern_counts = has_pattern && (d.type != "exaone4" || window != 0) && o.take("layer_types") == nullptr;
  if (pattern_counts) pattern = read_count(o, "sliding_window_pattern", kMostLayers);
  const json* types = o.take("layer_types");
  if (types != nullptr && (!types->is_array() || types->size() != layers)) {
    fail(ErrorCode::invalid_model, "{} must be a list of {} kinds of layers", o.shown("layer_types"), layers);
  }
  for (std::size_t i = 0; i < layers; ++i) {
    const auto at = static_cast<std::int64_t>(i);
    bool local = !d.mixes_layers || (d.gemma || quarters     ? (at + 1) % pattern != 0
                                     : d.type == "smollm3"   ? c.unrotated[i]
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
  if (d.type == "cohere2" || (d.type == "exaone4" && window != 0)) rotate_windows_only(c);
  const bool told_by_tensors = c.scan.heads > 0 || d.type == "lfm2";
  if (!d.mixes_layers && !told_by_tensors && types != nullptr && std::any_of(types->begin(), types->end(), [&](const json& t) {
        return t != "full_attention" && t != "sliding_attention" && !(c.delta.heads > 0 && t == "linear_attention");
      })) {
    fail(ErrorCode::not_implemented, "{} has a kind of layer that is not supported", o.shown("layer_types"));
  }
}

void read_sizes(ConfigObject& o, const HfDefaults& d, DecoderConfig& c) {
  c.context = read_count(o, "max_position_embeddings", kMostContext, d.context);
  c.width = read_count(o, "hidden_size", kMostWidth);
  c.layers = d.type == "nemotron_h" ? listed_layers(o) : read_count(o, "num_hidden_layers", kMostLayers);
  if (d.type == "mamba2") {
    c.epsilon = static_cast<float>(read_positive(o, d.epsilon_key, d.epsilon));
    return set_no_attention(c);
  }
  c.feed_forward = read_count(o, "intermediate_size", kMostWidth * 16, d.feed_forward);
  c.heads = read_count(o, "num_attention_heads", 1 << 16, d.heads);
  const bool null_heads = o.has("num_key_value_heads") && o.take("num_key_value_heads") == nullptr;
  c.kv_heads = read_count(o, "num_key_value_heads", 1 << 16, d.kv_heads == 0 || null_heads ? c.heads : d.kv_heads);
  if (c.heads % c.kv_heads != 0) {
    fail(ErrorCode::invalid_model, "{}: {} heads cannot share {} key heads", o.shown("num_key_value_heads"), c.heads, c.kv_heads);
  }
  const std::int64_t share = c.width / c.heads;
  if (share < 1) fail(ErrorCode::invalid_model, "{} elements cannot be divided among {} heads", c.width, c.heads);
  c.head_size = read_count(o, "head_dim", kMostWidth, d.head_size > 0 ? d.head_size : share);
  c.rotary = c.head_size;
  double part = o.number("partial_rotary_factor").value_or(d.rotary);
  if (auto scaling = scaling_object(o)) part = scaling->number("partial_rotary_factor").value_or(part);
  if (part != 1.0 && !has_word("phi3 nemotron glm4 glm4_moe qwen3_next qwen3_5_text qwen3_5_moe_text", d.type)) {
    fail(ErrorCode::not_implemented, "{} = {}: partially rotated heads are not supported for this model_type",
         o.shown("partial_rotary_factor"), part);
  }
  if (!(part > 0.0 && part <= 1.0)) {
    fail(ErrorCode::invalid_model, "{} must be in (0, 1], received {}", o.shown("partial_rotary_factor"), part);
  }
  c.rotary = static_cast<std::int64_t>(static_cast<double>(c.head_size) * part);
  if (c.rotary < 2 || c.rotary % 2 != 0)
    fail(ErrorCode::invalid_model, "{} elements of a head cannot be rotated in pairs", c.rotary);
  c.epsilon = static_cast<float>(read_positive(o, d.epsilon_key, d.epsilon));
}

// DeepSeek V2: shares are never divided by their sum, and groups count only where this is said.
void read_old_choice(ConfigObject& o, ExpertConfig& e) {
  o.refuse("norm_topk_prob", false);
  const std::string how = o.text("topk_method").value_or("greedy");
  if (how == "greedy") {
    e.groups = e.groups_used = 1;
  } else if (how != "group_limited_greedy") {
    fail(ErrorCode::not_implemented, "{} = '{}' is not supported", o.shown("topk_method"), how);
  }
}

// DeepSeek's attention, whose heads have parts of their own sizes.
void read_latent(ConfigObject& o, DecoderConfig& c) {
  LatentConfig& l = c.latent;
  l.size = read_count(o, "kv_lora_rank", kMostWidth, 512);
  const bool none = o.has("q_lora_rank") && o.take("q_lora_rank") == nullptr;
  l.queries = none ? 0 : read_count(o, "q_lora_rank", kMostWidth, 1536);
  l.plain = read_count(o, "qk_nope_head_dim", kMostWidth, 128);
  l.value = read_count(o, "v_head_dim", kMostWidth, 128);
  c.rotary = read_count(o, "qk_rope_head_dim", kMostWidth, 64);
  if (c.rotary % 2 != 0) fail(ErrorCode::invalid_model, "{} elements of a head cannot be rotated in pairs", c.rotary);
  c.interleaved = o.flag("rope_interleave").value_or(true);
  for (const char* key : {"attention_bias", "mlp_bias"}) o.refuse(key, false);
}

// Once angles are known: those that are stretched make scores larger.
void finish_latent(ConfigObject& o, DecoderConfig& c) {
  double growth = 0.0;
  if (auto scaling = scaling_object(o)) growth = 0.1 * scaling->number("mscale_all_dim").value_or(0.0);
  set_latent(c, growth);
}

void read_experts(ConfigObject& o, const HfDefaults& d, DecoderConfig& c) {
  if (d.experts == 0 || (d.type == "granitemoehybrid" && o.integer("num_local_experts") == 0)) return;
  ExpertConfig& e = c.experts;
  const bool shared =
      d.type == "glm4_moe" || d.latent;  // one or more experts that all tokens go through, beside those that are chosen
  const char* key = shared ? "n_routed_experts" : o.has("num_local_experts") ? "num_local_experts" : "num_experts";
  e.count = read_count(o, key, 1 << 16, d.experts);
  e.used = read_count(o, "num_experts_per_tok", e.count, d.experts_used);
  const bool qwen = d.type.starts_with("qwen");
  const std::int64_t usual = d.type == "qwen2_moe" ? 1408 : d.type == "qwen3_moe" ? 768 : 512;
  e.feed_forward = qwen ? read_count(o, "moe_intermediate_size", kMostWidth * 16, usual) : c.feed_forward;
  // Those of Qwen3.5 always are.
  e.normalize = !qwen || d.type == "qwen3_5_moe_text" || o.flag("norm_topk_prob").value_or(d.type == "qwen3_next");
  if (shared) {
    e.feed_forward = read_count(o, "moe_intermediate_size", kMostWidth * 16, d.expert_feed_forward);
    e.normalize = o.flag("norm_topk_prob").value_or(d.sigmoid);
    e.scale = static_cast<float>(read_positive(o, "routed_scaling_factor", d.expert_scale));
    e.sigmoid = d.sigmoid;
    e.groups = read_count(o, "n_group", e.count, d.groups);
    e.groups_used = read_count(o, "topk_group", e.groups, d.groups_used);
    if (d.type == "deepseek_v2") read_old_choice(o, e);
    const auto spare = o.integer("num_nextn_predict_layers");
    if (spare.value_or(0) != 0) c.spare_layers = check_range(o, "num_nextn_predict_layers", *spare, kMostLayers);
  }
  if (d.type != "gpt_oss") return;
  set_gpt_oss(c, static_cast<float>(read_positive(o, "swiglu_limit", 7.0)));
  c.experts.alpha = static_cast<float>(read_positive(o, "swiglu_alpha", 1.702));
}

void read_activation(ConfigObject& o, const HfDefaults& d) {
  const char* key = d.gemma && d.type != "gemma" ? "hidden_activation" : d.type == "nemotron_h" ? "mlp_hidden_act" : "hidden_act";
  const std::string_view usual = d.gemma ? "gelu_pytorch_tanh" : d.activation != nullptr ? d.activation : "silu";
  const std::string given = o.text(key).value_or(std::string(usual));
  // Files of the first Gemma say "gelu" and mean its tanh.
  if (given != usual && !(given == "swish" && usual == "silu") && !(given == "gelu" && d.type == "gemma")) {
    fail(ErrorCode::not_implemented, "{} = '{}' is not supported, expected '{}'", o.shown(key), given, usual);
  }
}

void read_gemma(ConfigObject& o, DecoderConfig& c) {
  c.embedding_scale = std::sqrt(static_cast<float>(c.width));
  c.norm_shift = 1.0F;
  if (c.bidirectional) {
    o.take("use_bidirectional_attention");
  } else {
    o.refuse("use_bidirectional_attention", false);
  }
  if (c.architecture == "gemma") return;
  const bool second = c.architecture == "gemma2";
  const auto cap = [&](const char* key, float otherwise) {
    if (o.has(key) && o.take(key) == nullptr) return 0.0F;
    return o.take(key) == nullptr ? otherwise : static_cast<float>(read_positive(o, key, 0));
  };
  c.attention_softcap = cap("attn_logit_softcapping", second ? 50.0F : 0.0F);
  c.logit_softcap = cap("final_logit_softcapping", second ? 30.0F : 0.0F);
  c.attention_scale = static_cast<float>(1.0 / std::sqrt(read_positive(o, "query_pre_attn_scalar", 256.0)));
}

// Factors of Granite and Cohere.
void read_scales(ConfigObject& o, const HfDefaults& d, DecoderConfig& c) {
  if (d.type.starts_with("granite")) {
    c.embedding_scale = static_cast<float>(read_positive(o, "embedding_multiplier", 1.0));
    c.residual_scale = static_cast<float>(read_positive(o, "residual_multiplier", 1.0));
    c.logit_scale = static_cast<float>(1.0 / read_positive(o, "logits_scaling", 1.0));
    c.attention_scale = static_cast<float>(read_positive(o, "attention_multiplier", 1.0));
  }
  if (d.type.starts_with("cohere")) c.logit_scale = static_cast<float>(read_positive(o, "logit_scale", 0.0625));
}

// SmolLM3's layers whose heads are not rotated.
void read_unrotated(ConfigObject& o, DecoderConfig& c) {
  leave_unrotated(c, o.has("no_rope_layer_interval") ? read_count(o, "no_rope_layer_interval", kMostLayers) : 4);
  const json* given = o.take("no_rope_layers");  // 1: rotated
  if (given == nullptr) return;
  const auto layers = static_cast<std::size_t>(c.layers);
  const auto whole = [](const json& v) { return v.is_number_integer(); };
  if (!given->is_array() || given->size() < layers || !std::all_of(given->begin(), given->end(), whole)) {
    fail(ErrorCode::invalid_model, "{} must be a list of {} numbers", o.shown("no_rope_layers"), layers);
  }
  for (std::size_t i = 0; i < layers; ++i) c.unrotated[i] = (*given)[i] == 0;
}

void refuse_quantized(ConfigObject& o, const HfDefaults* d = nullptr) {
  auto q = o.object("quantization_config");
  if (!q) return;
  const std::string how = q->text("quant_method").value_or("?");
  if (how == "mxfp4" && d != nullptr && d->type == "gpt_oss") return;
  fail(ErrorCode::not_implemented,
       "{} = '{}' is not supported: weights must be F32, F16 or BF16. Use the original model with `sdx convert --dtype int4`, or "
       "its .gguf file",
       q->shown("quant_method"), how);
}

void read_biases(ConfigObject& o, const HfDefaults& d, HfNetwork& n) {
  constexpr std::string_view kBiased =
      "llama qwen3 qwen3_moe gpt_oss gemma gemma2 gemma3_text granite granitemoe granitemoeshared smollm3 ernie4_5 seed_oss "
      "olmo2 olmo3 cohere "
      "cohere2 starcoder2 nemotron glm4 glm4_moe hunyuan_v1_dense arcee qwen3_next qwen3_5_text qwen3_5_moe_text";
  const bool attention = o.flag(d.attention_bias).value_or(d.biased) && has_word(kBiased, d.type);
  const bool unbiased = d.type == "qwen2_moe" && !o.flag("qkv_bias").value_or(true);
  if (attention || (d.biased_qkv && !unbiased)) n.biased = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};
  const bool output =
      d.type == "seed_oss" ? o.flag("attention_out_bias").value_or(false) : attention && !d.type.starts_with("glm4");
  if (output) n.biased.emplace_back("self_attn.o_proj");
  if (d.type == "gpt_oss") n.biased.emplace_back("mlp.router");
  if (!d.has_mlp_bias || !o.flag(d.mlp_bias).value_or(d.biased && std::string_view(d.mlp_bias) == d.attention_bias)) return;
  if (d.type == "starcoder2") {
    n.biased.insert(n.biased.end(), {"mlp.c_fc", "mlp.c_proj"});
    return;
  }
  if (n.decoder.gated) n.biased.emplace_back("mlp.gate_proj");
  n.biased.insert(n.biased.end(), {"mlp.up_proj", "mlp.down_proj"});
}

void check_kind(ConfigObject& o, bool embeds) {
  const json* kinds = o.take("architectures");
  if (kinds == nullptr || !kinds->is_array() || kinds->empty()) return;
  const bool known = std::any_of(kinds->begin(), kinds->end(), [embeds](const json& k) {
    if (!k.is_string()) return false;
    const std::string& name = k.get_ref<const std::string&>();
    return name.ends_with("ForCausalLM") || name.ends_with("ForConditionalGeneration") ||
           (embeds && (name.ends_with("Model") || name.ends_with("ForSequenceClassification")));
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
  if (type == "qwen3_next") return "qwen3next";
  if (type == "qwen3_5_text") return "qwen35";
  if (type == "qwen3_5_moe_text") return "qwen35moe";
  if (type == "granitemoehybrid") return "granitehybrid";
  if (type == "falcon_h1") return "falcon-h1";
  if (type == "gpt_oss") return "gpt-oss";
  if (type == "glm4_moe") return "glm4moe";
  if (type == "deepseek_v2" || type == "deepseek_v3") return "deepseek2";
  if (type == "olmo3") return "olmo2";
  if (type == "cohere") return "command-r";
  if (type == "granitemoeshared") return "granitemoe";
  if (type == "hunyuan_v1_dense") return "hunyuan-dense";
  if (type == "ministral3") return "mistral3";
  return std::string(type);
}

const HfDefaults& defaults_of(ConfigObject& o, const std::string& type) {
  if (const HfDefaults* d = find_hf_defaults(type)) return *d;
  fail(ErrorCode::not_implemented, "{} = '{}' is not supported; those that are: {}", o.shown("model_type"), type, hf_types());
}

HfNetwork read_text_network(ConfigObject& o, const HfDefaults& d, bool embeds = false) {
  HfNetwork n;
  DecoderConfig& c = n.decoder;
  c.bidirectional = embeds && o.flag("use_bidirectional_attention").value_or(false);
  c.architecture = gguf_name(d.type);
  set_architecture(c);
  c.two_ropes = c.two_ropes && d.mixes_layers;  // Olmo 2 and 3 are one architecture in GGUF files
  refuse_quantized(o, &d);
  read_sizes(o, d, c);
  if (d.latent) read_latent(o, c);
  read_experts(o, d, c);
  read_activation(o, d);
  if (d.gemma) read_gemma(o, c);
  if (d.delta) {
    read_delta(o, c.delta);
    n.others.emplace_back("mtp.");  // for drafts of further tokens
  }
  if (d.scan) read_scan(o, d, n);
  if (d.type == "lfm2") read_short_convolution(o, c);
  if (d.type == "nemotron" || d.delta) c.norm_shift = 1.0F;
  read_scales(o, d, c);
  if (d.type == "smollm3") read_unrotated(o, c);
  read_ropes(o, d, c);
  if (d.latent) finish_latent(o, c);
  read_windows(o, d, c);
  read_biases(o, d, n);
  const bool tied = d.type == "lfm2" ? o.flag("tie_embedding").value_or(d.tied) : d.tied;
  n.tied = o.flag("tie_word_embeddings").value_or(tied);
  return n;
}

}  // namespace

HfNetwork read_hf_network(const json& config, bool embeds) {
  ConfigObject o(config, "config.json: ");
  const std::string type = o.text("model_type").value_or("");
  check_kind(o, embeds);
  // With pictures: the language model alone is used.
  const bool qwen = has_word("qwen3_5 qwen3_5_moe", type), nested = qwen || has_word("gemma3 mistral3", type);
  if (!nested) return read_text_network(o, defaults_of(o, type), embeds);
  refuse_quantized(o);
  auto inner = o.object("text_config");
  if (!inner) fail(ErrorCode::invalid_model, "{} is missing", o.shown("text_config"));
  const std::string usual = type == "mistral3" ? "mistral" : type + "_text";
  HfNetwork n = read_text_network(*inner, defaults_of(*inner, inner->text("model_type").value_or(usual)));
  n.tied = o.flag("tie_word_embeddings").value_or(n.tied);
  if (qwen) {
    n.prefix = "model.language_model.";
    n.others.emplace_back("model.visual.");
    return n;
  }
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
