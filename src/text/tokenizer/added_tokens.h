#pragma once
// Tokens that are looked for in the text itself, before the model cuts it.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "text/tokenizer/model/trie.h"
#include "text/tokenizer/model/vocabulary.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/pre_tokenizer.h"

namespace sdx::text {

struct AddedToken {
  std::string content;
  bool single_word = false, lstrip = false, rstrip = false, normalized = true, special = false;
  bool searched = true;  // else it is never found in text
  bool operator==(const AddedToken&) const = default;
};

class AddedTokens {
 public:
  // Adds tokens in order. A token of the model's vocabulary keeps its number there, others get the next free one. Returns how
  // many were not there as they are. Throws Error(invalid_model).
  std::size_t add(const std::vector<AddedToken>& tokens, const Vocabulary& vocabulary,
                  const std::vector<NormalizerStep>& normalizer);
  // Adds a token with a number that is known; the last for a number counts. After the last of them, build().
  void put(std::uint32_t id, AddedToken token);
  void build(const std::vector<NormalizerStep>& normalizer);

  std::optional<std::uint32_t> id(std::string_view token) const;
  // The text of a token in decoding: its normalized form, if it is searched in normalized text.
  const std::string* text(std::uint32_t id) const;
  bool is_special(std::string_view text) const { return specials_.contains(std::string(text)); }
  const std::map<std::uint32_t, AddedToken>& all() const noexcept { return by_id_; }

  // Cuts out the tokens and normalizes the text between them. No token begins at the bytes `plain`, which are in order.
  PreTokenized extract(std::string_view input, const std::vector<NormalizerStep>& normalizer,
                       std::span<const std::size_t> plain = {}) const;
  // The bytes of a text, as it is, at which special tokens would begin.
  std::vector<std::size_t> special_places(std::string_view text) const;

 private:
  // The form in which `token`, number `id`, appears in the text that is searched for it.
  const std::string& shown(std::uint32_t id, const AddedToken& token) const;
  static constexpr std::size_t kLongest = 1024;  // bytes
  struct Finder {
    Trie trie;
    bool starts[256] = {};  // bytes that a token begins with
  };
  // Bytes of the input at which no token begins. `from`: the text that is searched, where that is not the input.
  struct Barred {
    std::span<const std::size_t> places;
    const AlignedText* from = nullptr;
    bool at(std::size_t byte) const;
  };
  Finder make_finder(bool normalized) const;
  void find(const Finder& finder, std::string_view text, std::uint32_t offset, const Barred& barred,
            std::vector<Split>& to) const;
  std::pair<std::size_t, std::uint32_t> longest_at(const Finder& finder, std::string_view text, std::size_t at) const;

  std::unordered_map<std::string, std::uint32_t> by_content_;
  std::map<std::uint32_t, AddedToken> by_id_;
  std::unordered_map<std::uint32_t, std::string> normalized_;  // where that differs from the content
  std::unordered_set<std::string> specials_;
  Finder raw_, cooked_;
};

}  // namespace sdx::text
