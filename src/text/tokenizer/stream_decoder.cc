#include <sdx/tokenizer.hpp>

#include "base/text/utf8.h"

namespace sdx {
namespace {

// More tokens than any character consists of: beyond that, the held text is invalid, and waiting longer would cost quadratic
// time.
constexpr std::size_t kMostHeld = 256;

}  // namespace

StreamDecoder::StreamDecoder(Tokenizer tokenizer, bool skip_special_tokens)
    : tokenizer_(std::move(tokenizer)), skip_special_tokens_(skip_special_tokens) {}

// Returns the part of `text` after the common prefix. Text that was returned before cannot be taken back if a decoder changes it.
std::string StreamDecoder::take(const std::string& text) {
  std::size_t common = 0;
  while (common < prefix_.size() && common < text.size() && prefix_[common] == text[common]) ++common;
  return text.substr(end_of_chars(text, common));
}

std::string StreamDecoder::add(std::uint32_t id) {
  if (prefix_.empty() && !ids_.empty()) {
    std::string text = tokenizer_.decode(ids_, skip_special_tokens_);
    if (!text.ends_with(kReplacementCharacter)) {
      prefix_ = std::move(text);
      prefix_ids_ = ids_.size();
    }
  }
  ids_.push_back(id);
  const std::string text = tokenizer_.decode(ids_, skip_special_tokens_);
  const bool held = text.size() <= prefix_.size() || text.ends_with(kReplacementCharacter);
  if (held && ids_.size() - prefix_ids_ < kMostHeld) return {};
  std::string part = text.size() <= prefix_.size() ? std::string() : take(text);
  const std::size_t rest = ids_.size() - prefix_ids_;
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(prefix_ids_));
  prefix_ = tokenizer_.decode(ids_, skip_special_tokens_);
  prefix_ids_ = rest;
  return part;
}

std::string StreamDecoder::finish() {
  const std::string text = tokenizer_.decode(ids_, skip_special_tokens_);
  std::string part = text.size() <= prefix_.size() ? std::string() : take(text);
  ids_.clear();
  prefix_.clear();
  prefix_ids_ = 0;
  return part;
}

}  // namespace sdx
