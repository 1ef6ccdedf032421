#pragma once
// What Ollama's interface tells of models: /api/tags, /api/ps, /api/show.

#include <string>

#include "serve/openai/chat/run.h"

namespace sdx::serve::ollama {

// The catalogue's name: clients say "NAME:latest" for what has no tag.
std::string known_name(const Catalog& catalog, const std::string& name);

std::string tags_json(const Catalog& catalog);
std::string running_json(const Catalog& catalog);
std::string show_json(const LoadedModel& model);

}  // namespace sdx::serve::ollama
