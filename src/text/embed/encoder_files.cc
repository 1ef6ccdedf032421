#include "text/embed/encoder_files.h"

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
constexpr std::array kWhole{NamePair{"embeddings.word_embeddings", "token_embd"},
                            NamePair{"embeddings.position_embeddings", "position_embd"},
                            NamePair{"embeddings.token_type_embeddings", "token_types"},
                            NamePair{"embeddings.LayerNorm", "token_embd_norm"}, NamePair{"emb_ln", "token_embd_norm"}};
// After "encoder.layer.0." or, in NomicBERT, "encoder.layers.0.".
constexpr std::array kInLayer{NamePair{"attention.self.query", "attn_q"},
                              NamePair{"attention.self.key", "attn_k"},
                              NamePair{"attention.self.value", "attn_v"},
                              NamePair{"attention.output.dense", "attn_output"},
                              NamePair{"attention.output.LayerNorm", "attn_output_norm"},
                              NamePair{"intermediate.dense", "ffn_up"},
                              NamePair{"output.dense", "ffn_down"},
                              NamePair{"output.LayerNorm", "layer_output_norm"},
                              NamePair{"attn.Wqkv", "attn_qkv"},
                              NamePair{"attn.out_proj", "attn_output"},
                              NamePair{"norm1", "attn_output_norm"},
                              NamePair{"norm2", "layer_output_norm"},
                              NamePair{"mlp.fc11", "ffn_up"},
                              NamePair{"mlp.fc12", "ffn_gate"},
                              NamePair{"mlp.fc2", "ffn_down"}};

template <class Pairs>
std::string_view second_of(const Pairs& pairs, std::string_view first) {
  for (const NamePair& p : pairs) {
    if (p.first == first) return p.second;
  }
  return {};
}

// "" for what is no weight; unknown names as they are.
std::string gguf_name_of(std::string_view name) {
  for (const std::string_view prefix : {"bert.", "roberta."}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  if (name == "embeddings.position_ids" || name.starts_with("pooler.")) return "";
  std::string end(name.substr(std::min(name.rfind('.'), name.size())));
  const std::string_view stem = name.substr(0, name.size() - end.size());
  if (end == ".gamma") end = ".weight";  // of older files
  if (end == ".beta") end = ".bias";
  if (const std::string_view whole = second_of(kWhole, stem); !whole.empty()) return std::string(whole) + end;
  for (const std::string_view prefix : {"encoder.layer.", "encoder.layers."}) {
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

void check(const EncoderConfig& c) {
  if (c.width % c.heads != 0 || (c.rope_base > 0.0F && c.width / c.heads % 2 != 0))
    fail(ErrorCode::invalid_model, "{} elements cannot be divided among {} heads", c.width, c.heads);
  if (!(c.epsilon > 0.0F) || !std::isfinite(c.epsilon) || !(c.rope_base >= 0.0F) || !std::isfinite(c.rope_base))
    fail(ErrorCode::invalid_model, "an epsilon of {} or a rotary base of {} is impossible", c.epsilon, c.rope_base);
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
  c.gated = c.architecture == "nomic-bert";
  if (c.gated) c.rope_base = number("rope.freq_base", 1000.0);
  if (meta.truth(c.architecture + ".attention.causal").value_or(false))
    fail(ErrorCode::not_implemented, "key '{}.attention.causal': encoders see all tokens", c.architecture);
  const auto pooling = meta.whole(c.architecture + ".pooling_type");
  constexpr std::array kPooling{Pooling::mean, Pooling::cls, Pooling::last};
  if (pooling && *pooling > kPooling.size())
    fail(ErrorCode::not_implemented, "key '{}.pooling_type' = {}: rerankers are not supported in GGUF files", c.architecture,
         *pooling);
  if (pooling && *pooling > 0) c.pooling = kPooling[*pooling - 1];
  check(c);
  return c;
}

// config.json of BERT and its kin, and of NomicBERT with older names of keys.
EncoderConfig read_json_config(const fs::path& folder) {
  const nlohmann::json file = read_json_file(folder / "config.json");
  ConfigObject o(file, "config.json: ");
  const std::string type = o.text("model_type").value_or("");
  if (!has_word(kEncoderTypes, type)) {
    fail(ErrorCode::not_implemented, "{} = '{}' is no encoder that is supported; those that are: {}", o.shown("model_type"), type,
         kEncoderTypes);
  }
  EncoderConfig c;
  const bool nomic = type == "nomic_bert";
  c.architecture = nomic ? "nomic-bert" : "bert";
  const auto count = [&](const char* key, const char* older, std::int64_t most) {
    const bool old = nomic && !o.has(key);
    return in_range(o.shown(key), o.integer(old ? older : key), most);
  };
  c.width = count("hidden_size", "n_embd", kMostWidth);
  c.layers = count("num_hidden_layers", "n_layer", kMostLayers);
  c.heads = count("num_attention_heads", "n_head", 1 << 16);
  c.feed_forward = count("intermediate_size", "n_inner", kMostWidth * 16);
  c.context = count("max_position_embeddings", "n_positions", kMostContext);
  c.epsilon = static_cast<float>(o.number("layer_norm_eps").value_or(o.number("layer_norm_epsilon").value_or(1e-12)));
  const std::string usual = nomic ? "silu" : "gelu";
  const std::string act = o.text("hidden_act").value_or(nomic ? o.text("activation_function").value_or(usual) : usual);
  if (act != usual && !(nomic && act == "swiglu"))
    fail(ErrorCode::not_implemented, "{} = '{}' is not supported, expected '{}'", o.shown("hidden_act"), act, usual);
  for (const char* key : {"is_decoder", "add_cross_attention", "prenorm", "causal", "rotary_emb_interleaved"})
    o.refuse(key, false);
  if (nomic) {
    c.gated = true;
    o.refuse("rotary_emb_fraction", 1.0);
    c.rope_base = static_cast<float>(o.number("rotary_emb_base").value_or(o.number("rope_theta").value_or(1000.0)));
    if (auto rope = o.object("rope_parameters")) {
      c.rope_base = static_cast<float>(rope->number("rope_theta").value_or(1000.0));
      rope->refuse("rope_type", "default");
    }
  } else {
    if (o.text("position_embedding_type").value_or("absolute") != "absolute")
      fail(ErrorCode::not_implemented, "{}: only 'absolute' is supported", o.shown("position_embedding_type"));
    // Positions begin behind that of padding.
    if (type != "bert") c.first_position = o.integer("pad_token_id").value_or(1) + 1;
    if (c.first_position < 0 || c.first_position >= c.context)
      fail(ErrorCode::invalid_model, "{} leaves no positions", o.shown("pad_token_id"));
    c.context -= c.first_position;
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
    if (!files->add_tensor(std::move(t))) fail(ErrorCode::invalid_model, "tensor '{}' occurs twice", name);
  });
  return files;
}

}  // namespace sdx::text
