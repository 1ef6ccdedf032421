#pragma once
// Language models of which the weights are known, not the graph: .gguf files, and folders of Hugging Face's with .safetensors
// files. Their graph is built here.

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "tensor/gguf/gguf_model.h"
#include "text/model/network/decoder_config.h"
#include "text/model/open.h"

namespace sdx::text {

struct WeightsModel {
  std::shared_ptr<const TensorFiles> files;
  DecoderConfig config;
  std::filesystem::path source;  // where the tokenizer is too
  std::optional<TokenId> bos, pad;
  std::vector<TokenId> eos;
  SamplingDefaults sampling;
  std::shared_ptr<const GgufModel> gguf;  // null: a folder
};

bool has_weights_alone(const std::filesystem::path& folder);
// A .gguf file, or a folder. Throw Error naming the file.
WeightsModel read_weights_model(const std::filesystem::path& path);
OpenedModel open_weights(const std::filesystem::path& path, const OpenOptions& options);

// The context for which the model is used: `asked`, or if that is 0 the context of its training. Throws Error(invalid_argument)
// for more than the model has.
std::int64_t used_context(const DecoderConfig& config, std::int64_t asked);

}  // namespace sdx::text
