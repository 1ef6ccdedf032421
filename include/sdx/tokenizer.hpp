#pragma once
// Converts text to the token ids that language models work with, and back. Link libsdx_text (CMake: sardonyx::text).
//
//   const sdx::Tokenizer tokenizer = sdx::Tokenizer::load("model/tokenizer.json");
//   const sdx::Encoding encoding = tokenizer.encode("Hello world");
//   std::cout << tokenizer.decode(encoding.ids);
//
// A Tokenizer is immutable: copies share what was loaded, and any number of threads may use it at once. Texts are UTF-8.
// Functions keep no references to their arguments and return owning values. All throw sdx::Error.

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

// Code points [begin, end) of the encoded text; {0, 0} for added tokens.
struct TextRange {
  std::uint32_t begin = 0, end = 0;
  bool operator==(const TextRange&) const = default;
};

// Tokens in order; all lists except `overflowing` have the same length.
struct Encoding {
  std::vector<std::uint32_t> ids;
  std::vector<std::uint32_t> type_ids;  // index of the sequence, as models expect it
  std::vector<std::string> tokens;      // as the vocabulary writes them: "Ġworld"
  std::vector<TextRange> offsets;
  std::vector<std::int64_t> word_ids;             // index of the word in its sequence; -1: none
  std::vector<std::uint8_t> special_tokens_mask;  // 1: added, for example [CLS]
  std::vector<std::uint8_t> attention_mask;       // 0: padding
  // The remaining parts of a truncated text.
  std::vector<Encoding> overflowing;
  // Ranges of the first and the second text; no value if unknown.
  std::optional<TextRange> sequence_ranges[2];

  std::size_t size() const noexcept { return ids.size(); }
  // 0 or 1 for each token; -1 for tokens of neither text.
  SDX_API std::vector<std::int32_t> sequence_ids() const;
};

enum class TruncationStrategy { longest_first, only_first, only_second };
enum class Side { left, right };

struct Truncation {
  std::size_t max_length = 512;  // tokens, including added ones
  std::size_t stride = 0;        // tokens by which neighbouring parts overlap
  TruncationStrategy strategy = TruncationStrategy::longest_first;
  Side direction = Side::right;  // the side that is cut
};

struct Padding {
  std::optional<std::size_t> fixed_length;  // no value: the longest of the batch
  Side direction = Side::right;             // the side that is padded
  std::size_t multiple_of = 0;              // 0: any length
  std::uint32_t id = 0, type_id = 0;
  std::string token = "[PAD]";
};

// A token that is looked for in the text itself, before the model cuts it.
struct TokenToAdd {
  std::string content;
  bool single_word = false;             // not within a word
  bool lstrip = false, rstrip = false;  // takes the spaces before it, behind it
  std::optional<bool> normalized = {};  // looked for in the normalised text; no value: unless it is special
  bool special = false;                 // left out in decoding
};

// A text or two, whole or as words.
struct TextInput {
  std::vector<std::string> text;  // one, or its words
  std::optional<std::vector<std::string>> pair = {};
  bool words = false;
};

// Tokens with a special role, where the files name them.
struct SpecialTokens {
  std::optional<std::string> bos, eos, unk, sep, pad, cls, mask;
};

class Tokenizer;
namespace text {
struct TokenizerPipeline;
const TokenizerPipeline& pipeline_of(const Tokenizer& tokenizer);
}  // namespace text

class SDX_API Tokenizer {
 public:
  // A file: `tokenizer.json` (Hugging Face), a SentencePiece model, `vocab.txt` (WordPiece), or a GGUF file with a vocabulary. A
  // folder: the first of tokenizer.json, tokenizer.model, spiece.model, vocab.txt, and vocab.json with merges.txt; also reads
  // tokenizer_config.json, special_tokens_map.json and added_tokens.json beside it. Throws Error(io), or Error(invalid_model)
  // saying which part of which file is wrong.
  static Tokenizer load(const std::filesystem::path& path);
  // Reads the contents of a tokenizer.json.
  static Tokenizer from_json(std::string json);

  // Throws Error(invalid_argument) for text that is not UTF-8 or truncation settings that cannot be met; Error(runtime_failure)
  // if the tokenizer has neither a token for a text nor an unknown token.
  Encoding encode(std::string_view text, bool add_special_tokens = true) const;
  Encoding encode(std::string_view text, std::string_view pair, bool add_special_tokens = true) const;
  // Without it, C++ would take a literal for the bool above.
  Encoding encode(std::string_view text, const char* pair, bool add_special_tokens = true) const {
    return encode(text, std::string_view(pair), add_special_tokens);
  }
  // The same, but no added token begins at the bytes `plain`, which are in order: what is written there is text.
  Encoding encode(std::string_view text, std::span<const std::size_t> plain, bool add_special_tokens = true) const;
  // The bytes of a text at which special tokens begin, overlapping ones, too.
  std::vector<std::size_t> special_places(std::string_view text) const;
  // Encodes a text already split into words.
  Encoding encode_words(std::span<const std::string> words, bool add_special_tokens = true) const;
  Encoding encode(const TextInput& input, bool add_special_tokens = true) const;
  // Encodes each text separately, then pads them together.
  std::vector<Encoding> encode_batch(std::span<const std::string> texts, bool add_special_tokens = true) const;
  std::vector<Encoding> encode_batch(std::span<const TextInput> inputs, bool add_special_tokens = true) const;

  // Skips ids that stand for no token. The result is UTF-8; invalid bytes become U+FFFD.
  std::string decode(std::span<const std::uint32_t> ids, bool skip_special_tokens = true) const;

  std::optional<std::uint32_t> token_to_id(std::string_view token) const;
  std::optional<std::string> id_to_token(std::uint32_t id) const;
  // Number of distinct tokens, including added ones.
  std::size_t vocabulary_size() const;
  // The largest token id.
  std::uint32_t largest_id() const;
  bool is_special(std::uint32_t id) const;
  const SpecialTokens& special_tokens() const;

  // The same tokenizer with other settings; no value turns the setting off.
  Tokenizer with_truncation(std::optional<Truncation> truncation) const;
  Tokenizer with_padding(std::optional<Padding> padding) const;
  // The same tokenizer with these tokens as well, in order. One that the vocabulary has keeps its number, others get the next
  // free one. `count`, where given, becomes the number of those that are new or differ from what was there. Throws
  // Error(invalid_model) for a token that is too long.
  Tokenizer with_tokens(std::span<const TokenToAdd> tokens, std::size_t* count = nullptr) const;
  const std::optional<Truncation>& truncation() const;
  const std::optional<Padding>& padding() const;

  struct Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl);

 private:
  friend class StreamDecoder;
  friend const text::TokenizerPipeline& text::pipeline_of(const Tokenizer& tokenizer);
  std::shared_ptr<const Impl> impl_;
};

// Decodes tokens one by one, returning after each the text that is certain, never half a character. The pieces together equal
// decode() of all tokens. Use from one thread at a time.
class SDX_API StreamDecoder {
 public:
  explicit StreamDecoder(Tokenizer tokenizer, bool skip_special_tokens = true);
  // Returns the text that this token completes; often empty.
  std::string add(std::uint32_t id);
  // Returns the text still held back; call it after the last token.
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
