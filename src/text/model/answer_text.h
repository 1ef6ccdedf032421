#pragma once
// The text of an answer as its tokens come: whole characters, and no part of a text that ends it.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <sdx/text.hpp>

namespace sdx::text {

class AnswerText {
 public:
  // `detokenize` may be empty: then there is no text.
  AnswerText(const std::function<std::string(std::span<const TokenId>)>& detokenize, const std::vector<std::string>& stop)
      : detokenize_(detokenize), stop_(stop) {}

  // Returns the text that is certain after this token: "" while a character, or perhaps a stop text, is incomplete. After
  // stopped(), returns nothing.
  std::string add(TokenId id);
  // Returns the text that was held back, at the end of an answer without a stop text.
  std::string finish();

  bool stopped() const { return stopped_by_ != nullptr; }
  const std::string& stop() const { return *stopped_by_; }
  const std::string& text() const { return text_; }  // all that add() and finish() returned

 private:
  std::string release(std::size_t end);

  const std::function<std::string(std::span<const TokenId>)>& detokenize_;
  const std::vector<std::string>& stop_;
  std::vector<TokenId> tokens_;
  std::size_t prefix_ = 0, read_ = 0;  // tokens [prefix_, read_) are in the text; they are decoded again with those that follow
  std::string held_, text_;
  const std::string* stopped_by_ = nullptr;
};

}  // namespace sdx::text
