#pragma once
// A model cuts a piece of text into tokens of its vocabulary.

#include <cstdint>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "base/system/random_bits.h"
#include "text/tokenizer/model/vocabulary.h"
#include "text/tokenizer/model/word_cache.h"

namespace sdx::text {

// A thread's workspace for encoding; kept for the next text.
struct Workspace {
  WordCache words;
  std::vector<std::uint32_t> ids, lengths;
  std::vector<std::uint64_t> ranks;
  std::mt19937 random{static_cast<std::uint32_t>(random_bits())};
};

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  TokenModel() = default;
  TokenModel(const TokenModel&) = delete;
  TokenModel& operator=(const TokenModel&) = delete;

  // Adds the tokens of a piece that is not empty. Thread-safe. Throws Error(runtime_failure) where a token is missing that the
  // model falls back to.
  virtual void tokenize(std::string_view piece, Workspace& workspace, std::vector<Token>& to) const = 0;
  // It can take the bytes themselves where its vocabulary is written in byte-level characters.
  virtual bool takes_bytes() const noexcept { return false; }
  virtual void tokenize_bytes(std::string_view piece, Workspace& workspace, std::vector<Token>& to) const {
    tokenize(piece, workspace, to);
  }

  const Vocabulary& vocabulary() const noexcept { return vocabulary_; }

 protected:
  Vocabulary vocabulary_;
};

}  // namespace sdx::text
