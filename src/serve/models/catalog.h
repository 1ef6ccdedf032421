#pragma once
// The models that a server has: by name and version, loaded when asked for, given back when memory is short.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sdx/chat_template.hpp>
#include <sdx/embedding.hpp>
#include <sdx/generation_engine.hpp>
#include <sdx/project.hpp>
#include <sdx/session.hpp>
#include <sdx/speech.hpp>
#include <sdx/text.hpp>

#include "serve/models/batcher.h"
#include "serve/models/language_settings.h"
#include "serve/models/settings.h"
#include "session/options/option_table.h"

namespace sdx::serve {

enum class ModelKind { tensors, language, embedding, reranker, speech };

// A language model with all that a chat needs. Members may be used from any thread.
struct LanguageService {
  LanguageModel model;
  std::optional<ChatTemplate> chat;  // nothing: the model has none
  std::unique_ptr<GenerationEngine> engine;
  bool control_tokens = false;  // names of special tokens in a conversation's texts are these tokens
};

// A model of tensors: a session behind a batcher, and its project file's settings.
struct TensorService {
  std::optional<Project> project;  // with settings from a file; nothing for a bare model
  std::vector<ValueSpec> inputs, outputs;
  bool has_batch = false;  // the first extent of all inputs and outputs is the batch, and left open
  BatchOptions batch;
  std::vector<std::pair<std::string, std::vector<std::string>>> labels;  // of classes, by output
  std::unique_ptr<Batcher> batcher;
};

// One version of a model, loaded. It can be used through any pointer to it, and is unloaded when the last pointer is gone.
struct LoadedModel {
  std::string name, version;
  ModelKind kind = ModelKind::tensors;
  std::filesystem::path path;
  std::chrono::system_clock::time_point loaded_at;
  std::uint64_t file_bytes = 0;
  std::uint64_t bytes = 0;  // that it takes at most, about: its files, and of a language model the limit of its cache
  ModelSettings settings;
  // One of them, by kind.
  std::unique_ptr<TensorService> tensors;
  std::unique_ptr<LanguageService> language;
  std::unique_ptr<TextEmbedder> embedder;
  std::unique_ptr<Reranker> reranker;
  std::unique_ptr<const Transcriber> speech;
};
using ModelPtr = std::shared_ptr<const LoadedModel>;

enum class ModelState { unloaded, loading, ready, failed, unloading };
std::string_view name(ModelState state) noexcept;

struct ModelStatus {
  std::string name, version;
  ModelState state = ModelState::unloaded;
  std::optional<ModelKind> kind;  // known once it was loaded
  std::string reason;             // why it failed or was unloaded
};

// A model that a pull has put into the repository.
struct PulledModel {
  std::string name;              // of the catalogue: that of the folder
  std::string asked;             // by which it was pulled: "qwen3:0.6b"
  std::filesystem::path folder;  // below the repository
};

struct ModelSource {
  std::string name;  // "": the stem of the path
  std::filesystem::path path;
  std::vector<LoraAdapter> loras{};  // that a language model is served with
};

struct CatalogOptions {
  std::vector<ModelSource> models{};   // served under these names from the start
  std::filesystem::path repository{};  // a folder of models; "": none
  bool watch = true;                   // all files, for changes
  bool load_on_demand = true;          // a model of the repository is loaded by the first request; else all at the start
  // The limit for all models together, in bytes; the model unused for the longest time is unloaded first; 0: none. If `engine`
  // has no limit of its own, the cache of a language model gets half of the bytes that the loaded models, and its own files,
  // leave, at least 64 MiB; of that it keeps a tenth of the limit for later prompts.
  std::uint64_t memory_limit = 0;
  session::TypedOptions session{};
  EngineOptions engine{};
  LanguageSettings language{};
  BatchOptions batch{};  // where neither project nor config.pbtxt says otherwise
  std::function<void(std::string_view level, std::string_view message)> log{};  // from any thread
};

// There is no such model, or no such version of it, or it was unloaded. Its code is invalid_argument.
class UnknownModel : public Error {
 public:
  using Error::Error;
};

// Thread-safe. Models are destroyed on a thread of the catalogue, whichever thread releases them last.
class Catalog {
 public:
  // Loads `models`; throws Error where one cannot be loaded.
  explicit Catalog(CatalogOptions options);
  ~Catalog();
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  // The version that is asked for, "" for the newest; loads it first where it must. Throws UnknownModel, else what loading
  // throws. `name` is compared with the names that are known, and never becomes a path.
  ModelPtr get(std::string_view name, std::string_view version = {});

  // Loads it again, if it is loaded: the old one serves until the new one is ready. Throws the errors of loading; then the old
  // one stays. `settings`: replace those of its config.pbtxt, until the model is loaded again.
  void load(std::string_view name, const std::optional<ModelSettings>& settings = {});
  // Returns when no request uses it. It is not loaded again before load() asks for it.
  void unload(std::string_view name);
  // Sorted by name, then by version, oldest first.
  std::vector<ModelStatus> list() const;
  bool ready() const;  // all models of the start are loaded
  // Sorted by name.
  std::vector<PulledModel> pulled() const;
  // Looks at the repository at once: for files that are known to be whole. Loads again what is in use and has changed.
  void look_at_repository();
  // Unloads a model of pulled() and deletes its folder. Throws UnknownModel, Error(io).
  void remove_pulled(std::string_view name);
  // Returns a loaded model only. Does not count as use.
  std::vector<ModelPtr> loaded() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sdx::serve
