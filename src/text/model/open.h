#pragma once
// Files and folders that hold a language model, into a Decoder.

#include <filesystem>
#include <memory>
#include <optional>
#include <sdx/session.hpp>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "text/model/decoder.h"

namespace sdx::text {

// Sampling settings in files; nothing where they are silent.
struct SamplingDefaults {
  std::optional<bool> sample;
  std::optional<float> temperature, top_p, min_p, typical_p, repetition_penalty;
  std::optional<std::int64_t> top_k;
};

struct OpenedModel {
  std::shared_ptr<const Decoder> decoder;
  std::string format;               // "gguf", "safetensors", "genai", "onnx"
  std::string architecture;         // "llama"; "" where the files do not say
  std::filesystem::path tokenizer;  // the file or folder that the tokenizer is in
  std::optional<TokenId> bos, pad;
  std::vector<TokenId> eos;
  SamplingDefaults sampling;
};

struct OpenOptions {
  SessionOptions session;
  std::int64_t context = 0;                   // 0: the model's own
  DataType cache_type = DataType::undefined;  // of keys and values; undefined: the network's own
  std::vector<LoraAdapter> loras;
  int accuracy_level = 0;  // of products with weights in blocks; 0: as the files ask
};

// A folder whose only model is a .gguf file stands for that file; any other path for itself. Throws Error(invalid_argument) where
// there are several such files.
std::filesystem::path model_place(const std::filesystem::path& path);

// A .gguf file, a folder with genai_config.json, or a folder of Hugging Face's with an ONNX model, or else with .safetensors
// files. Throws Error naming the file.
OpenedModel open_model(const std::filesystem::path& path, const OpenOptions& options);

OpenedModel open_genai(const std::filesystem::path& folder, const OpenOptions& options);
// The network's file; nothing: there is none.
std::optional<std::filesystem::path> find_network(const std::filesystem::path& folder);
OpenedModel open_onnx_folder(const std::filesystem::path& folder, const OpenOptions& options);

// Throws Error(invalid_argument) where keys and values cannot be of the type that is asked for.
void check_cache_type(const Decoder& decoder, DataType wanted);

// Opens a network's file and reads its interface, with its attention over blocks where that is possible; `context`: of the model,
// 0: not known, and its architecture, for adapters. Throws Error(invalid_argument) where options ask for more.
void open_session(Decoder& decoder, const std::filesystem::path& file, const OpenOptions& options, std::int64_t context,
                  const std::string& architecture);

// Whether keys and values may stay in place: only GroupQueryAttention reads the pasts, its outputs are the presents, and the mask
// serves for lengths only.
bool works_in_place(const Graph& graph, const DecoderNames& names);

}  // namespace sdx::text
