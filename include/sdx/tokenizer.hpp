#pragma once
// Text to the numbers that language models work with, and back. Link libsdx_text (CMake: sardonyx::text).
//
//   const sdx::Tokenizer tokenizer = sdx::Tokenizer::load("model/tokenizer.json");
//   const sdx::Encoding encoding = tokenizer.encode("Hello world");
//   std::cout << tokenizer.decode(encoding.ids);
//
// A Tokenizer never changes once it is made: copies share what was loaded, and any number of threads may use it at once. Texts
// are UTF-8. Functions keep no references to their arguments, and what they return owns what it holds. All throw sdx::Error.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sdx/export.hpp>

namespace sdx {

// Code points [begin, end) of the text that was encoded; {0, 0} for what was added to it.
struct TextRange {
  std::uint32_t begin = 0, end = 0;
  bool operator==(const TextRange&) const = default;
};

// Tokens in order; all lists have the same length, but `overflowing`.
struct Encoding {
  std::vector<std::uint32_t> ids;
  std::vector<std::uint32_t> type_ids;  // which sequence, as models want to know it
  std::vector<std::string> tokens;      // as the vocabulary writes them: "Ġworld"
  std::vector<TextRange> offsets;
  std::vector<std::int64_t> word_ids;             // which word of its sequence; -1: none
  std::vector<std::uint8_t> special_tokens_mask;  // 1: added, for example [CLS]
  std::vector<std::uint8_t> attention_mask;       // 0: padding
  // The other parts of a text that was truncated.
  std::vector<Encoding> overflowing;
  // Where the first and the second text lie; nothing where that is not known.
  std::optional<TextRange> sequence_ranges[2];

  std::size_t size() const noexcept { return ids.size(); }
  // 0 or 1 for each token, -1 for what belongs to neither text.
  SDX_API std::vector<std::int32_t> sequence_ids() const;
};

enum class TruncationStrategy { longest_first, only_first, only_second };
enum class Side { left, right };

struct Truncation {
  std::size_t max_length = 512;  // tokens, with those that are added
  std::size_t stride = 0;        // tokens that neighbouring parts share
  TruncationStrategy strategy = TruncationStrategy::longest_first;
  Side direction = Side::right;  // the side that is cut
};

struct Padding {
  std::optional<std::size_t> fixed_length;  // nothing: the longest of the batch
  Side direction = Side::right;             // the side that grows
  std::size_t multiple_of = 0;              // 0: any length
  std::uint32_t id = 0, type_id = 0;
  std::string token = "[PAD]";
};

// The tokens that have a part to play, where the files name them.
struct SpecialTokens {
  std::optional<std::string> bos, eos, unk, sep, pad, cls, mask;
};

class Tokenizer;
namespace text {
struct Core;
const Core& core_of(const Tokenizer& tokenizer);
}  // namespace text

class SDX_API Tokenizer {
 public:
  // A file: `tokenizer.json` (Hugging Face), a SentencePiece model, `vocab.txt` (WordPiece), or a GGUF file with a vocabulary. A
  // folder: the first of tokenizer.json, tokenizer.model, spiece.model, vocab.txt, and vocab.json with merges.txt;
  // tokenizer_config.json, special_tokens_map.json and added_tokens.json beside it are heeded.
  // Throws Error(io); Error(invalid_model) that says which part of which file is wrong.
  static Tokenizer load(const std::filesystem::path& path);
  // The text of a tokenizer.json.
  static Tokenizer from_json(std::string json);

  // Throws Error(invalid_argument) for text that is not UTF-8, or settings of truncation that cannot be kept to;
  // Error(runtime_failure) where the tokenizer has no token for a text, nor one for the unknown.
  Encoding encode(std::string_view text, bool add_special_tokens = true) const;
  Encoding encode(std::string_view text, std::string_view pair, bool add_special_tokens = true) const;
  // A text that was cut into words before.
  Encoding encode_words(std::span<const std::string> words, bool add_special_tokens = true) const;
  // Each text for itself, then padded together.
  std::vector<Encoding> encode_batch(std::span<const std::string> texts, bool add_special_tokens = true) const;

  // Numbers that stand for no token are left out. The result is UTF-8: what is none becomes U+FFFD.
  std::string decode(std::span<const std::uint32_t> ids, bool skip_special_tokens = true) const;

  std::optional<std::uint32_t> token_to_id(std::string_view token) const;
  std::optional<std::string> id_to_token(std::uint32_t id) const;
  // How many different tokens there are, with those that were added.
  std::size_t vocabulary_size() const;
  // The largest number of a token.
  std::uint32_t largest_id() const;
  bool is_special(std::uint32_t id) const;
  const SpecialTokens& special_tokens() const;

  // The same tokenizer with other settings; nothing switches them off.
  Tokenizer with_truncation(std::optional<Truncation> truncation) const;
  Tokenizer with_padding(std::optional<Padding> padding) const;
  const std::optional<Truncation>& truncation() const;
  const std::optional<Padding>& padding() const;

  struct Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl);

 private:
  friend class StreamDecoder;
  friend const text::Core& text::core_of(const Tokenizer& tokenizer);
  std::shared_ptr<const Impl> impl_;
};

// Text from tokens that come one by one: what can be said for certain after each. Never half a character. The parts together are
// what decode() makes of all. For one thread.
class SDX_API StreamDecoder {
 public:
  explicit StreamDecoder(Tokenizer tokenizer, bool skip_special_tokens = true);
  // The text that this token completes; often empty.
  std::string add(std::uint32_t id);
  // What is still held back when there are no more tokens.
  std::string finish();

 private:
  std::string take(const std::string& text);
  Tokenizer tokenizer_;
  bool skip_special_tokens_;
  std::vector<std::uint32_t> ids_;  // those that the next text may depend on
  std::string prefix_;              // what the first of them read as
  std::size_t prefix_ids_ = 0;
};

}  // namespace sdx
