#pragma once
// A model that a request asks for, and the interface's facts about it beyond the catalogue.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <sdx/tool_calls.hpp>

#include "serve/models/catalog.h"
#include "serve/openai/token_texts.h"

namespace sdx::serve::openai {

// Made when a model is first asked for; thread-safe.
class ModelFacts {
 public:
  explicit ModelFacts(const LoadedModel& model);
  const std::string& fingerprint() const { return fingerprint_; }  // "fp_…": of the files and of this build
  const AnswerFormat& format() const { return format_; }           // of a language model with a chat template
  bool reasons() const { return reasons_; }                        // its template has the marks of reasoning
  bool knows_developers() const { return knows_developers_; }      // its template tells the role `developer` from `system`
  std::shared_ptr<const TokenTexts> texts(const LanguageModel& model);

 private:
  std::string fingerprint_;
  AnswerFormat format_;
  bool knows_developers_ = false, reasons_ = false;
  std::mutex mutex_;
  std::shared_ptr<const TokenTexts> texts_;  // guarded by `mutex_`
};

struct Found {
  ModelPtr model;
  std::shared_ptr<ModelFacts> facts;
};

// Thread-safe.
class ModelAccess {
 public:
  explicit ModelAccess(Catalog& catalog) : catalog_(catalog) {}
  // "NAME" or "NAME:VERSION", or the name under which it was pulled into the repository. Throws ApiError: 404 for a model that is
  // not there or of another kind, 503 where it cannot be loaded.
  Found get(const std::string& name, ModelKind kind, std::string_view path);
  Catalog& catalog() { return catalog_; }

 private:
  ModelPtr find(const std::string& name);
  bool has(const std::string& name) const;
  std::shared_ptr<ModelFacts> facts(const ModelPtr& model);

  Catalog& catalog_;
  std::mutex mutex_;
  std::map<const LoadedModel*, std::pair<std::weak_ptr<const LoadedModel>, std::shared_ptr<ModelFacts>>> facts_;  // guarded
};

[[noreturn]] void no_such_model(const std::string& name);

}  // namespace sdx::serve::openai
