#pragma once
// Vectors of texts, for all interfaces that have them.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "serve/http/message.h"
#include "serve/models/catalog.h"
#include "serve/openai/requests.h"

namespace sdx::serve::openai {

using OnVector = std::function<void(std::span<const float> vector, std::size_t index)>;

// Calls `on_vector` with the vector of each text, in order. Returns the number of tokens. Throws ApiError, and Error(cancelled)
// if the client has gone.
std::int64_t embed_texts(const EmbeddingRequest& texts, const LoadedModel& model, const Request& request,
                         const OnVector& on_vector);

// The logits of documents beside a query, in their order; adds to `tokens`. Throws as embed_texts() does.
std::vector<float> rank_documents(const Reranker& reranker, const std::string& query, std::span<const std::string> documents,
                                  const Request& request, std::int64_t& tokens);
// Calls `on_text` with the share of each class, for each text in order; adds to `tokens`. Throws as embed_texts() does.
void classify_texts(const Reranker& classifier, std::span<const std::string> texts, const Request& request, std::int64_t& tokens,
                    const OnVector& on_text);

// [0.25,-1]; null for what is not finite.
void append_vector(std::string& out, std::span<const float> vector);

}  // namespace sdx::serve::openai
