// Folders as optimum and transformers.js export them.

#include <algorithm>

#include "base/error.h"
#include "onnx/reader.h"
#include "text/model/network/hf_config.h"
#include "text/model/open.h"

namespace sdx::text {

namespace fs = std::filesystem;

// Whole numbers first, then smaller ones; one network for first and later steps before those that need two.
std::optional<fs::path> find_network(const fs::path& folder) {
  for (const char* end : {"", "_fp16", "_int8", "_uint8", "_quantized", "_q4", "_q4f16", "_bnb4"}) {
    for (const char* stem : {"model", "decoder_model_merged", "decoder_with_past_model", "decoder_model"}) {
      for (const fs::path& place : {folder, folder / "onnx"}) {
        fs::path file = place / (std::string(stem) + end + ".onnx");
        std::error_code error;
        if (fs::is_regular_file(file, error)) return file;
      }
    }
  }
  return std::nullopt;
}

namespace {

// If a model has two networks, the one for later steps also computes the first step, without past keys and values. If it takes
// only one token at a time, the other one computes all tokens again at each step.
fs::path one_of_pair(const fs::path& network) {
  constexpr std::string_view kLater = "decoder_with_past_model", kFirst = "decoder_model";
  const std::string name = network.filename().string();
  if (!name.starts_with(kLater)) return network;
  fs::path first = network.parent_path() / (std::string(kFirst) + name.substr(kLater.size()));
  std::error_code error;
  if (!fs::is_regular_file(first, error)) return network;
  const Graph graph = read_model(network).graph;
  const auto ids = graph.find(DecoderNames().ids);
  const bool one_token = ids && graph.value(*ids).type.shape && graph.value(*ids).type.shape->size() == 2 &&
                         (*graph.value(*ids).type.shape)[1] == Dim(1);
  return one_token ? first : network;
}

}  // namespace

OpenedModel open_onnx_folder(const fs::path& folder, const OpenOptions& options) {
  try {
    const auto network = find_network(folder);
    if (!network) {
      fail(ErrorCode::io,
           "'{}' contains no language model: neither genai_config.json, nor model.onnx, decoder_model_merged.onnx or "
           "decoder_with_past_model.onnx, there or in onnx/, nor config.json with model.safetensors",
           folder.string());
    }
    HfSettings settings = read_hf_settings(folder);
    auto decoder = std::make_shared<Decoder>();
    open_session(*decoder, one_of_pair(*network), options, settings.context, settings.architecture);
    if (decoder->vocabulary == 0) decoder->vocabulary = settings.vocabulary;
    OpenedModel m;
    m.format = "onnx";
    m.architecture = std::move(settings.architecture);
    m.bos = settings.bos;
    m.pad = settings.pad;
    m.eos = std::move(settings.eos);
    m.sampling = settings.sampling;
    m.tokenizer = folder;
    m.decoder = std::move(decoder);
    return m;
  } catch (Error& e) {
    throw e.add_context("in '" + folder.string() + "'");
  }
}

}  // namespace sdx::text
