#include "text/tokenizer/decoder.h"

#include <algorithm>

#include "base/text/utf8.h"
#include "text/tokenizer/byte_level.h"
#include "text/unicode/unicode.h"

namespace sdx::text {
namespace {

std::string clean_up(std::string text) {
  if (text.find(' ') == std::string::npos) return text;
  constexpr std::pair<std::string_view, std::string_view> rules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [what, with] : rules) text = replace_all(text, what, with);
  return text;
}

void byte_level(std::vector<std::string>& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) bytes += bytes_of_text(token).value_or(token);
  tokens.assign(1, repair_utf8(bytes));
}

void wordpiece(const DecoderStep& step, std::vector<std::string>& tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) tokens[i] = tokens[i].starts_with(step.text) ? tokens[i].substr(step.text.size()) : " " + tokens[i];
    if (step.cleanup) tokens[i] = clean_up(std::move(tokens[i]));
  }
}

void metaspace(const DecoderStep& step, std::vector<std::string>& tokens) {
  std::string mark;
  append_utf8(mark, step.character);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = replace_all(tokens[i], mark, i == 0 && step.prepend != Prepend::never ? "" : " ");
  }
}

void ctc(const DecoderStep& step, std::vector<std::string>& tokens) {
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  std::vector<std::string> out;
  for (const std::string& token : tokens) {
    std::string text = replace_all(token, step.text, "");
    if (step.cleanup) text = replace_all(clean_up(std::move(text)), step.delimiter, " ");
    if (!text.empty()) out.push_back(std::move(text));
  }
  tokens = std::move(out);
}

void replace(const DecoderStep& step, std::vector<std::string>& tokens) {
  std::vector<Match> matches;
  for (std::string& token : tokens) {
    step.pattern.find(token, matches);
    if (std::none_of(matches.begin(), matches.end(), [](const Match& m) { return m.matched; })) continue;
    std::string out;
    for (const Match& m : matches)
      out += m.matched ? std::string_view(step.text) : std::string_view(token).substr(m.begin, m.end - m.begin);
    token = std::move(out);
  }
}

void strip(const DecoderStep& step, std::vector<std::string>& tokens) {
  std::string c;
  append_utf8(c, step.character);
  for (std::string& token : tokens) {
    std::string_view text = token;
    for (std::uint64_t i = 0; i < step.start && text.starts_with(c); ++i) text.remove_prefix(c.size());
    for (std::uint64_t i = 0; i < step.stop && text.ends_with(c); ++i) text.remove_suffix(c.size());
    if (text.size() != token.size()) token = std::string(text);
  }
}

void byte_fallback(std::vector<std::string>& tokens) {
  std::vector<std::string> out;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (valid_utf8(bytes) == bytes.size()) {
      out.push_back(bytes);
    } else {
      out.insert(out.end(), bytes.size(), std::string(kReplacementCharacter));
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const auto byte = byte_of_token(token)) {
      bytes.push_back(*byte);
      continue;
    }
    flush();
    out.push_back(std::move(token));
  }
  flush();
  tokens = std::move(out);
}

void bpe(const DecoderStep& step, std::vector<std::string>& tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = replace_all(tokens[i], step.text, i + 1 == tokens.size() ? "" : " ");
}

void fuse(std::vector<std::string>& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  tokens.clear();
  tokens.push_back(std::move(all));
}

}  // namespace

std::optional<char> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  // A sign before one digit is what Rust's number parser takes.
  if (token[3] == '+' && digit(token[4]) >= 0) return static_cast<char>(digit(token[4]));
  if (digit(token[3]) < 0 || digit(token[4]) < 0) return std::nullopt;
  return static_cast<char>(static_cast<unsigned char>(digit(token[3]) * 16 + digit(token[4])));
}

std::string replace_all(std::string_view text, std::string_view what, std::string_view with) {
  std::string out;
  if (what.empty()) {  // between all characters, and at both ends
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = bytes_of_lead(text[at]);
      out += with;
      out += text.substr(at, size);
      at += size;
    }
    return out += with;
  }
  std::size_t last = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, last)) {
    out.append(text.substr(last, at - last)).append(with);
    last = at + what.size();
  }
  return out.append(text.substr(last));
}

void decode(const DecoderStep& step, std::vector<std::string>& tokens) {
  switch (step.kind) {
    case DecoderStep::Kind::bpe: return bpe(step, tokens);
    case DecoderStep::Kind::byte_level: return byte_level(tokens);
    case DecoderStep::Kind::wordpiece: return wordpiece(step, tokens);
    case DecoderStep::Kind::metaspace: return metaspace(step, tokens);
    case DecoderStep::Kind::ctc: return ctc(step, tokens);
    case DecoderStep::Kind::replace: return replace(step, tokens);
    case DecoderStep::Kind::fuse: return fuse(tokens);
    case DecoderStep::Kind::strip: return strip(step, tokens);
    case DecoderStep::Kind::byte_fallback: return byte_fallback(tokens);
  }
}

}  // namespace sdx::text
