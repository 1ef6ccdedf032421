#include "text/embed/language_encoder.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "session/open.h"
#include "tensor/gguf/encoder_names.h"
#include "tensor/gguf/gguf_model.h"
#include "text/model/accuracy.h"
#include "text/model/config_object.h"
#include "text/model/network/decoder_graph.h"
#include "text/model/network/hf_config.h"
#include "text/model/network/hf_defaults.h"
#include "text/model/network/hf_tensors.h"
#include "text/model/network/safetensors_files.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;

struct LanguageNetwork {
  DecoderConfig config;
  std::shared_ptr<const TensorFiles> files;
  std::shared_ptr<const GgufModel> gguf;  // null for folders
  std::string name;                       // the architecture's, in the file
};

std::string model_type(const fs::path& folder) {
  const nlohmann::json file = read_json_file(folder / "config.json");
  ConfigObject o(file, "config.json: ");
  return o.text("model_type").value_or("");
}

// Folders of networks without an output matrix leave out the first part of names.
bool has_short_names(const fs::path& listing) {
  TensorFiles files;
  bool found = false;
  each_safetensor(listing, files, [&](const std::string& name, const Tensor&, std::size_t) { found |= name == "norm.weight"; });
  return found;
}

LanguageNetwork open_network(const fs::path& path) {
  LanguageNetwork n;
  if (path.extension() == ".gguf") {
    n.files = n.gguf = GgufModel::open(path);
    n.name = std::string(n.gguf->metadata().text("general.architecture").value_or(""));
    n.config = read_decoder_config(*n.gguf, true);
    n.config.context = std::min(n.config.context, kMostTextTokens);
    return n;
  }
  const fs::path folder = path.parent_path();
  HfNetwork network = read_hf_network(read_json_file(folder / "config.json"), true);
  if (has_short_names(path)) network.prefix.clear();
  network.tied = true;  // there need not be an output matrix
  n.name = network.decoder.architecture;
  n.config = network.decoder;
  n.config.context = std::min(n.config.context, kMostTextTokens);
  n.files = open_safetensors(path, network);
  return n;
}

// What Qwen3-Reranker is asked, as its authors publish it.
constexpr std::string_view kQwenQuestion =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note "
    "that the "
    "answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant "
    "passages "
    "that answer the query\n<Query>: {query}\n<Document>: {document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";

// A matrix that vectors of texts are multiplied by; GGUF files have EmbeddingGemma's.
Layer dense_of(const TensorFiles& files, const StoredTensor& t) {
  const GgmlFormat* format = find_ggml(t.type);
  if (format == nullptr || t.shape.size() != 2)
    fail(ErrorCode::not_implemented, "tensor '{}' is not a matrix of a supported type", files.shown(t.name));
  Layer layer{.kind = Layer::Kind::dense};
  layer.weight = Tensor(DataType::float32, Shape(t.shape.begin(), t.shape.end()));
  ggml_dequantize(*format, t.data.data(), t.elements() / format->block, layer.weight.mutable_values<float>().data());
  return layer;
}

std::optional<Pooling> pooling_of(const GgufFile& meta, const std::string& name) {
  constexpr std::array kPooling{Pooling::mean, Pooling::cls, Pooling::last};
  const std::string key = name + ".pooling_type";
  const std::uint64_t kind = meta.whole(key).value_or(0);
  constexpr std::uint64_t kRank = 4;
  if (kind > kRank) fail(ErrorCode::not_implemented, "key '{}' = {} is not supported", key, kind);
  return kind == 0 || kind == kRank ? std::nullopt : std::optional(kPooling[kind - 1]);
}

}  // namespace

bool is_language_network(const fs::path& path) {
  if (path.extension() != ".gguf") {
    const std::string type = model_type(path.parent_path());
    return !type.empty() && find_hf_defaults(type) != nullptr;
  }
  const auto file = GgufModel::open(path);
  const std::string name(file->metadata().text("general.architecture").value_or(""));
  return name == "gemma-embedding" || is_decoder_architecture(name);
}

EncoderFacts read_language_facts(const fs::path& path) {
  const LanguageNetwork n = open_network(path);
  EncoderFacts facts;
  facts.context = n.config.context;
  // The last token alone has seen all of the text.
  facts.pooling = n.config.bidirectional ? Pooling::mean : Pooling::last;
  if (n.config.architecture == "qwen3") facts.pair_template = kQwenQuestion;
  if (n.gguf == nullptr) return facts;
  if (const auto text = n.gguf->metadata().text("tokenizer.chat_template.rerank")) facts.pair_template = *text;
  if (const auto pooling = pooling_of(n.gguf->metadata(), n.name)) facts.pooling = pooling;
  for (const char* dense : {"dense_2.weight", "dense_3.weight"}) {
    if (const StoredTensor* t = n.gguf->find_tensor(dense)) facts.layers.push_back(dense_of(*n.gguf, *t));
  }
  return facts;
}

Session open_language_encoder(const fs::path& path, const SessionOptions& options, const TextHead& head) {
  if (head.output == TextOutput::words)
    fail(ErrorCode::invalid_argument, "the model has no head for words, as networks for sparse vectors have it");
  LanguageNetwork n = open_network(path);
  const auto style = weights_in_place(n.files);
  Model model = build_decoder(
      n.files, n.config, *style,
      {.context = n.config.context, .embeds = true, .scores = head.output == TextOutput::scores, .answers = head.answers});
  set_accuracy_level(model.graph, head.accuracy_level);
  // Weights that are in memory are not copied into a model's bytes.
  for (const fs::path& file : n.files->paths()) {
    if (file.empty()) return session::open(std::move(model), options);
  }
  const MappedModel mapped = map_model(model, *n.files);
  return Session::from_bytes(std::as_bytes(std::span<const char>(mapped.bytes)), options, mapped.folder);
}

}  // namespace sdx::text
