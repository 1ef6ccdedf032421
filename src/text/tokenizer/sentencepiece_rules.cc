#include "text/tokenizer/sentencepiece_rules.h"

#include <algorithm>

namespace sdx::text {
namespace {

struct Prefix {
  std::string_view text;  // what it becomes
  std::uint32_t bytes;    // of the input
};

class Normalization {
 public:
  Normalization(const SentencePieceRules& rules, const Charsmap* charsmap, const AlignedText& from)
      : rules_(rules), charsmap_(charsmap), from_(from), input_(from.text()), to_(AlignedText::instead_of(from)) {}

  AlignedText run() {
    to_.reserve(input_.size() + input_.size() / 2);
    if (rules_.remove_extra_whitespaces) {
      while (at_ < input_.size()) {
        const Prefix p = prefix();
        if (p.text != " ") break;
        at_ += p.bytes;
      }
    }
    if (at_ == input_.size()) return {};
    const auto first = static_cast<std::uint32_t>(at_);
    if (!rules_.whitespace_as_suffix && rules_.add_dummy_prefix) to_.append(space(), from_.origin({first, first + 1}));
    body();
    if (rules_.remove_extra_whitespaces) trim_end();
    if (rules_.whitespace_as_suffix && rules_.add_dummy_prefix) {
      const auto size = static_cast<std::uint32_t>(input_.size());
      to_.append(space(), from_.origin({size - 1, size}));
    }
    return std::move(to_);
  }

 private:
  std::string_view space() const { return rules_.escape_whitespaces ? "▁" : " "; }

  Prefix prefix() const {
    const std::string_view rest = input_.substr(at_);
    if (!rules_.symbols.empty()) {
      if (const std::size_t bytes = rules_.symbols.longest(rest).first; bytes != 0)
        return {rest.substr(0, bytes), static_cast<std::uint32_t>(bytes)};
    }
    if (charsmap_ != nullptr) {
      if (const auto found = charsmap_->longest(rest)) return {found->replacement, static_cast<std::uint32_t>(found->bytes)};
    }
    const std::size_t bytes = bytes_of_lead(rest[0]);
    return {rest.substr(0, bytes), static_cast<std::uint32_t>(bytes)};
  }

  void body() {
    bool after_space = rules_.remove_extra_whitespaces;
    while (at_ < input_.size()) {
      const Prefix p = prefix();
      const auto begin = static_cast<std::uint32_t>(at_);
      const Span origin = from_.origin({begin, begin + p.bytes});
      std::string_view text = p.text;
      while (after_space && text.starts_with(' ')) text.remove_prefix(1);
      if (!text.empty()) {
        after_space = text.ends_with(' ') && rules_.remove_extra_whitespaces;
        for (std::size_t i = 0; i < text.size();) {
          const bool blank = text[i] == ' ';
          const std::size_t end = blank ? i + 1 : std::min(text.find(' ', i), text.size());
          to_.append(blank ? space() : text.substr(i, end - i), origin);
          i = end;
        }
      }
      at_ += p.bytes;
    }
  }

  void trim_end() {
    std::size_t size = to_.text().size();
    while (std::string_view(to_.text()).substr(0, size).ends_with(space())) size -= space().size();
    to_.trim(0, to_.text().size() - size);
  }

  const SentencePieceRules& rules_;
  const Charsmap* charsmap_;
  const AlignedText& from_;
  std::string_view input_;
  AlignedText to_;
  std::size_t at_ = 0;
};

}  // namespace

void normalize_sentencepiece(const SentencePieceRules& rules, const Charsmap* charsmap, AlignedText& text) {
  AlignedText to = Normalization(rules, charsmap, text).run();
  text = std::move(to);
}

}  // namespace sdx::text
