#include "text/tokenizer/token_bytes.h"

#include <algorithm>

#include "base/error.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/pipeline.h"

namespace sdx::text {
namespace {

using Kind = DecoderStep::Kind;

bool has(const std::vector<DecoderStep>& steps, Kind kind) {
  return std::any_of(steps.begin(), steps.end(), [&](const DecoderStep& s) { return s.kind == kind; });
}

std::string bytes_of(const std::vector<DecoderStep>& steps, const std::string& token) {
  if (has(steps, Kind::byte_fallback)) {
    if (const auto byte = byte_of_token(token)) return std::string(1, *byte);
  }
  if (has(steps, Kind::byte_level)) return bytes_of_text(token).value_or(token);
  return replace_all(token, "\xe2\x96\x81", " ");  // U+2581, SentencePiece's blank
}

}  // namespace

std::uint32_t token_count(const Tokenizer& tokenizer, std::int64_t vocabulary) {
  std::int64_t count = std::int64_t{tokenizer.largest_id()} + 1;
  if (vocabulary > 0) count = std::min(count, vocabulary);
  if (count > kMostTokens) {
    fail(ErrorCode::invalid_model, "the tokenizer has a token number {}; the largest that is supported is {}",
         tokenizer.largest_id(), kMostTokens - 1);
  }
  return static_cast<std::uint32_t>(count);
}

std::vector<std::string> token_bytes(const Tokenizer& tokenizer, std::int64_t vocabulary) {
  const std::uint32_t count = token_count(tokenizer, vocabulary);
  const TokenizerPipeline& pipeline = pipeline_of(tokenizer);
  for (const Kind kind : {Kind::wordpiece, Kind::ctc, Kind::bpe}) {
    if (has(pipeline.decoder, kind)) {
      fail(ErrorCode::not_implemented,
           "constrained output needs a tokenizer whose tokens are simply joined (byte-level BPE, SentencePiece), not one that "
           "puts "
           "blanks between words");
    }
  }
  std::vector<std::string> out(count);
  for (std::uint32_t id = 0; id < out.size(); ++id) {
    if (tokenizer.is_special(id)) continue;
    const std::string* added = pipeline.added.text(id);
    if (added != nullptr) {
      out[id] = *added;
    } else if (const auto token = pipeline.model->vocabulary().token(id)) {
      out[id] = bytes_of(pipeline.decoder, std::string(*token));
    }
  }
  return out;
}

const TokenizerPipeline& pipeline_of(const Tokenizer& tokenizer) { return *tokenizer.impl_->pipeline; }

}  // namespace sdx::text
