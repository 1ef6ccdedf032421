#pragma once
// Reads the files of an embedding or reranking model besides the graph: sentence-transformers' modules.json with the folders it
// names, or a plain encoder's config.json.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "text/embed/pooling.h"

namespace sdx::text {

struct EmbedFolder {
  std::filesystem::path root;   // where tokenizer and configuration are: a folder, or the .gguf file
  std::filesystem::path model;  // the .onnx file, .gguf file, or model.safetensors or its index
  bool modules = false;         // there is a modules.json: what follows comes from it
  std::vector<Pooling> pooling;
  bool include_prompt = true;  // false: the prompt's tokens do not count in pooling
  std::vector<Layer> layers;
  // BGE-M3's: what makes a vector, or a weight, of each token.
  std::optional<Layer> token_layer, weight_layer;
  int max_length = 0;         // tokens; 0: not said
  int most_length = 0;        // for which the network has positions; 0: not known
  std::string pair_template;  // of rerankers: a text with {query} and {document}; empty: they are a pair of texts
  // Of rerankers that are language models: tokens for "no" and "yes", or for "yes" alone; empty: not said.
  std::vector<std::int64_t> answers;
  std::map<std::string, std::string> prompts;
  std::string default_prompt;  // a name in `prompts`; "": none
};

// `path`: a folder, or an .onnx file in one, or a .gguf file. Throws Error(io), Error(invalid_argument) naming the file and the
// error: no or several models, or unknown modules.
EmbedFolder read_embed_folder(const std::filesystem::path& path);

// What config.json says of a classifier.
struct Classes {
  std::vector<std::string> labels;  // in the order of the model's numbers; none: not said
  std::string problem;              // "multi_label_classification", "regression", …; "": not said
};
// `root`: of EmbedFolder. Throws Error(io), Error(invalid_argument) for a file that is no JSON.
Classes read_classes(const std::filesystem::path& root);

}  // namespace sdx::text
