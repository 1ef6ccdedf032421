#include "text/tokenizer/token_bytes.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/core.h"

namespace sdx::text {
namespace {

using Kind = DecoderStep::Kind;

bool has(const std::vector<DecoderStep>& steps, Kind kind) {
  return std::any_of(steps.begin(), steps.end(), [&](const DecoderStep& s) { return s.kind == kind; });
}

// "<0x0A>"
bool read_byte(std::string_view token, std::string& to) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return false;
  unsigned byte = 0;
  const auto result = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (result.ptr != token.data() + 5) return false;
  to.assign(1, static_cast<char>(byte));
  return true;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::string bytes_of(const std::vector<DecoderStep>& steps, std::string token) {
  std::string byte;
  if (has(steps, Kind::byte_fallback) && read_byte(token, byte)) return byte;
  if (has(steps, Kind::byte_level)) return bytes_of_text(token).value_or(token);
  replace_all(token, "\xe2\x96\x81", " ");  // U+2581, SentencePiece's blank
  return token;
}

}  // namespace

std::vector<std::string> token_bytes(const Tokenizer& tokenizer) {
  const Core& core = core_of(tokenizer);
  for (const Kind kind : {Kind::wordpiece, Kind::ctc, Kind::bpe}) {
    if (has(core.decoder, kind)) {
      fail(ErrorCode::not_implemented,
           "constrained output needs a tokenizer whose tokens are simply joined (byte-level BPE, SentencePiece), not one that "
           "puts "
           "blanks between words");
    }
  }
  std::vector<std::string> out(std::size_t{tokenizer.largest_id()} + 1);
  for (std::uint32_t id = 0; id < out.size(); ++id) {
    if (tokenizer.is_special(id)) continue;
    const std::string* added = core.added.text(id);
    if (added != nullptr) {
      out[id] = *added;
    } else if (const auto token = core.model->vocabulary().token(id)) {
      out[id] = bytes_of(core.decoder, std::string(*token));
    }
  }
  return out;
}

const Core& core_of(const Tokenizer& tokenizer) { return *tokenizer.impl_->core; }

}  // namespace sdx::text
