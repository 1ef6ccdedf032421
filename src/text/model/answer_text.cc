#include "text/model/answer_text.h"

#include <algorithm>

#include "base/text/utf8.h"

namespace sdx::text {
namespace {

// Longer than any character of bytes or of joined pieces: then what cannot be a character is one of its own.
constexpr std::size_t kMostWaiting = 16;

// The number of bytes at the end of `text` that may be the beginning of `stop`.
std::size_t possible_start(const std::string& text, const std::string& stop) {
  for (std::size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n) {
    if (text.compare(text.size() - n, n, stop, 0, n) == 0) return n;
  }
  return 0;
}

bool ends_unfinished(const std::string& text) { return unfinished_utf8(text) > 0 || text.ends_with(kReplacementCharacter); }

}  // namespace

std::string AnswerText::release(std::size_t end) {
  std::string out = held_.substr(0, end);
  held_.erase(0, end);
  text_ += out;
  return out;
}

std::string AnswerText::add(TokenId id) {
  if (!detokenize_ || stopped()) return {};
  tokens_.push_back(id);
  const std::span<const TokenId> all(tokens_);
  const std::string before = detokenize_(all.subspan(prefix_, read_ - prefix_)), now = detokenize_(all.subspan(prefix_));
  if (now.size() <= before.size() || !now.starts_with(before) || ends_unfinished(now)) {
    // Wait for the rest, but not forever.
    if (tokens_.size() - read_ < kMostWaiting) return {};
  }
  if (now.size() > before.size()) held_ += now.substr(before.size());
  prefix_ = read_;
  read_ = tokens_.size();
  std::size_t first = std::string::npos;
  for (const std::string& s : stop_) {
    const std::size_t at = held_.find(s);
    if (at < first) first = at, stopped_by_ = &s;
  }
  if (stopped_by_ != nullptr) {
    std::string out = release(first);
    held_.clear();
    return out;
  }
  std::size_t wait = 0;
  for (const std::string& s : stop_) wait = std::max(wait, possible_start(held_, s));
  return release(held_.size() - wait);
}

std::string AnswerText::finish() {
  if (!detokenize_ || stopped()) return {};
  if (read_ < tokens_.size()) {
    const std::span<const TokenId> all(tokens_);
    const std::string before = detokenize_(all.subspan(prefix_, read_ - prefix_)), now = detokenize_(all.subspan(prefix_));
    if (now.size() > before.size()) held_ += now.substr(before.size());
    read_ = tokens_.size();
  }
  return release(held_.size());
}

}  // namespace sdx::text
