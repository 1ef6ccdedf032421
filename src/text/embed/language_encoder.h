#pragma once
// Networks of language models that make vectors of texts: Qwen3-Embedding, EmbeddingGemma; or scores: Qwen3-Reranker.

#include <filesystem>

#include <sdx/session.hpp>

#include "text/embed/encoder_network.h"

namespace sdx::text {

// Whether the file, or the folder's config.json, has a language model's architecture rather than an encoder's.
bool is_language_network(const std::filesystem::path& path);

// As read_encoder_facts() and open_encoder().
EncoderFacts read_language_facts(const std::filesystem::path& path);
Session open_language_encoder(const std::filesystem::path& path, const SessionOptions& options, const TextHead& head);

}  // namespace sdx::text
