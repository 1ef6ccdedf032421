#pragma once
// Loads a model that serves from its files.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "serve/models/catalog.h"
#include "serve/models/language_settings.h"
#include "serve/models/model_files.h"

namespace sdx::serve {

struct LoadRequest {
  std::string name, version;
  std::filesystem::path path;      // a model, as recognise_model() takes it
  std::filesystem::path folder{};  // NAME of a repository, with config.pbtxt and files of labels; "": there is none
  ModelSettings settings;
  session::TypedOptions session;
  EngineOptions engine;
  LanguageSettings language{};          // which parameters of `settings` override
  std::optional<std::uint64_t> room{};  // bytes that the model may take, its caches included
  BatchOptions batch;
  std::function<void(std::string_view level, std::string_view message)> log;  // not empty
};

// Loads, and warms up. Throws what loading throws, with the model's name as context.
std::unique_ptr<LoadedModel> load_model(const LoadRequest& request);

// The first extent of all inputs and outputs is left open, by one name or without any, and is not the length of a text or a
// sound.
bool looks_batched(const std::vector<ValueSpec>& inputs, const std::vector<ValueSpec>& outputs);

}  // namespace sdx::serve
