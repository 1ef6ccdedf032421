#include "text/tokenizer/added_tokens.h"

#include <algorithm>

#include "base/error.h"
#include "text/unicode/unicode.h"

namespace sdx::text {
namespace {

std::size_t char_before(std::string_view text, std::size_t at) {
  --at;
  while (at > 0 && continues_char(text[at])) --at;
  return at;
}

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  std::size_t at = char_before(text, text.size());
  return is_word_char(next_char(text, at));
}

bool starts_with_word(std::string_view text) {
  std::size_t at = 0;
  return !text.empty() && is_word_char(next_char(text, at));
}

}  // namespace

std::size_t AddedTokens::add(const std::vector<AddedToken>& tokens, const Vocabulary& vocabulary,
                             const std::vector<NormalizerStep>& normalizer) {
  std::size_t count = 0;
  std::uint64_t next = vocabulary.size();
  if (!by_id_.empty()) {
    const std::uint64_t largest = by_id_.rbegin()->first;
    if (largest >= vocabulary.size() || vocabulary.size() == 0) next = largest + 1;
  }
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    std::optional<std::uint32_t> known = id(token.content);
    if (known && by_id_.contains(*known) && by_id_.at(*known) == token) continue;
    if (!known) known = vocabulary.id(token.content);
    if (!known) {
      if (next > 0xFFFFFFFFU) fail(ErrorCode::invalid_model, "there is no number left for the added token '{}'", token.content);
      known = static_cast<std::uint32_t>(next++);
    }
    put(*known, token);
    ++count;
  }
  build(normalizer);
  return count;
}

void AddedTokens::put(std::uint32_t id, AddedToken token) {
  if (token.content.size() > kLongest) {
    fail(ErrorCode::invalid_model, "an added token has {} bytes; expected at most {}: '{}…'", token.content.size(), kLongest,
         std::string_view(token.content).substr(0, 20));
  }
  by_content_[token.content] = id;
  if (token.special) specials_.insert(token.content);
  by_id_[id] = std::move(token);
}

void AddedTokens::build(const std::vector<NormalizerStep>& normalizer) {
  normalized_.clear();
  for (const auto& [id, token] : by_id_) {
    if (!token.normalized || normalizer.empty()) continue;
    AlignedText text(token.content, 0);
    normalize(normalizer, text);
    if (text.text() == token.content) continue;
    if (text.text().size() > kLongest) {
      fail(ErrorCode::invalid_model, "the added token '{}' has {} bytes after normalization; expected at most {}", token.content,
           text.text().size(), kLongest);
    }
    normalized_[id] = text.text();
  }
  raw_ = make_finder(false);
  cooked_ = make_finder(true);
}

AddedTokens::Finder AddedTokens::make_finder(bool normalized) const {
  Finder finder;
  std::vector<Trie::Key> keys;
  // If two tokens are equal after normalization, the lower number counts; a token that is empty then is never found.
  for (auto i = by_id_.rbegin(); i != by_id_.rend(); ++i) {
    const auto& [id, token] = *i;
    if (token.normalized != normalized || !token.searched) continue;
    const std::string& content = normalized ? shown(id, token) : token.content;
    if (content.empty()) continue;
    keys.push_back({content, id});
    finder.starts[static_cast<unsigned char>(content[0])] = true;
  }
  finder.trie = Trie(std::move(keys));
  return finder;
}

std::optional<std::uint32_t> AddedTokens::id(std::string_view token) const {
  const auto found = by_content_.find(std::string(token));
  if (found == by_content_.end()) return std::nullopt;
  return found->second;
}

const std::string* AddedTokens::text(std::uint32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &shown(id, found->second);
}

const std::string& AddedTokens::shown(std::uint32_t id, const AddedToken& token) const {
  const auto cooked = normalized_.find(id);
  return cooked == normalized_.end() ? token.content : cooked->second;
}

std::pair<std::size_t, std::uint32_t> AddedTokens::longest_at(const Finder& finder, std::string_view text, std::size_t at) const {
  if (!finder.starts[static_cast<unsigned char>(text[at])]) return {0, 0};
  return finder.trie.longest(text.substr(at));
}

bool AddedTokens::Barred::at(std::size_t byte) const {
  if (places.empty()) return false;
  const auto place = static_cast<std::uint32_t>(byte);
  return std::binary_search(places.begin(), places.end(), from == nullptr ? byte : from->origin({place, place + 1}).begin);
}

std::vector<std::size_t> AddedTokens::special_places(std::string_view text) const {
  std::vector<std::size_t> out;
  const auto begins = [&](const Finder& finder, std::size_t at) {
    if (finder.trie.empty()) return false;
    const auto [length, id] = longest_at(finder, text, at);
    return length > 0 && by_id_.at(id).special;
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (begins(raw_, at) || begins(cooked_, at)) out.push_back(at);
  }
  return out;
}

// Leftmost first, of several the longest. A match that is refused is passed over whole.
void AddedTokens::find(const Finder& finder, std::string_view text, std::uint32_t offset, const Barred& barred,
                       std::vector<Split>& to) const {
  std::size_t done = 0;
  const auto put = [&](std::size_t begin, std::size_t end, std::optional<std::uint32_t> token) {
    if (begin >= end) return;
    to.push_back({{static_cast<std::uint32_t>(offset + begin), static_cast<std::uint32_t>(offset + end)},
                  token.has_value(),
                  token.value_or(0)});
  };
  for (std::size_t at = 0; at < text.size() && !finder.trie.empty();) {
    const auto [length, id] = longest_at(finder, text, at);
    if (length == 0 || barred.at(offset + at)) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + length;
    at = end;
    const AddedToken& token = by_id_.at(id);
    if (token.single_word && (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end)))) continue;
    while (token.lstrip && begin > done) {
      const std::size_t before = char_before(text, begin);
      std::size_t i = before;
      if (!is_white_space(next_char(text, i))) break;
      begin = before;
    }
    // Without lstrip a match may begin within the spaces that the one before took: both count, as in `tokenizers`.
    if (token.lstrip) begin = std::max(begin, done);
    while (token.rstrip && end < text.size()) {
      std::size_t after = end;
      if (!is_white_space(next_char(text, after))) break;
      end = after;
    }
    put(done, begin, std::nullopt);
    put(begin, end, id);
    done = end;
  }
  put(done, text.size(), std::nullopt);
}

PreTokenized AddedTokens::extract(std::string_view input, const std::vector<NormalizerStep>& normalizer,
                                  std::span<const std::size_t> plain) const {
  PreTokenized out;
  std::vector<Split> sections;
  find(raw_, input, 0, {plain}, sections);
  if (normalizer.empty()) {
    out.text = AlignedText(input, 0);
    for (const Split& s : sections) {
      if (s.is_token) {
        out.splits.push_back(s);
      } else {
        find(cooked_, input.substr(s.range.begin, s.range.size()), s.range.begin, {plain}, out.splits);
      }
    }
    return out;
  }
  for (const Split& s : sections) {
    const auto begin = static_cast<std::uint32_t>(out.text.text().size());
    AlignedText part(input.substr(s.range.begin, s.range.size()), s.range.begin);
    if (!s.is_token) normalize(normalizer, part);
    if (sections.size() == 1) {
      out.text = std::move(part);
    } else {
      out.text.append(part);
    }
    const auto end = static_cast<std::uint32_t>(out.text.text().size());
    if (s.is_token) {
      out.splits.push_back({{begin, end}, true, s.token});
    } else {
      find(cooked_, out.text.view({begin, end}), begin, {plain, &out.text}, out.splits);
    }
  }
  return out;
}

}  // namespace sdx::text
