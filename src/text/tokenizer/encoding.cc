#include "text/tokenizer/encoding.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace sdx {

std::vector<std::int32_t> Encoding::sequence_ids() const {
  std::vector<std::int32_t> out(size(), -1);
  const int count = (sequence_ranges[0] ? 1 : 0) + (sequence_ranges[1] ? 1 : 0);
  for (int s = 0; s < std::max(count, 1); ++s) {
    const TextRange range = sequence_ranges[s].value_or(TextRange{0, static_cast<std::uint32_t>(size())});
    for (std::uint32_t i = range.begin; i < std::min<std::size_t>(range.end, size()); ++i) out[i] = s;
  }
  return out;
}

}  // namespace sdx

namespace sdx::text {
namespace {

// A batch of hostile settings could ask for any amount of memory.
constexpr std::size_t kLongestPadding = std::size_t{1} << 24;
constexpr std::size_t kMostOverflowing = std::size_t{1} << 20;

// Applies f to each list of two encodings.
template <class Other, class F>
void each_list(Encoding& a, Other& b, const F& f) {
  f(a.ids, b.ids);
  f(a.type_ids, b.type_ids);
  f(a.tokens, b.tokens);
  f(a.offsets, b.offsets);
  f(a.word_ids, b.word_ids);
  f(a.special_tokens_mask, b.special_tokens_mask);
  f(a.attention_mask, b.attention_mask);
}

}  // namespace

void append_part(Encoding& to, const Encoding& from, std::size_t begin, std::size_t end) {
  each_list(to, from, [&](auto& a, const auto& b) {
    a.insert(a.end(), b.begin() + static_cast<std::ptrdiff_t>(begin), b.begin() + static_cast<std::ptrdiff_t>(end));
  });
}

void add_special(Encoding& encoding, std::uint32_t id, const std::string& token, std::uint32_t type_id) {
  encoding.ids.push_back(id);
  encoding.type_ids.push_back(type_id);
  encoding.tokens.push_back(token);
  encoding.offsets.push_back({0, 0});
  encoding.word_ids.push_back(-1);
  encoding.special_tokens_mask.push_back(1);
  encoding.attention_mask.push_back(1);
}

void set_sequence(Encoding& encoding, std::size_t sequence) {
  encoding.sequence_ranges[sequence] = TextRange{0, static_cast<std::uint32_t>(encoding.size())};
}

void merge_into(Encoding& encoding, Encoding other) {
  const std::vector<Encoding> own = std::move(encoding.overflowing), others = std::move(other.overflowing);
  encoding.overflowing.clear();
  other.overflowing.clear();
  const std::size_t count = own.size() * (1 + others.size()) + others.size();
  if (count > kMostOverflowing)
    fail(ErrorCode::invalid_argument, "truncation makes {} parts; expected at most {}", count, kMostOverflowing);
  std::vector<Encoding> parts;
  parts.reserve(count);
  const auto combine = [&](const Encoding& a, const Encoding& b) { merge_into(parts.emplace_back(a), b); };
  for (const Encoding& part : own) {
    combine(part, other);
    for (const Encoding& other_part : others) combine(part, other_part);
  }
  for (const Encoding& other_part : others) combine(encoding, other_part);
  const auto before = static_cast<std::uint32_t>(encoding.size());
  for (std::size_t s = 0; s < 2; ++s) {
    if (const auto& range = other.sequence_ranges[s])
      encoding.sequence_ranges[s] = TextRange{before + range->begin, before + range->end};
  }
  each_list(encoding, other, [](auto& a, auto& b) {
    if (a.size() * 8 <= b.size()) {  // mostly a token before a long text
      b.insert(b.begin(), std::make_move_iterator(a.begin()), std::make_move_iterator(a.end()));
      a = std::move(b);
    } else {
      a.insert(a.end(), std::make_move_iterator(b.begin()), std::make_move_iterator(b.end()));
    }
  });
  encoding.overflowing = std::move(parts);
}

void truncate(Encoding& encoding, std::size_t most, const Truncation& settings) {
  const std::size_t size = encoding.size();
  if (most >= size) return;
  if (most == 0) {
    Encoding whole = std::move(encoding);
    encoding = {};
    encoding.overflowing.push_back(std::move(whole));
    return;
  }
  if (settings.stride >= most) {
    fail(ErrorCode::invalid_argument, "truncation: the stride is {} tokens, which {} leave no room for; expected less",
         settings.stride, most);
  }
  const std::size_t step = most - settings.stride;
  if (size / step > kMostOverflowing) {
    fail(ErrorCode::invalid_argument, "truncation makes {} parts; expected at most {}", size / step, kMostOverflowing);
  }
  std::vector<Encoding> parts;
  const auto add = [&](std::size_t begin, std::size_t end) { append_part(parts.emplace_back(), encoding, begin, end); };
  if (settings.direction == Side::right) {
    for (std::size_t begin = 0; begin < size; begin += step) {
      const std::size_t end = std::min(begin + most, size);
      add(begin, end);
      if (end == size) break;
    }
  } else {
    for (std::size_t end = size; end > 0; end -= std::min(step, end)) {
      const std::size_t begin = end > most ? end - most : 0;
      add(begin, end);
      if (begin == 0) break;
    }
  }
  Encoding first = std::move(parts.front());
  parts.erase(parts.begin());
  first.overflowing = std::move(parts);
  encoding = std::move(first);
}

void truncate(Encoding& first, Encoding* second, const Truncation& settings) {
  const std::size_t most = settings.max_length;
  if (most == 0) {
    truncate(first, std::size_t{0}, settings);
    if (second != nullptr) truncate(*second, std::size_t{0}, settings);
    return;
  }
  const std::size_t total = first.size() + (second == nullptr ? 0 : second->size());
  if (total <= most) return;
  const std::size_t excess = total - most;
  if (settings.strategy == TruncationStrategy::longest_first) {
    if (second == nullptr) return truncate(first, total - excess, settings);
    std::size_t n1 = first.size(), n2 = second->size();
    const bool swapped = n1 > n2;
    if (swapped) std::swap(n1, n2);
    n2 = n1 > most ? n1 : std::max(n1, most - n1);
    if (n1 + n2 > most) {
      n1 = most / 2;
      n2 = n1 + most % 2;
    }
    if (swapped) std::swap(n1, n2);
    truncate(first, n1, settings);
    truncate(*second, n2, settings);
    return;
  }
  const bool of_first = settings.strategy == TruncationStrategy::only_first;
  if (!of_first && second == nullptr)
    fail(ErrorCode::invalid_argument, "truncation: only the second text may be cut, but there is none");
  Encoding& target = of_first ? first : *second;
  if (target.size() <= excess) {
    fail(ErrorCode::invalid_argument,
         "truncation: the {} text has {} tokens, and {} must be removed; shorten the other, or allow more than {} tokens",
         of_first ? "first" : "second", target.size(), excess, most);
  }
  truncate(target, target.size() - excess, settings);
}

void pad(Encoding& encoding, std::size_t length, const Padding& settings) {
  for (Encoding& part : encoding.overflowing) pad(part, length, settings);
  if (encoding.size() >= length) return;
  if (length > kLongestPadding)
    fail(ErrorCode::invalid_argument, "padding to {} tokens; expected at most {}", length, kLongestPadding);
  const std::size_t count = length - encoding.size();
  Encoding padding;
  for (std::size_t i = 0; i < count; ++i) add_special(padding, settings.id, settings.token, settings.type_id);
  std::fill(padding.attention_mask.begin(), padding.attention_mask.end(), 0);
  if (settings.direction == Side::right) {
    append_part(encoding, padding, 0, count);
    return;
  }
  append_part(padding, encoding, 0, encoding.size());
  each_list(encoding, padding, [](auto& a, const auto& b) { a = b; });
  for (auto& range : encoding.sequence_ranges) {
    if (range)
      range = TextRange{range->begin + static_cast<std::uint32_t>(count), range->end + static_cast<std::uint32_t>(count)};
  }
}

void pad(std::span<Encoding> batch, const Padding& settings) {
  std::size_t length = settings.fixed_length.value_or(0);
  if (!settings.fixed_length) {
    for (const Encoding& e : batch) length = std::max(length, e.size());
  }
  if (settings.multiple_of > 0 && length % settings.multiple_of > 0)
    length += settings.multiple_of - length % settings.multiple_of;
  for (Encoding& e : batch) pad(e, length, settings);
}

}  // namespace sdx::text
