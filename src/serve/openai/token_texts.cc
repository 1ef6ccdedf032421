#include "serve/openai/token_texts.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/text/json_text.h"
#include "base/text/utf8.h"
#include "text/tokenizer/token_bytes.h"

namespace sdx::serve::openai {
namespace {

std::vector<std::string> bytes_of(const Tokenizer& tokenizer) {
  try {
    return text::token_bytes(tokenizer);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_implemented) throw;
    return {};  // WordPiece: tokens are shown by their names
  }
}

}  // namespace

TokenTexts::TokenTexts(const Tokenizer& tokenizer) : bytes_(bytes_of(tokenizer)) {
  const std::size_t count = std::size_t{tokenizer.largest_id()} + 1;
  bytes_.resize(count);
  names_.resize(count);
  for (std::size_t id = 0; id < count; ++id) {
    if (bytes_[id].empty()) names_[id] = tokenizer.id_to_token(static_cast<TokenId>(id)).value_or("");
  }
}

std::string_view TokenTexts::bytes(TokenId id) const {
  return id < bytes_.size() ? std::string_view(bytes_[id]) : std::string_view();
}

std::string_view TokenTexts::name(TokenId id) const {
  if (id >= bytes_.size()) return {};
  return bytes_[id].empty() ? std::string_view(names_[id]) : std::string_view(bytes_[id]);
}

std::string TokenTexts::shown(TokenId id) const {
  const std::string_view text = name(id);
  if (is_utf8(text)) return std::string(text);
  std::string out;
  for (const char c : text) fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
  return out;
}

void append_logarithm(std::string& out, float value) {
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(out), "{}", value);
  } else {
    out += "-9999.0";
  }
}

void TokenTexts::append_logprob(std::string& out, const TokenLogprob& token) const {
  out += "{\"token\":";
  append_json_string(out, shown(token.id));
  out += ",\"logprob\":";
  append_logarithm(out, token.logprob);
  out += ",\"bytes\":[";
  const char* comma = "";
  for (const char c : name(token.id)) {
    fmt::format_to(std::back_inserter(out), "{}{}", comma, static_cast<unsigned char>(c));
    comma = ",";
  }
  out += ']';
}

void TokenTexts::append_logprobs(std::string& out, const TokenLogprob& token, const std::vector<TokenLogprob>& top) const {
  append_logprob(out, token);
  out += ",\"top_logprobs\":[";
  for (std::size_t i = 0; i < top.size(); ++i) {
    if (i != 0) out += ',';
    append_logprob(out, top[i]);
    out += '}';
  }
  out += "]}";
}

}  // namespace sdx::serve::openai
