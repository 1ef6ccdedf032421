#pragma once
// Turns tokens into a message, in the form that Anthropic's clients read.

#include <string>

#include "serve/openai/chat/single_answer.h"

namespace sdx::serve::anthropic {

struct MessageOptions {
  std::string id, model;
  bool thinking = false, omit_thinking = false;
  bool shortened = false;  // the context, not max_tokens, bounds the answer
};

// Used by one thread at a time.
class MessageAnswer final : public openai::SingleAnswer {
 public:
  MessageAnswer(const openai::PreparedChat& prepared, const openai::ChatRequest& request, MessageOptions options);

  std::string begin() override;
  void finish(const Generation& generation, std::string& out) override;
  std::string whole(const Generation& generation) override;

 private:
  enum class Block { none, text, thinking, tool };
  void write(const AnswerEvent& event, std::string& out) override;
  void open(Block block, const std::string& start, std::string& out);
  void close(std::string& out);
  void delta(std::string_view type, std::string_view field, std::string_view text, std::string& out) const;
  void open_text(std::string& out);
  std::string stop_fields(const Generation& generation) const;
  std::string usage_json(const Generation& generation) const;

  MessageOptions options_;
  Block block_ = Block::none;  // that is open in the stream
  int index_ = -1;             // of the last block
};

}  // namespace sdx::serve::anthropic
