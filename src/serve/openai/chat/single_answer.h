#pragma once
// What writers of answers with one choice share: the parser, log probabilities, and where an answer ends.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sdx/tool_calls.hpp>

#include "serve/openai/answer_head.h"
#include "serve/openai/chat/run.h"
#include "serve/openai/chat/writer.h"
#include "serve/openai/token_texts.h"

namespace sdx::serve::openai {

class SingleAnswer : public ChatWriter {
 public:
  bool add(const GeneratedToken& token, std::string& out) final;
  bool cut_short(const Generation& generation) const final;

 protected:
  SingleAnswer(const PreparedChat& prepared, const ChatRequest& request);

  // A token of the answer with its log probability.
  struct Score {
    TokenLogprob token;
    std::vector<TokenLogprob> top;
    std::string text;  // that it added
  };

  // A part of the answer came. `out`: the stream; not called for an answer that is returned whole.
  virtual void write(const AnswerEvent& event, std::string& out) = 0;
  // The text is whole: write() gets what the parser held back.
  void end(std::string& out);

  // Whether the request asks for log probabilities.
  bool has_scores() const { return texts_ != nullptr; }
  // Those of the text that write() is called with, as members of a JSON list; nothing for calls.
  const std::string& part_scores() const { return part_scores_; }
  // Those of all texts of a kind.
  const std::string& scores(AnswerEvent::Kind kind) const {
    return kind == AnswerEvent::Kind::content ? content_scores_ : reasoning_scores_;
  }
  // One of them, as a JSON object.
  virtual void append_score(std::string& out, const Score& score, const TokenTexts& texts) const;

  const ParsedAnswer& parsed() const { return parser_.answer(); }
  // The calls that the client gets.
  std::span<const ToolCall> calls() const;
  Usage usage(const Generation& generation) const;
  std::int64_t prompt_tokens() const { return prompt_tokens_; }

 private:
  void write_all(const std::vector<AnswerEvent>& events, std::string& out);
  void take_scores(const AnswerEvent& event);

  AnswerParser parser_;
  std::int64_t prompt_tokens_ = 0, reasoning_tokens_ = 0;
  bool parallel_calls_ = true, stream_ = false;
  bool over_ = false;                        // what follows is dropped
  std::shared_ptr<const TokenTexts> texts_;  // null: no log probabilities
  std::vector<TokenId> ends_;                // tokens that end an answer, and have no log probability
  std::vector<Score> waiting_;               // tokens whose text the parser may hold back
  std::string part_scores_, content_scores_, reasoning_scores_;
};

}  // namespace sdx::serve::openai
