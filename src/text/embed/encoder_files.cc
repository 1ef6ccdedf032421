#include "text/embed/encoder_files.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/words.h"
#include "tensor/gguf/encoder_names.h"
#include "tensor/gguf/gguf_model.h"
#include "text/model/config_object.h"
#include "text/model/network/decoder_config.h"
#include "text/model/network/safetensors_files.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;
using NamePair = std::pair<std::string_view, std::string_view>;

// Names without ".weight" and ".bias", after "bert." or "roberta.": transformers' and GGUF's.
constexpr std::array kWhole{
    NamePair{"embeddings.word_embeddings", "token_embd"}, NamePair{"embeddings.position_embeddings", "position_embd"},
    NamePair{"embeddings.token_type_embeddings", "token_types"}, NamePair{"embeddings.LayerNorm", "token_embd_norm"},
    NamePair{"emb_ln", "token_embd_norm"}, NamePair{"embeddings.tok_embeddings", "token_embd"},
    NamePair{"embeddings.norm", "token_embd_norm"}, NamePair{"final_norm", "output_norm"}, NamePair{"classifier.dense", "cls"},
    NamePair{"classifier.out_proj", "cls.output"}, NamePair{"classifier", "cls.output"}, NamePair{"head.dense", "cls"},
    NamePair{"head.norm", "cls.norm"}, NamePair{"decoder", "mlm_output"},
    // Heads for words.
    NamePair{"cls.predictions.transform.dense", "mlm"}, NamePair{"cls.predictions.transform.LayerNorm", "mlm_norm"},
    NamePair{"cls.predictions.decoder", "mlm_output"}, NamePair{"cls.predictions", "mlm_output"},
    NamePair{"lm_head.dense", "mlm"}, NamePair{"lm_head.layer_norm", "mlm_norm"}, NamePair{"lm_head.decoder", "mlm_output"},
    NamePair{"lm_head", "mlm_output"}};
// After "encoder.layer.0."; in NomicBERT, "encoder.layers.0."; in ModernBERT, "layers.0.".
constexpr std::array kInLayer{
    NamePair{"attention.self.query", "attn_q"}, NamePair{"attention.self.key", "attn_k"},
    NamePair{"attention.self.value", "attn_v"}, NamePair{"attention.output.dense", "attn_output"},
    NamePair{"attention.output.LayerNorm", "attn_output_norm"}, NamePair{"intermediate.dense", "ffn_up"},
    NamePair{"output.dense", "ffn_down"}, NamePair{"output.LayerNorm", "layer_output_norm"}, NamePair{"attn.Wqkv", "attn_qkv"},
    NamePair{"attn.out_proj", "attn_output"}, NamePair{"norm1", "attn_output_norm"}, NamePair{"norm2", "layer_output_norm"},
    NamePair{"mlp.fc11", "ffn_up"}, NamePair{"mlp.fc12", "ffn_gate"}, NamePair{"mlp.fc2", "ffn_down"},
    NamePair{"attn_norm", "attn_norm"}, NamePair{"attn.Wo", "attn_output"}, NamePair{"mlp_norm", "ffn_norm"},
    NamePair{"mlp.Wi", "ffn_up"}, NamePair{"mlp.Wo", "ffn_down"}, NamePair{"mlp.gated_layers", "ffn_up"},
    NamePair{"mlp.wo", "ffn_down"}, NamePair{"mlp.layernorm", "layer_output_norm"},
    // JinaBERT for code.
    NamePair{"attention.self.layer_norm_q", "attn_q_norm"}, NamePair{"attention.self.layer_norm_k", "attn_k_norm"},
    NamePair{"layer_norm_1", "attn_norm_2"}, NamePair{"layer_norm_2", "layer_output_norm"},
    NamePair{"mlp.up_gated_layer", "ffn_up_gate"}, NamePair{"mlp.down_layer", "ffn_down"}};

template <class Pairs>
std::string_view second_of(const Pairs& pairs, std::string_view first) {
  for (const NamePair& p : pairs) {
    if (p.first == first) return p.second;
  }
  return {};
}

// "" for what is no weight; unknown names as they are.
std::string gguf_name_of(std::string_view name) {
  for (const std::string_view prefix : {"bert.", "roberta.", "model."}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  if (name == "embeddings.position_ids") return "";
  std::string end(name.substr(std::min(name.rfind('.'), name.size())));
  const std::string_view stem = name.substr(0, name.size() - end.size());
  if (end == ".gamma") end = ".weight";  // of older files
  if (end == ".beta") end = ".bias";
  if (const std::string_view whole = second_of(kWhole, stem); !whole.empty()) return std::string(whole) + end;
  for (const std::string_view prefix : {"encoder.layer.", "encoder.layers.", "layers."}) {
    if (!stem.starts_with(prefix)) continue;
    const std::string_view rest = stem.substr(prefix.size());
    const std::size_t dot = rest.find('.');
    if (dot == 0 || dot == std::string_view::npos || rest.find_first_not_of("0123456789") != dot) continue;
    const std::string_view part = second_of(kInLayer, rest.substr(dot + 1));
    if (!part.empty()) return fmt::format("blk.{}.{}{}", rest.substr(0, dot), part, end);
  }
  return std::string(name);
}

std::int64_t in_range(std::string_view key, std::optional<std::int64_t> n, std::int64_t most) {
  if (!n) fail(ErrorCode::invalid_model, "'{}' is missing", key);
  if (*n < 1 || *n > most) fail(ErrorCode::invalid_model, "'{}' must be from 1 to {}, received {}", key, most, *n);
  return *n;
}

void check(EncoderConfig& c) {
  c.context = std::min(c.context, kMostTextTokens);
  if (c.width % c.heads != 0 || (c.rope_base > 0.0F && c.width / c.heads % 2 != 0))
    fail(ErrorCode::invalid_model, "{} elements cannot be divided among {} heads", c.width, c.heads);
  for (const float v : {c.epsilon, c.rope_base, c.local_base}) {
    if (!(v >= 0.0F) || !std::isfinite(v)) fail(ErrorCode::invalid_model, "an epsilon or a rotary base of {} is impossible", v);
  }
  if (c.epsilon == 0.0F) fail(ErrorCode::invalid_model, "an epsilon of 0 is impossible");
}

// Every how many layers, from the first on, one sees everything, of a list that says it for each.
template <class SeesAll>
std::int64_t interval_of(const std::string& key, std::int64_t layers, std::size_t listed, const SeesAll& sees_all) {
  if (listed != static_cast<std::size_t>(layers))
    fail(ErrorCode::invalid_model, "'{}' must list the kinds of {} layers", key, layers);
  std::size_t interval = 1;
  while (interval < listed && !sees_all(interval)) ++interval;
  for (std::size_t i = 0; i < listed; ++i) {
    if (sees_all(i) != (i % interval == 0))
      fail(ErrorCode::not_implemented, "'{}': layers that see everything must be equally far apart, from the first on", key);
  }
  return static_cast<std::int64_t>(interval);
}

// What does not depend on the file.
void set_architecture(EncoderConfig& c) {
  c.gated = c.architecture != "bert";
  c.gelu = c.architecture != "nomic-bert";
  c.pre_norms = c.architecture == "modern-bert";
  c.distances = c.architecture == "jina-bert-v2";
}

EncoderConfig read_gguf(const fs::path& path) {
  const std::shared_ptr<const GgufModel> file = GgufModel::open(path);
  const GgufFile& meta = file->metadata();
  EncoderConfig c;
  c.architecture = std::string(meta.text("general.architecture").value_or(""));
  if (!has_word(kEncoderArchitectures, c.architecture)) {
    fail(ErrorCode::not_implemented, "architecture '{}' is no encoder that is supported; those that are: {}", c.architecture,
         kEncoderArchitectures);
  }
  const auto count = [&](const char* name, std::int64_t most) {
    const std::string key = c.architecture + "." + name;
    const auto n = meta.whole(key);
    return in_range(key, n ? std::optional(static_cast<std::int64_t>(*n)) : std::nullopt, most);
  };
  const auto number = [&](const char* name, double otherwise) {
    return static_cast<float>(meta.number(c.architecture + "." + name).value_or(otherwise));
  };
  c.context = count("context_length", kMostContext);
  c.width = count("embedding_length", kMostWidth);
  c.layers = count("block_count", kMostLayers);
  c.feed_forward = count("feed_forward_length", kMostWidth * 16);
  c.heads = count("attention.head_count", 1 << 16);
  c.epsilon = number("attention.layer_norm_epsilon", 1e-12);
  set_architecture(c);
  if (c.architecture == "nomic-bert") c.rope_base = number("rope.freq_base", 1000.0);
  if (c.pre_norms) {
    c.rope_base = number("rope.freq_base", 160000.0);
    c.local_base = number("rope.freq_base_swa", 10000.0);
    const std::string key = c.architecture + ".attention.sliding_window";
    // 0, as without the key: there are none. The number counts both sides.
    if (meta.whole(key).value_or(0) > 0) c.window = count("attention.sliding_window", kMostContext) / 2;
    const GgufValue* pattern = meta.find(key + "_pattern");
    if (pattern != nullptr && pattern->type == GgufType::array) {
      const std::vector<double> local = meta.numbers(key + "_pattern").value_or(std::vector<double>());
      c.interval = interval_of(key + "_pattern", c.layers, local.size(), [&](std::size_t i) { return local[i] == 0; });
    } else if (pattern != nullptr) {
      c.interval = count("attention.sliding_window_pattern", kMostLayers);
    }
  }
  const std::string_view scaling = meta.text(c.architecture + ".rope.scaling.type").value_or("none");
  if (scaling != "none") fail(ErrorCode::not_implemented, "rope scaling '{}' is not supported for encoders", scaling);
  if (meta.truth(c.architecture + ".attention.causal").value_or(false))
    fail(ErrorCode::not_implemented, "key '{}.attention.causal': encoders see all tokens", c.architecture);
  const auto pooling = meta.whole(c.architecture + ".pooling_type");
  constexpr std::array kPooling{Pooling::mean, Pooling::cls, Pooling::last};
  constexpr std::uint64_t kRank = 4;
  if (pooling && *pooling > kRank)
    fail(ErrorCode::not_implemented, "key '{}.pooling_type' = {} is not supported", c.architecture, *pooling);
  c.ranks = pooling.value_or(0) == kRank;
  c.mean_scores = c.pre_norms;
  if (pooling && *pooling > 0 && !c.ranks) c.pooling = kPooling[*pooling - 1];
  check(c);
  return c;
}

void read_modern_bert(ConfigObject& o, EncoderConfig& c) {
  const auto base = [&](const char* kind, const char* older, double usual) {
    double v = o.number(older).value_or(usual);
    if (auto all = o.object("rope_parameters")) {
      if (auto rope = all->object(kind)) {
        v = rope->number("rope_theta").value_or(v);
        rope->refuse("rope_type", "default");
      }
    }
    return static_cast<float>(v);
  };
  c.rope_base = base("full_attention", "global_rope_theta", 160000.0);
  c.local_base = base("sliding_attention", "local_rope_theta", 10000.0);
  c.window = in_range(o.shown("local_attention"), o.integer("local_attention").value_or(128), kMostContext) / 2;
  c.mean_scores = o.text("classifier_pooling").value_or("cls") == "mean";
  o.refuse("classifier_activation", "gelu");
  c.interval = in_range(o.shown("global_attn_every_n_layers"), o.integer("global_attn_every_n_layers").value_or(3), kMostLayers);
  const nlohmann::json* kinds = o.take("layer_types");
  if (kinds == nullptr) return;
  c.interval = interval_of(o.shown("layer_types"), c.layers, kinds->is_array() ? kinds->size() : 0,
                           [&](std::size_t i) { return (*kinds)[i] == "full_attention"; });
}

// NomicBERT, whose older files have other names of keys.
void read_nomic_bert(ConfigObject& o, EncoderConfig& c) {
  o.refuse("rotary_emb_fraction", 1.0);
  c.rope_base = static_cast<float>(o.number("rotary_emb_base").value_or(o.number("rope_theta").value_or(1000.0)));
  if (auto rope = o.object("rope_parameters")) {
    c.rope_base = static_cast<float>(rope->number("rope_theta").value_or(1000.0));
    rope->refuse("rope_type", "default");
  }
}

void read_positions(ConfigObject& o, const std::string& type, EncoderConfig& c) {
  const std::string kind = o.text("position_embedding_type").value_or("absolute");
  if (kind != "absolute")
    fail(ErrorCode::not_implemented, "{}: only 'absolute' is supported, and 'alibi' for JinaBERT",
         o.shown("position_embedding_type"));
  // Positions begin behind that of padding.
  if (type != "bert") c.first_position = o.integer("pad_token_id").value_or(1) + 1;
  if (c.first_position < 0 || c.first_position >= c.context)
    fail(ErrorCode::invalid_model, "{} leaves no positions", o.shown("pad_token_id"));
  c.context -= c.first_position;
}

std::string activation_of(ConfigObject& o, const EncoderConfig& c) {
  if (c.pre_norms) return o.text("hidden_activation").value_or("gelu");
  if (c.distances) return o.text("feed_forward_type").value_or("original");
  const std::string usual = c.gelu ? "gelu" : "silu";
  return o.text("hidden_act").value_or(c.gated ? o.text("activation_function").value_or(usual) : usual);
}

// config.json of BERT and its kin.
EncoderConfig read_json_config(const fs::path& folder) {
  const nlohmann::json file = read_json_file(folder / "config.json");
  ConfigObject o(file, "config.json: ");
  const std::string type = o.text("model_type").value_or("");
  if (!has_word(kEncoderTypes, type)) {
    fail(ErrorCode::not_implemented, "{} = '{}' is no encoder that is supported; those that are: {}", o.shown("model_type"), type,
         kEncoderTypes);
  }
  EncoderConfig c;
  const bool nomic = type == "nomic_bert", modern = type == "modernbert";
  const bool jina = type == "bert" && o.text("position_embedding_type").value_or("") == "alibi";
  c.architecture = nomic ? "nomic-bert" : modern ? "modern-bert" : jina ? "jina-bert-v2" : "bert";
  set_architecture(c);
  const auto count = [&](const char* key, const char* older, std::int64_t most) {
    const bool old = nomic && !o.has(key);
    return in_range(o.shown(key), o.integer(old ? older : key), most);
  };
  c.width = count("hidden_size", "n_embd", kMostWidth);
  c.layers = count("num_hidden_layers", "n_layer", kMostLayers);
  c.heads = count("num_attention_heads", "n_head", 1 << 16);
  c.feed_forward = count("intermediate_size", "n_inner", kMostWidth * 16);
  c.context = count("max_position_embeddings", "n_positions", kMostContext);
  const double epsilon = modern ? o.number("norm_eps").value_or(1e-5) : o.number("layer_norm_epsilon").value_or(1e-12);
  c.epsilon = static_cast<float>(o.number("layer_norm_eps").value_or(epsilon));
  const std::string act = activation_of(o, c), expected = jina ? "geglu" : c.gelu ? "gelu" : "silu";
  const char* key = jina ? "feed_forward_type" : modern ? "hidden_activation" : "hidden_act";
  if (act != expected && !(nomic && act == "swiglu"))
    fail(ErrorCode::not_implemented, "{} = '{}' is not supported, expected '{}'", o.shown(key), act, expected);
  for (const char* key : {"is_decoder", "add_cross_attention", "prenorm", "causal", "rotary_emb_interleaved"})
    o.refuse(key, false);
  if (nomic) {
    read_nomic_bert(o, c);
  } else if (modern) {
    read_modern_bert(o, c);
  } else if (!jina) {
    read_positions(o, type, c);
  }
  check(c);
  return c;
}

}  // namespace

bool is_encoder_weights(const fs::path& path) {
  return path.extension() == ".gguf" || path.filename() == "model.safetensors" ||
         path.filename() == "model.safetensors.index.json";
}

EncoderConfig read_encoder_config(const fs::path& path) {
  return path.extension() == ".gguf" ? read_gguf(path) : read_json_config(path.parent_path());
}

std::shared_ptr<const TensorFiles> open_encoder_files(const fs::path& path, const EncoderConfig&) {
  if (path.extension() == ".gguf") return GgufModel::open(path);
  auto files = std::make_shared<TensorFiles>();
  each_safetensor(path, *files, [&](const std::string& name, const Tensor& tensor, std::size_t file) {
    std::string own = gguf_name_of(name);
    if (own.empty()) return;
    StoredTensor t = stored_tensor(name, tensor, *files, file);
    t.name = std::move(own);
    // Some files have a head's bias under two names.
    if (!files->add_tensor(std::move(t)) && !name.ends_with(".decoder.bias") && !name.ends_with("lm_head.bias") &&
        !name.ends_with("predictions.bias")) {
      fail(ErrorCode::invalid_model, "tensor '{}' occurs twice", name);
    }
  });
  return files;
}

}  // namespace sdx::text
