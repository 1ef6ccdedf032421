#pragma once
// Turns tokens into answers of /api/chat and /api/generate, in the form that Ollama's clients read.

#include <chrono>
#include <string>

#include "serve/ollama/requests.h"
#include "serve/openai/chat/single_answer.h"

namespace sdx::serve::ollama {

// Used by one thread at a time.
class TextAnswer final : public openai::SingleAnswer {
 public:
  using Clock = std::chrono::steady_clock;
  // `arrived`: the request.
  TextAnswer(const openai::PreparedChat& prepared, const openai::ChatRequest& request, Kind kind, Clock::time_point arrived);

  std::string begin() override { return {}; }
  void finish(const Generation& generation, std::string& out) override;
  std::string whole(const Generation& generation) override;

 private:
  void write(const AnswerEvent& event, std::string& out) override;
  void append_line(std::string& out, std::string_view content, std::string_view thinking, std::string_view calls) const;
  void append_part(std::string& out, std::string_view content, std::string_view thinking, std::string_view calls) const;
  void append_scores(std::string& out, const std::string& scores) const;
  std::string call_json(std::size_t index) const;
  std::string end_fields(const Generation& generation) const;

  Kind kind_;
  std::string model_;
  Clock::time_point arrived_, begun_;
};

// The answer to a request that only loads its model.
std::string loaded_answer(const std::string& model, Kind kind);

}  // namespace sdx::serve::ollama
