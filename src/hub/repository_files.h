#pragma once
// Which files of a hub's repository make a model.

#include <string>
#include <vector>

#include "hub/hub_api.h"

namespace sdx::hub {

// The model of a repository: `wanted` if given, else the only .onnx file, else model.onnx, onnx/model.onnx or <name>.onnx.
// Throws Error(invalid_argument) listing what there is.
const HubFile& choose_model(const HubListing& listing, const std::string& wanted, const std::string& id);

// The GGUF file of a repository, with all parts of a split one, the first in front: that of the quantisation `tag`, which its
// name ends in; without one Q4_K_M, or else the first. Throws Error(invalid_argument) listing what there is.
std::vector<HubFile> choose_gguf(const HubListing& listing, const std::string& tag, const std::string& id);

// Weights of a transformers or sentence-transformers folder.
bool is_safetensors(const std::string& name);

// The .safetensors file `wanted`, or model.safetensors; else the listing model.safetensors.index.json of the same folder and the
// files that it divides a model into. Empty where there is neither.
std::vector<HubFile> choose_safetensors(const HubListing& listing, const std::string& wanted);

struct Companion {
  HubFile file;
  std::string name;  // in the model's own folder
};

// What belongs to a model besides its weights (configuration, tokenizer, chat template, labels, modules of
// sentence-transformers), in the model's folder or the repository's root.
std::vector<Companion> companions(const HubListing& listing, const std::string& model);

}  // namespace sdx::hub
