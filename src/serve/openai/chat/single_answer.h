#pragma once
// What writers of answers with one choice share: the parser, and where an answer ends.

#include <span>
#include <string>
#include <vector>

#include <sdx/tool_calls.hpp>

#include "serve/openai/answer_head.h"
#include "serve/openai/chat/run.h"
#include "serve/openai/chat/writer.h"

namespace sdx::serve::openai {

class SingleAnswer : public ChatWriter {
 public:
  bool add(const GeneratedToken& token, std::string& out) final;
  bool cut_short(const Generation& generation) const final;

 protected:
  SingleAnswer(const PreparedChat& prepared, const ChatRequest& request);

  // A part of the answer came. `out`: the stream; not called for an answer that is returned whole.
  virtual void write(const AnswerEvent& event, std::string& out) = 0;
  // The text is whole: write() gets what the parser held back.
  void end(std::string& out);

  const ParsedAnswer& parsed() const { return parser_.answer(); }
  // The calls that the client gets.
  std::span<const ToolCall> calls() const;
  Usage usage(const Generation& generation) const;
  std::int64_t prompt_tokens() const { return prompt_tokens_; }

 private:
  void write_all(const std::vector<AnswerEvent>& events, std::string& out);

  AnswerParser parser_;
  std::int64_t prompt_tokens_ = 0, reasoning_tokens_ = 0;
  bool parallel_calls_ = true, stream_ = false;
  bool over_ = false;  // what follows is dropped
};

}  // namespace sdx::serve::openai
