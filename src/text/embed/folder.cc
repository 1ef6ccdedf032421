#include "text/embed/folder.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/text/safe_name.h"
#include "tensor/element.h"
#include "tensor/gguf/gguf_names.h"
#include "tensor/json.h"
#include "tensor/safetensors.h"
#include "text/embed/encoder_network.h"
#include "text/embed/pair_template.h"
#include "text/model/network/safetensors_files.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMostJson = std::size_t{16} << 20;

// Null where there is no such file.
json read_json(const fs::path& path) {
  std::error_code none;
  if (!fs::is_regular_file(path, none)) return {};
  return parse_json(read_file(path, kMostJson), path.string());
}

// Returns the member, or `otherwise` if it is missing. Throws if it is of the wrong kind.
template <class T>
T member(const json& object, const char* name, T otherwise, const fs::path& where) {
  if (!object.is_object()) return otherwise;
  const auto at = object.find(name);
  if (at == object.end() || at->is_null()) return otherwise;
  try {
    return at->get<T>();
  } catch (const json::exception&) {
    fail(ErrorCode::invalid_argument, "{}: '{}' has the wrong type", where.string(), name);
  }
}

fs::path find_model(const fs::path& folder) {
  for (const char* usual : {"model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx"}) {
    if (fs::is_regular_file(folder / usual)) return folder / usual;
  }
  std::vector<fs::path> found;
  for (const fs::path& place : {folder, folder / "onnx"}) {
    std::error_code none;
    for (const fs::directory_entry& entry : fs::directory_iterator(place, none)) {
      if (entry.path().extension() == ".onnx") found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  if (found.empty()) {
    if (const auto listing = find_safetensors(folder)) return *listing;
    if (const auto gguf = gguf_in(folder)) return *gguf;
    fail(ErrorCode::io, "{} has no .onnx file, nor has its folder 'onnx', and neither model.safetensors nor a .gguf file",
         folder.string());
  }
  if (found.size() > 1) {
    fail(ErrorCode::invalid_argument, "{} has {} models; name the file: {}", folder.string(), found.size(),
         found.front().string());
  }
  return found.front();
}

void read_pooling(const fs::path& folder, EmbedFolder& to) {
  const fs::path where = folder / "config.json";
  const json config = read_json(where);
  // The order in which sentence-transformers concatenates the vectors.
  constexpr std::array kModes{std::pair("pooling_mode_cls_token", Pooling::cls),
                              std::pair("pooling_mode_max_tokens", Pooling::max),
                              std::pair("pooling_mode_mean_tokens", Pooling::mean),
                              std::pair("pooling_mode_mean_sqrt_len_tokens", Pooling::mean_sqrt_length),
                              std::pair("pooling_mode_weightedmean_tokens", Pooling::weighted_mean),
                              std::pair("pooling_mode_lasttoken", Pooling::last)};
  for (const auto& [key, mode] : kModes) {
    if (member(config, key, false, where)) to.pooling.push_back(mode);
  }
  if (to.pooling.empty()) {
    const std::string word = member(config, "pooling_mode", std::string("mean"), where);
    to.pooling.push_back(parse_pooling(word == "lasttoken" ? "last" : word));
  }
  to.include_prompt = member(config, "include_prompt", true, where);
}

Tensor weight_of(const SafeTensors& file, const char* name, const fs::path& where) {
  const auto at = file.tensors.find(name);
  if (at == file.tensors.end()) return {};
  const DataType type = at->second.dtype();
  if (type == DataType::float32) return at->second.aligned();
  if (type != DataType::float16 && type != DataType::bfloat16) {
    fail(ErrorCode::invalid_argument, "{}: {} is {}; expected float32, float16 or bfloat16", where.string(), name,
         at->second.type_string());
  }
  return to_float32(at->second.aligned());
}

Layer read_weights(const fs::path& folder, Layer::Kind kind) {
  const bool dense = kind == Layer::Kind::dense;
  const fs::path where = folder / "model.safetensors";
  if (!fs::is_regular_file(where)) {
    fail(ErrorCode::io, "{} is missing: weights in other formats (pytorch_model.bin) are not read", where.string());
  }
  const SafeTensors file = read_safetensors(where);
  Layer layer{.kind = kind};
  layer.weight = weight_of(file, dense ? "linear.weight" : "norm.weight", where);
  layer.bias = weight_of(file, dense ? "linear.bias" : "norm.bias", where);
  if (!layer.weight.defined() || layer.weight.rank() != (dense ? 2U : 1U) || layer.weight.size() == 0) {
    fail(ErrorCode::invalid_argument, "{} has no weight of the right shape", where.string());
  }
  if (layer.bias.defined() && layer.bias.shape() != Shape{layer.weight.dim(0)}) {
    fail(ErrorCode::invalid_argument, "{}: the bias is {}; expected {} numbers", where.string(), layer.bias.type_string(),
         layer.weight.dim(0));
  }
  const json config = read_json(folder / "config.json");
  if (dense) {
    layer.activation = parse_activation(member(config, "activation_function", std::string("Tanh"), folder / "config.json"));
  } else {
    layer.epsilon = 1e-5F;
  }
  return layer;
}

// A layer in a file of its own, with its activation.
std::optional<Layer> read_linear(const fs::path& file, Activation activation) {
  std::error_code none;
  if (!fs::is_regular_file(file, none)) return std::nullopt;
  const SafeTensors tensors = read_safetensors(file);
  Layer layer{.kind = Layer::Kind::dense, .activation = activation};
  layer.weight = weight_of(tensors, "weight", file);
  layer.bias = weight_of(tensors, "bias", file);
  if (!layer.weight.defined() || layer.weight.rank() != 2 || layer.weight.size() == 0 ||
      (layer.bias.defined() && layer.bias.shape() != Shape{layer.weight.dim(0)})) {
    fail(ErrorCode::invalid_argument, "{} must have a matrix 'weight', and perhaps a 'bias' that fits", file.string());
  }
  return layer;
}

void check_splade(const fs::path& folder) {
  const fs::path where = folder / "config.json";
  const json config = read_json(where);
  for (const auto& [key, usual] : {std::pair("pooling_strategy", "max"), std::pair("activation_function", "relu")}) {
    const std::string given = member(config, key, std::string(usual), where);
    if (given != usual) fail(ErrorCode::not_implemented, "{}: {} '{}' is not supported", where.string(), key, given);
  }
}

// The tokens whose logits are the score of a language model that ranks: "no" and "yes", or "yes" alone.
std::vector<std::int64_t> read_answers(const fs::path& folder) {
  const fs::path where = folder / "config.json";
  const json config = read_json(where);
  const std::int64_t yes = member(config, "true_token_id", std::int64_t{-1}, where);
  if (yes < 0) fail(ErrorCode::invalid_argument, "{} must have 'true_token_id', the number of a token", where.string());
  const std::int64_t no = member(config, "false_token_id", std::int64_t{-1}, where);
  return no < 0 ? std::vector{yes} : std::vector{no, yes};
}

// Newer files name other packages: the last part counts.
std::string kind_of(const json& module, const fs::path& where) {
  const std::string type = member(module, "type", std::string(), where);
  return type.substr(type.rfind('.') + 1);
}

void read_module(const std::string& kind, const fs::path& folder, EmbedFolder& to) {
  if (kind == "Transformer" || kind == "Dropout" || kind == "MLMTransformer") return;
  if (kind == "SpladePooling") return check_splade(folder);
  if (kind == "LogitScore") {
    to.answers = read_answers(folder);
  } else if (kind == "Pooling") {
    read_pooling(folder, to);
  } else if (kind == "Dense") {
    to.layers.push_back(read_weights(folder, Layer::Kind::dense));
  } else if (kind == "LayerNorm") {
    to.layers.push_back(read_weights(folder, Layer::Kind::layer_norm));
  } else if (kind == "Normalize") {
    to.layers.push_back({.kind = Layer::Kind::normalize});
  } else {
    fail(ErrorCode::invalid_argument,
         "{}: the module '{}' is not known; known: Transformer, MLMTransformer, Pooling, SpladePooling, Dense, LayerNorm, "
         "Dropout, Normalize, LogitScore",
         folder.string(), kind);
  }
}

void read_modules(const fs::path& root, const json& modules, EmbedFolder& to) {
  const fs::path where = root / "modules.json";
  if (!modules.is_array() || modules.size() > 100)
    fail(ErrorCode::invalid_argument, "{} is not a list of modules", where.string());
  for (const json& module : modules) {
    const std::string path = member(module, "path", std::string(), where);
    if (!path.empty() && !unsafe_name(path).empty()) {
      fail(ErrorCode::invalid_argument, "{}: the path '{}' leads out of the folder", where.string(), path);
    }
    read_module(kind_of(module, where), path.empty() ? root : root / path, to);
  }
  if (to.pooling.empty()) to.pooling = {Pooling::mean};
}

int read_max_length(const fs::path& root) {
  // For models without a limit, tokenizers state 10^30.
  constexpr double kMost = 10'000'000;
  const auto sensible = [&](double n) { return n >= 1 && n <= kMost ? static_cast<int>(n) : 0; };
  for (const auto& [file, key] :
       {std::pair("sentence_bert_config.json", "max_seq_length"), std::pair("tokenizer_config.json", "model_max_length"),
        std::pair("config.json", "max_position_embeddings")}) {
    const int length = sensible(member(read_json(root / file), key, 0.0, root / file));
    if (length > 0) return length;
  }
  return 0;
}

}  // namespace

EmbedFolder read_embed_folder(const fs::path& path) {
  EmbedFolder out;
  const bool file = fs::is_regular_file(path);
  if (!file && !fs::is_directory(path)) fail(ErrorCode::io, "there is no folder or file '{}'", path.string());
  out.model = file ? path : find_model(path);
  fs::path root = file ? path.parent_path() : path;
  if (file && root.filename() == "onnx" && !fs::exists(root / "tokenizer.json")) root = root.parent_path();
  if (out.model.extension() == ".gguf") root = out.model;  // which has the tokenizer
  out.root = root;
  const json modules = read_json(root / "modules.json");
  out.modules = !modules.is_null();
  if (is_encoder_weights(out.model)) {
    EncoderFacts facts = read_encoder_facts(out.model);
    out.most_length = static_cast<int>(facts.context);
    if (facts.pooling && !out.modules) out.pooling = {*facts.pooling};
    out.layers = std::move(facts.layers);
    out.pair_template = std::move(facts.pair_template);
  }
  if (out.modules) read_modules(root, modules, out);
  out.token_layer = read_linear(root / "colbert_linear.safetensors", Activation::identity);
  out.weight_layer = read_linear(root / "sparse_linear.safetensors", Activation::relu);
  out.max_length = read_max_length(root);
  if (out.most_length > 0 && (out.max_length == 0 || out.max_length > out.most_length)) out.max_length = out.most_length;
  const fs::path prompts = root / "config_sentence_transformers.json";
  const json config = read_json(prompts);
  out.prompts = member(config, "prompts", out.prompts, prompts);
  // ColBERT's, which PyLate writes.
  for (const auto& [key, name] : {std::pair("query_prefix", "query"), std::pair("document_prefix", "document")}) {
    const std::string text = member(config, key, std::string(), prompts);
    if (!text.empty()) out.prompts.emplace(name, text);
  }
  out.default_prompt = member(config, "default_prompt_name", std::string(), prompts);
  if (out.modules && (!out.answers.empty() || !out.pair_template.empty())) {
    const auto prompt = out.prompts.find(out.default_prompt);
    std::string own = pair_template_of(root, prompt == out.prompts.end() ? "" : prompt->second);
    if (!own.empty()) out.pair_template = std::move(own);
  }
  return out;
}

Classes read_classes(const fs::path& root) {
  Classes out;
  const json config = read_json(root / "config.json");
  if (!config.is_object()) return out;
  if (const auto problem = config.find("problem_type"); problem != config.end() && problem->is_string()) {
    out.problem = problem->get<std::string>();
  }
  const auto names = config.find("id2label");
  if (names == config.end() || !names->is_object()) return out;
  for (std::size_t i = 0; i < names->size(); ++i) {
    const auto name = names->find(std::to_string(i));
    if (name == names->end() || !name->is_string()) break;
    out.labels.push_back(name->get<std::string>());
  }
  return out;
}

}  // namespace sdx::text
