#pragma once
// Turns tokens into answers of /completion, in the form that llama.cpp's clients read.

#include <string>
#include <vector>

#include "serve/openai/chat/single_answer.h"

namespace sdx::serve::llama {

// Used by one thread at a time.
class CompletionAnswer final : public openai::SingleAnswer {
 public:
  CompletionAnswer(const openai::PreparedChat& prepared, const openai::ChatRequest& request, bool return_tokens);

  std::string begin() override { return {}; }
  void finish(const Generation& generation, std::string& out) override;
  std::string whole(const Generation& generation) override;

 private:
  void write(const AnswerEvent& event, std::string& out) override;
  void append_score(std::string& out, const Score& score, const openai::TokenTexts& texts) const override;
  openai::Json last(const Generation& generation, const std::string& content) const;

  std::string model_, prompt_;
  openai::Json settings_;
  bool return_tokens_;
};

// The settings of answers, by llama.cpp's names.
openai::Json settings_json(const GenerationSettings& settings);

}  // namespace sdx::serve::llama
