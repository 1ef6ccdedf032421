#include <sdx/tokenizer.hpp>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/text/utf8.h"
#include "text/tokenizer/encoding.h"
#include "text/tokenizer/load/load.h"
#include "text/tokenizer/pipeline.h"
#include "text/unicode/unicode.h"

namespace sdx::text {
namespace {

constexpr std::size_t kLongestText = std::size_t{1} << 30;

// Turns places in bytes, which mostly grow, into places in characters.
class CharCounter {
 public:
  explicit CharCounter(std::string_view text) : text_(text), ascii_(is_ascii(text)) {}

  TextRange range(Span bytes) {
    if (ascii_) return {bytes.begin, bytes.end};
    const std::uint32_t begin = count(bytes.begin);
    return {begin, count(bytes.end)};
  }
  // For bytes that need not be whole characters, nor lie within the text.
  TextRange raw_range(Span bytes) {
    if (bytes.begin >= text_.size()) return {bytes.begin, bytes.end};
    const std::uint32_t begin = character_of(bytes.begin);
    if (bytes.end < text_.size()) return {begin, character_of(bytes.end)};
    return {begin, (bytes.end <= text_.size() ? character_of(bytes.end - 1) : begin + 1) + 1};
  }

 private:
  std::uint32_t count(std::size_t byte) {
    while (byte_ < byte) chars_ += continues_char(text_[byte_++]) ? 0 : 1;
    while (byte_ > byte) chars_ -= continues_char(text_[--byte_]) ? 0 : 1;
    return chars_;
  }
  std::uint32_t character_of(std::size_t byte) { return count(byte + 1) - 1; }
  std::string_view text_;
  bool ascii_;
  std::size_t byte_ = 0;
  std::uint32_t chars_ = 0;
};

class BorrowedWorkspace {
 public:
  explicit BorrowedWorkspace(WorkspacePool& pool) : pool_(pool), workspace_(pool.take()) {}
  ~BorrowedWorkspace() { pool_.give(std::move(workspace_)); }
  BorrowedWorkspace(const BorrowedWorkspace&) = delete;
  BorrowedWorkspace& operator=(const BorrowedWorkspace&) = delete;
  Workspace& operator*() { return *workspace_; }

 private:
  WorkspacePool& pool_;
  std::unique_ptr<Workspace> workspace_;
};

// One text, on its way to an encoding.
class Sequence {
 public:
  Sequence(const TokenizerPipeline& pipeline, std::string_view text, std::uint32_t type_id, std::span<const std::size_t> plain)
      : core_(pipeline), input_(text), chars_(text), type_id_(type_id) {
    if (text.size() >= kLongestText) {
      fail(ErrorCode::invalid_argument, "the text has {} bytes; expected less than {}: encode it in parts", text.size(),
           kLongestText);
    }
    if (const std::size_t valid = valid_utf8(text); valid != text.size()) {
      fail(ErrorCode::invalid_argument, "the text is not UTF-8: byte {}", valid);
    }
    text_ = pipeline.added.extract(text, pipeline.normalizer, plain);
    pre_tokenize(pipeline.pre_tokenizer, pipeline.keeps_bytes, text_);
  }

  void tokenize(Workspace& workspace) {
    starts_.reserve(text_.splits.size() + 1);
    tokens_.reserve(text_.splits.size() * 2);
    for (const Split& split : text_.splits) {
      starts_.push_back(tokens_.size());
      add(split, workspace);
    }
    starts_.push_back(tokens_.size());
  }

  Encoding encoding(std::int64_t word) {
    Encoding e;
    const std::size_t count = tokens_.size();
    e.ids.reserve(count);
    e.tokens.reserve(count);
    e.offsets.reserve(count);
    e.word_ids.reserve(count);
    for (std::size_t i = 0; i < text_.splits.size(); ++i) {
      const Split& split = text_.splits[i];
      for (std::size_t t = starts_[i]; t < starts_[i + 1]; ++t)
        put(split, tokens_[t], word >= 0 ? word : static_cast<std::int64_t>(i), e);
    }
    e.type_ids.assign(e.ids.size(), type_id_);
    e.special_tokens_mask.assign(e.ids.size(), 0);
    e.attention_mask.assign(e.ids.size(), 1);
    return e;
  }

 private:
  void add(const Split& split, Workspace& workspace) {
    const std::string_view view = text_.text.view(split.range);
    if (split.is_token) {
      tokens_.push_back({split.token, 0, split.range.size(), true});
    } else if (text_.bytes) {
      core_.model->tokenize_bytes(view, workspace, tokens_);
    } else {
      core_.model->tokenize(view, workspace, tokens_);
    }
  }

  void put(const Split& split, const Token& token, std::int64_t word, Encoding& e) {
    const Span range{split.range.begin + token.begin, split.range.begin + token.end};
    e.ids.push_back(token.id);
    if (token.from_text) {
      e.tokens.emplace_back(text_.text.view(range));
    } else {
      e.tokens.emplace_back(core_.model->vocabulary().token(token.id).value_or(std::string_view{}));
    }
    // Byte tokens for a prefix that is not in the text reach beyond the text; their offsets follow the package `tokenizers`.
    const bool beyond = token.end > split.range.size() || token.begin >= token.end;
    e.offsets.push_back(beyond ? chars_.raw_range({token.begin, token.end}) : chars_.range(text_.text.origin(range)));
    e.word_ids.push_back(word);
  }

  const TokenizerPipeline& core_;
  std::string_view input_;
  CharCounter chars_;
  std::uint32_t type_id_;
  PreTokenized text_;
  std::vector<Token> tokens_;
  std::vector<std::size_t> starts_;  // of each word's tokens, and the end
};

Encoding encode_sequence(const Tokenizer::Impl& impl, std::string_view text, std::uint32_t type_id, std::int64_t word = -1,
                         std::span<const std::size_t> plain = {}) {
  Sequence sequence(*impl.pipeline, text, type_id, plain);
  BorrowedWorkspace workspace(impl.pipeline->workspaces);
  sequence.tokenize(*workspace);
  return sequence.encoding(word);
}

// A text that is cut into words already.
Encoding encode_word_list(const Tokenizer::Impl& impl, std::span<const std::string> words, std::uint32_t type_id) {
  Encoding out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    merge_into(out, encode_sequence(impl, words[i], type_id, static_cast<std::int64_t>(i)));
  }
  return out;
}

Encoding finish(const Tokenizer::Impl& impl, std::vector<Encoding> parts, bool add_special_tokens) {
  const TokenizerPipeline& pipeline = *impl.pipeline;
  if (impl.truncation) {
    Truncation settings = *impl.truncation;
    const std::size_t added = add_special_tokens ? added_tokens(pipeline.post_processor, parts.size() > 1) : 0;
    // If the added tokens alone are too many, `tokenizers` does not truncate either.
    settings.max_length = settings.max_length < added ? std::numeric_limits<std::size_t>::max() : settings.max_length - added;
    truncate(parts[0], parts.size() > 1 ? &parts[1] : nullptr, settings);
  }
  Encoding e = post_process(pipeline.post_processor, pipeline.has_post_processor, std::move(parts), add_special_tokens);
  if (impl.padding) pad(std::span(&e, 1), *impl.padding);
  return e;
}

}  // namespace

std::unique_ptr<Workspace> WorkspacePool::take() {
  const std::scoped_lock lock(mutex_);
  if (free_.empty()) return std::make_unique<Workspace>();
  std::unique_ptr<Workspace> workspace = std::move(free_.back());
  free_.pop_back();
  return workspace;
}

void WorkspacePool::give(std::unique_ptr<Workspace> workspace) {
  const std::scoped_lock lock(mutex_);
  if (free_.size() < kMost) free_.push_back(std::move(workspace));
}

std::shared_ptr<const TokenizerPipeline> TokenizerPipeline::with_tokens(const std::vector<AddedToken>& tokens,
                                                                        std::size_t& count) const {
  auto out = std::make_shared<TokenizerPipeline>();
  out->normalizer = normalizer;
  out->pre_tokenizer = pre_tokenizer;
  out->model = model;
  out->added = added;
  out->has_post_processor = has_post_processor;
  out->has_decoder = has_decoder;
  out->post_processor = post_processor;
  out->decoder = decoder;
  out->special = special;
  out->truncation = truncation;
  out->padding = padding;
  count = out->added.add(tokens, model->vocabulary(), normalizer);
  out->finish();
  return out;
}

void TokenizerPipeline::finish() {
  // Byte-level characters need not be written out where the model knows them all.
  keeps_bytes = model->takes_bytes() && !pre_tokenizer.empty() && pre_tokenizer.back().kind == PreTokenizerStep::Kind::byte_level;
  for (const auto& [id, token] : added.all()) {
    if (added.is_special(*added.text(id))) special_ids.insert(id);
    if (!token.special) continue;
    if (const auto other = model->vocabulary().id(token.content); other && added.text(*other) == nullptr)
      special_ids.insert(*other);
  }
}

}  // namespace sdx::text

namespace sdx {

Tokenizer::Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  return Tokenizer(std::make_shared<Impl>(text::make_impl(text::load_pipeline(path))));
}

Tokenizer Tokenizer::from_json(std::string json) {
  return Tokenizer(std::make_shared<Impl>(text::make_impl(text::pipeline_of_json(std::move(json)))));
}

Encoding Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  std::vector<Encoding> parts;
  parts.push_back(text::encode_sequence(*impl_, text, 0));
  return text::finish(*impl_, std::move(parts), add_special_tokens);
}

Encoding Tokenizer::encode(std::string_view text, std::span<const std::size_t> plain, bool add_special_tokens) const {
  std::vector<Encoding> parts;
  parts.push_back(text::encode_sequence(*impl_, text, 0, -1, plain));
  return text::finish(*impl_, std::move(parts), add_special_tokens);
}

std::vector<std::size_t> Tokenizer::special_places(std::string_view text) const {
  return impl_->pipeline->added.special_places(text);
}

Encoding Tokenizer::encode(std::string_view text, std::string_view pair, bool add_special_tokens) const {
  std::vector<Encoding> parts;
  parts.push_back(text::encode_sequence(*impl_, text, 0));
  parts.push_back(text::encode_sequence(*impl_, pair, 1));
  return text::finish(*impl_, std::move(parts), add_special_tokens);
}

Encoding Tokenizer::encode_words(std::span<const std::string> words, bool add_special_tokens) const {
  std::vector<Encoding> parts;
  parts.push_back(text::encode_word_list(*impl_, words, 0));
  return text::finish(*impl_, std::move(parts), add_special_tokens);
}

Encoding Tokenizer::encode(const TextInput& input, bool add_special_tokens) const {
  std::vector<Encoding> parts;
  const auto add = [&](const std::vector<std::string>& texts) {
    const auto type = static_cast<std::uint32_t>(parts.size());
    if (!input.words && texts.size() != 1) fail(ErrorCode::invalid_argument, "{} texts where one was expected", texts.size());
    parts.push_back(input.words ? text::encode_word_list(*impl_, texts, type) : text::encode_sequence(*impl_, texts[0], type));
  };
  add(input.text);
  if (input.pair) add(*input.pair);
  return text::finish(*impl_, std::move(parts), add_special_tokens);
}

std::vector<Encoding> Tokenizer::encode_batch(std::span<const std::string> texts, bool add_special_tokens) const {
  std::vector<Encoding> out;
  out.reserve(texts.size());
  for (const std::string& text : texts) out.push_back(encode(text, add_special_tokens));
  if (impl_->padding) text::pad(out, *impl_->padding);
  return out;
}

std::vector<Encoding> Tokenizer::encode_batch(std::span<const TextInput> inputs, bool add_special_tokens) const {
  std::vector<Encoding> out;
  out.reserve(inputs.size());
  for (const TextInput& input : inputs) out.push_back(encode(input, add_special_tokens));
  if (impl_->padding) text::pad(out, *impl_->padding);
  return out;
}

std::string Tokenizer::decode(std::span<const std::uint32_t> ids, bool skip_special_tokens) const {
  const text::TokenizerPipeline& pipeline = *impl_->pipeline;
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::uint32_t id : ids) {
    if (skip_special_tokens && pipeline.special_ids.contains(id)) continue;
    if (const std::string* added = pipeline.added.text(id)) {
      tokens.push_back(*added);
    } else if (const auto token = pipeline.model->vocabulary().token(id)) {
      tokens.emplace_back(*token);
    }
  }
  for (const text::DecoderStep& step : pipeline.decoder) text::decode(step, tokens);
  std::string out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0 && !pipeline.has_decoder) out += ' ';
    out += tokens[i];
  }
  return out;
}

std::optional<std::uint32_t> Tokenizer::token_to_id(std::string_view token) const {
  const auto added = impl_->pipeline->added.id(token);
  return added ? added : impl_->pipeline->model->vocabulary().id(token);
}

std::optional<std::string> Tokenizer::id_to_token(std::uint32_t id) const {
  if (const std::string* added = impl_->pipeline->added.text(id)) return *added;
  const auto token = impl_->pipeline->model->vocabulary().token(id);
  if (!token) return std::nullopt;
  return std::string(*token);
}

std::size_t Tokenizer::vocabulary_size() const {
  const auto& vocabulary = impl_->pipeline->model->vocabulary();
  std::size_t count = vocabulary.size();
  for (const auto& [id, token] : impl_->pipeline->added.all()) count += vocabulary.contains(token.content) ? 0 : 1;
  return count;
}

std::uint32_t Tokenizer::largest_id() const {
  const auto& added = impl_->pipeline->added.all();
  return std::max(impl_->pipeline->model->vocabulary().largest_id(), added.empty() ? 0 : added.rbegin()->first);
}

bool Tokenizer::is_special(std::uint32_t id) const { return impl_->pipeline->special_ids.contains(id); }
const SpecialTokens& Tokenizer::special_tokens() const { return impl_->pipeline->special; }
const std::optional<Truncation>& Tokenizer::truncation() const { return impl_->truncation; }
const std::optional<Padding>& Tokenizer::padding() const { return impl_->padding; }

Tokenizer Tokenizer::with_truncation(std::optional<Truncation> truncation) const {
  if (truncation) {
    const std::size_t added = text::added_tokens(impl_->pipeline->post_processor, false);
    if (truncation->max_length >= added && truncation->max_length - added < truncation->stride) {
      fail(ErrorCode::invalid_argument, "truncation: the stride is {}; expected at most {}, which is {} less {} added tokens",
           truncation->stride, truncation->max_length - added, truncation->max_length, added);
    }
  }
  auto impl = std::make_shared<Impl>(*impl_);
  impl->truncation = truncation;
  return Tokenizer(std::move(impl));
}

Tokenizer Tokenizer::with_padding(std::optional<Padding> padding) const {
  auto impl = std::make_shared<Impl>(*impl_);
  impl->padding = std::move(padding);
  return Tokenizer(std::move(impl));
}

Tokenizer Tokenizer::with_tokens(std::span<const TokenToAdd> tokens, std::size_t* count) const {
  std::vector<text::AddedToken> added;
  for (const TokenToAdd& t : tokens) {
    added.push_back({t.content, t.single_word, t.lstrip, t.rstrip, t.normalized.value_or(!t.special), t.special});
  }
  std::size_t made = 0;
  auto impl = std::make_shared<Impl>(*impl_);
  impl->pipeline = impl_->pipeline->with_tokens(added, made);
  if (count != nullptr) *count = made;
  return Tokenizer(std::move(impl));
}

}  // namespace sdx
