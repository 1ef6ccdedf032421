#pragma once
// Prompts for text between two others: models for code have tokens that mark its place.

#include <string>
#include <utility>
#include <vector>

#include "serve/openai/requests.h"

namespace sdx::serve::openai {

struct FillRequest {
  std::string before, after;
  std::string begun;                                        // the beginning of the answer
  std::vector<std::pair<std::string, std::string>> others;  // names and texts of other files
};

// The prompt, in the order in which the model was trained: names of special tokens in the texts are text. `param`: the field to
// blame. Throws ApiError for a model without such tokens, and for texts that are too long.
TokenList fill_prompt(const LanguageModel& model, const FillRequest& request, const std::string& param);
// Adds the tokens that end what is filled in, where the model's files do not name them.
void add_fill_ends(const LanguageModel& model, std::vector<TokenId>& stop_tokens);
// Makes the chat's answer what is filled in: its prompt, and the tokens that end it.
void fill_in(ChatRequest& chat, const LanguageModel& model, const FillRequest& request, const std::string& param);

}  // namespace sdx::serve::openai
