#pragma once
// Models that `sdx pull` has fetched, and models by name for commands that take folders and files of language models.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hub/pull.h"

namespace sdx::cli {

struct PulledModel {
  std::string name, source, revision;
  std::filesystem::path folder;
  std::vector<hub::PulledFile> files;

  std::uint64_t bytes() const;
  // Whether language commands take the folder, with weights in GGUF or .safetensors files.
  bool of_text() const;
};

// Sorted by name.
std::vector<PulledModel> pulled_models();
// "qwen3:0.6b", or the name of its folder.
std::optional<PulledModel> pulled_model_named(const std::string& name);

// The file or folder that is meant: a path that exists, a pulled model, or an entry of the registry. Else what is given, for the
// reader's own message.
std::filesystem::path text_model(const std::string& given);

}  // namespace sdx::cli
