#pragma once
// Configuration files of Hugging Face's folders: config.json, generation_config.json.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "text/model/network/decoder_config.h"
#include "text/model/open.h"

namespace sdx::text {

// The settings for tokens and sampling, whatever the network is.
struct HfSettings {
  std::string architecture;  // model_type
  std::int64_t context = 0, vocabulary = 0;
  std::optional<TokenId> bos, pad;
  std::vector<TokenId> eos;
  SamplingDefaults sampling;
};
// Files that are missing say nothing. Throws Error(io | invalid_model).
HfSettings read_hf_settings(const std::filesystem::path& folder);

// The network's configuration in config.json, for weights in .safetensors files.
struct HfNetwork {
  DecoderConfig decoder;
  std::string prefix = "model.";  // of the tensors' names
  std::string head = "lm_head.weight";
  std::vector<std::string> others;  // beginnings of tensors' names that belong to other parts: pictures
  bool tied = false;                // the output matrix is the embedding, where there is no other
  std::vector<std::string> biased;  // products with a bias: "self_attn.q_proj"
};
// Keys that transformers 5 gives a meaning to for these architectures are read, or refused by name where they would change the
// result; others are passed over, as there. Throws Error(not_implemented | invalid_model).
// `embeds`: for vectors of texts, with what these may have besides.
HfNetwork read_hf_network(const nlohmann::json& config, bool embeds = false);

}  // namespace sdx::text
