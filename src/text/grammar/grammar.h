#pragma once
// Constrained output: what a model may write, as a grammar that says after each token which tokens may follow.
// docs/constrained-output.md says what is accepted. What cannot be enforced is refused, or named by unenforced().
//
//   auto vocabulary = std::make_shared<const Vocabulary>(token_bytes, end_tokens);
//   Matcher matcher(Grammar::from_json_schema(schema), vocabulary);
//   while (...) { const auto mask = matcher.mask(); token = sample(logits, mask); matcher.accept(token); }

#include <cstdint>
#include <memory>
#include <sdx/text.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sdx::text::grammar {

struct Program;
class Expressions;

// Does not change; may be shared by any number of threads.
class Grammar {
 public:
  // Each throws Error(invalid_argument) that says what is wrong, and where.
  static Grammar from_gbnf(std::string_view text);                         // llama.cpp's notation; the rule `root` is the whole
  static Grammar from_regex(std::string_view pattern);                     // the whole text fits
  static Grammar from_json_schema(std::string_view schema);                // JSON text of a schema
  static Grammar any_json();                                               // any JSON value
  static Grammar json_object();                                            // any JSON object
  static Grammar from_output(OutputFormat format, std::string_view text);  // one of these
  // The assembled grammar: `body` is the whole (an Expression).
  static Grammar from_expressions(Expressions& expressions, std::uint32_t body);

  const Program& program() const { return *program_; }
  // Conditions of a schema that the grammar does not enforce, by their places ("#/properties/tags/uniqueItems"): the caller must
  // check them in the answer.
  const std::vector<std::string>& unenforced() const { return unenforced_; }

 private:
  explicit Grammar(std::shared_ptr<const Program> program, std::vector<std::string> unenforced = {})
      : program_(std::move(program)), unenforced_(std::move(unenforced)) {}
  std::shared_ptr<const Program> program_;
  std::vector<std::string> unenforced_;
};

// A model's tokens as bytes, arranged for searching. Does not change; shared by all requests of a model.
class Vocabulary {
 public:
  // tokens[id]: the bytes that the token stands for; empty for control tokens, which a grammar never allows. `end_tokens` end the
  // text. Throws Error(invalid_argument) for an end token that is not in the vocabulary.
  Vocabulary(const std::vector<std::string>& tokens, std::vector<std::int32_t> end_tokens);

  std::size_t size() const { return sizes_.size(); }
  std::string_view bytes(std::size_t token) const { return std::string_view(text_).substr(offsets_[token], sizes_[token]); }
  const std::vector<std::int32_t>& end_tokens() const { return end_tokens_; }

 private:
  friend class Matcher;
  // The trie in depth-first order.
  struct Node {
    std::uint32_t skip = 0;    // the first node behind this one's descendants
    std::uint32_t tokens = 0;  // where its tokens begin in tokens_; the next node's are their end
    std::uint16_t depth = 0;   // 1 for the first byte
    std::uint8_t byte = 0;
  };
  std::vector<Node> nodes_;
  std::vector<std::int32_t> tokens_;
  std::string text_;
  std::vector<std::uint32_t> offsets_, sizes_;
  std::vector<std::int32_t> end_tokens_;
};

// The place of one text in a grammar. Not for several threads at once. Its memory between steps is bounded (some 64 MiB); a text
// that is nested deeper than 512 levels, and a grammar that is more ambiguous than 20,000 ways at one place, are refused.
class Matcher {
 public:
  Matcher(Grammar grammar, std::shared_ptr<const Vocabulary> vocabulary);
  ~Matcher();
  Matcher(Matcher&&) noexcept;
  Matcher& operator=(Matcher&&) noexcept;

  // A bit for each token: token i is allowed if bit i % 64 of word i / 64 is set. Valid until the next call. No bit is set where
  // no token of the vocabulary continues (the vocabulary lacks what the grammar needs).
  std::span<const std::uint64_t> mask();
  bool allows(std::int32_t token);
  // Takes a token (or bytes); false, and nothing changes, where it does not fit. End tokens fit where can_end().
  bool accept(std::int32_t token);
  bool accept_text(std::string_view bytes);
  // The text may end here; and nothing but the end can follow.
  bool can_end() const;
  bool is_complete() const;
  void restart();

 private:
  struct Automaton;
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::unique_ptr<Automaton> automaton_;
};

}  // namespace sdx::text::grammar
