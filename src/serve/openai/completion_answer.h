#pragma once
// Turns tokens into the answers to completions of one or more prompts, in the form that the client reads.

#include <memory>
#include <string>
#include <vector>

#include "serve/openai/answer_head.h"
#include "serve/openai/token_texts.h"

namespace sdx::serve::openai {

// A prompt as an echo shows it.
struct Echo {
  std::string text;
  std::vector<TokenLogprob> tokens;            // with log probabilities asked for; the first one's means nothing
  std::vector<std::vector<TokenLogprob>> top;  // as many
};

struct CompletionAnswerOptions {
  AnswerHead head;
  std::size_t prompts = 1;
  int n = 1, best_of = 1;
  bool stream = false, include_usage = false;
  std::vector<Echo> echo;                   // of each prompt; empty: none
  std::shared_ptr<const TokenTexts> texts;  // null: no log probabilities
  std::vector<TokenId> ends;                // tokens that end an answer, and have no log probability
};

// Used by one thread at a time.
class CompletionAnswer {
 public:
  explicit CompletionAnswer(CompletionAnswerOptions options);

  // The beginning of a stream: the prompts, if they are echoed.
  std::string begin();
  void add(std::size_t prompt, const GeneratedToken& token, std::string& out);
  // One prompt's answers are whole. `out`: a stream's.
  void finish(std::size_t prompt, Generation generation, std::string& out);
  bool complete() const { return finished_ == options_.prompts; }
  // The end: that of a stream, or the whole answer.
  std::string end() const;
  std::string whole() const;
  const Usage& usage() const { return usage_; }

 private:
  struct Logprobs {
    std::string tokens, values, top, offsets;  // of the lists, without brackets
    std::int64_t offset = 0;                   // characters so far
  };
  struct OneAnswer {
    std::string text, finish;
    Logprobs logprobs;  // of the whole answer; in a stream of the part that comes next
    double total = 0;   // of the log probabilities
    std::int64_t tokens = 0;
  };
  void append_logprob(Logprobs& to, const TokenLogprob& token, const std::vector<TokenLogprob>& top, bool first) const;
  std::string logprobs_json(const Logprobs& logprobs) const;
  void append_chunk(std::string& out, std::size_t index, OneAnswer& answer, std::string_view text, std::string_view finish) const;
  std::vector<std::size_t> chosen(std::size_t prompt) const;

  CompletionAnswerOptions options_;
  std::string chunk_;
  std::vector<OneAnswer> answers_;  // prompt * best_of + choice
  std::size_t finished_ = 0;
  Usage usage_;
};

}  // namespace sdx::serve::openai
