#pragma once
// Turns tokens into the answers to a chat, in the form that the client reads.

#include <memory>
#include <string>
#include <vector>

#include <sdx/tool_calls.hpp>

#include "serve/openai/answer_head.h"
#include "serve/openai/chat/writer.h"
#include "serve/openai/token_texts.h"

namespace sdx::serve::openai {

struct ChatAnswerOptions {
  AnswerHead head;
  int n = 1;
  AnswerFormat format;
  std::string tools, prompt;  // for the parser
  bool parallel_calls = true;
  bool stream = false, include_usage = false;
  std::shared_ptr<const TokenTexts> texts;  // null: no log probabilities
  std::vector<TokenId> ends;                // tokens that end an answer, and have no log probability
};

// Used by one thread at a time.
class ChatAnswer final : public ChatWriter {
 public:
  explicit ChatAnswer(ChatAnswerOptions options);

  // The beginning of a stream: each answer's role.
  std::string begin() override;
  // A token came. Appends the events of a stream to `out`; false ends this answer.
  bool add(const GeneratedToken& token, std::string& out) override;
  // The rest of a stream.
  void finish(const Generation& generation, std::string& out) override;
  // Or the whole.
  std::string whole(const Generation& generation) override;

  // Whether answers ended without add(), because the engine was stopped.
  bool cut_short(const Generation& generation) const override;

 private:
  struct OneAnswer {
    AnswerParser parser;
    std::string logprobs;  // entries, of the whole answer
    bool over = false;     // what follows is dropped
    bool calls = false;
    std::int64_t reasoning_tokens = 0;
  };
  void write(OneAnswer& answer, int index, std::vector<AnswerEvent>&& events, std::string logprobs, std::string& out);
  void open_chunk(std::string& out, int index) const;
  void close_chunk(std::string& out, std::string_view logprobs, std::string_view finish) const;
  std::string logprob_entry(const GeneratedToken& token) const;
  std::string message(OneAnswer& answer) const;
  Usage usage(const Generation& generation) const;

  ChatAnswerOptions options_;
  std::string chunk_;  // the common beginning of events
  std::vector<OneAnswer> answers_;
};

}  // namespace sdx::serve::openai
