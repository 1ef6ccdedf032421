#include "text/tokenizer/aligned.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/utf8.h"

namespace sdx::text {

AlignedText AlignedText::instead_of(const AlignedText& from) {
  AlignedText to;
  to.most_ = from.most_;
  return to;
}

void AlignedText::check_size(std::size_t bytes) const {
  if (bytes > most_) fail(ErrorCode::out_of_memory, "the tokenizer turns a text into more than {} bytes", most_);
}

Span AlignedText::origin(Span range) const noexcept {
  if (!spans_.empty()) return {spans_[range.begin].begin, spans_[range.end - 1].end};
  std::size_t begin = range.begin, end = range.end;
  while (begin > 0 && continues_char(text_[begin])) --begin;
  while (end < text_.size() && continues_char(text_[end])) ++end;
  return {static_cast<std::uint32_t>(shift_ + begin), static_cast<std::uint32_t>(shift_ + end)};
}

void AlignedText::materialize() {
  if (!spans_.empty()) return;
  spans_.reserve(text_.size());
  for (std::size_t at = 0; at < text_.size();) {
    const std::size_t bytes = bytes_of_lead(text_[at]);
    const auto first = static_cast<std::uint32_t>(shift_ + at);
    spans_.insert(spans_.end(), bytes, Span{first, first + static_cast<std::uint32_t>(bytes)});
    at += bytes;
  }
}

void AlignedText::transform(std::span<const Change> chars, std::size_t removed) {
  materialize();
  std::string text;
  std::vector<Span> spans;
  text.reserve(text_.size());
  spans.reserve(text_.size());
  std::size_t at = 0;
  const auto skip = [&](std::size_t count) {
    for (; count > 0 && at < text_.size(); --count) at += bytes_of_lead(text_[at]);
  };
  skip(removed);
  for (const Change& change : chars) {
    Span span{shift_, shift_};
    if (change.change > 0) {
      if (at > 0) span = spans_[at - 1];
    } else {
      span = at < spans_.size() ? spans_[at] : spans_.empty() ? span : spans_.back();
      skip(1 + static_cast<std::size_t>(-change.change));
    }
    append_utf8(text, change.c);
    check_size(text.size());
    spans.resize(text.size(), span);
  }
  text_ = std::move(text);
  spans_ = std::move(spans);
}

void AlignedText::replace(std::span<const Match> matches, std::string_view content) {
  if (std::none_of(matches.begin(), matches.end(), [](const Match& m) { return m.matched; })) return;
  materialize();
  std::string text;
  std::vector<Span> spans;
  text.reserve(text_.size() + content.size());
  spans.reserve(text_.size() + content.size());
  for (const Match& m : matches) {
    if (m.matched) {
      check_size(text.size() + content.size());
      text += content;
      spans.resize(text.size(), m.end == 0 ? Span{shift_, shift_} : spans_[m.end - 1]);
    } else {
      text.append(text_, m.begin, m.end - m.begin);
      spans.insert(spans.end(), spans_.begin() + m.begin, spans_.begin() + m.end);
    }
  }
  text_ = std::move(text);
  spans_ = std::move(spans);
}

void AlignedText::prepend(std::string_view s) {
  if (text_.empty() || s.empty()) return;
  check_size(text_.size() + s.size());
  materialize();
  spans_.insert(spans_.begin(), s.size(), spans_.front());
  text_.insert(0, s);
}

void AlignedText::trim(std::size_t left, std::size_t right) {
  if (left == 0 && right == 0) return;
  if (spans_.empty()) {
    shift_ += static_cast<std::uint32_t>(left);
  } else {
    spans_.erase(spans_.end() - static_cast<std::ptrdiff_t>(right), spans_.end());
    spans_.erase(spans_.begin(), spans_.begin() + static_cast<std::ptrdiff_t>(left));
  }
  text_.erase(text_.size() - right);
  text_.erase(0, left);
}

void AlignedText::append(const AlignedText& other, Span range) {
  if (range.size() == 0) return;
  check_size(text_.size() + range.size());
  const bool continues =
      spans_.empty() && other.spans_.empty() && (text_.empty() || shift_ + text_.size() == other.shift_ + range.begin);
  if (continues) {
    if (text_.empty()) shift_ = other.shift_ + range.begin;
    text_.append(other.text_, range.begin, range.size());
    return;
  }
  materialize();
  text_.append(other.text_, range.begin, range.size());
  if (!other.spans_.empty()) {
    spans_.insert(spans_.end(), other.spans_.begin() + range.begin, other.spans_.begin() + range.end);
    return;
  }
  for (std::size_t at = range.begin; at < range.end;) {
    const std::size_t bytes = bytes_of_lead(other.text_[at]);
    const auto first = static_cast<std::uint32_t>(other.shift_ + at);
    spans_.insert(spans_.end(), bytes, Span{first, first + static_cast<std::uint32_t>(bytes)});
    at += bytes;
  }
}

void AlignedText::append(std::string_view text, Span origin) {
  check_size(text_.size() + text.size());
  materialize();
  text_ += text;
  spans_.insert(spans_.end(), text.size(), origin);
}

void AlignedText::reserve(std::size_t bytes) { text_.reserve(bytes); }

}  // namespace sdx::text
