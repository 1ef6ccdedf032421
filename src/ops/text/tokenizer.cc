// com.microsoft Tokenizer 1: splits strings at separators, into matches of a pattern, or into characters.

#include <algorithm>
#include <optional>
#include <vector>

#include "base/text/utf8.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "ops/text/regex_pattern.h"

namespace sdx::ops {
namespace {

struct TokenizerAttrs {
  bool mark = false;
  std::int64_t mincharnum = 0;
  std::string_view pad_value;
  StringList separators;
  std::string_view tokenexp;

  void fields(auto& f) {
    f.required("mark", mark);
    f.required("mincharnum", mincharnum);
    f.required("pad_value", pad_value);
    f("separators", separators);
    f("tokenexp", tokenexp);
  }
};

using Pieces = std::vector<std::string_view>;

struct Rules {
  std::vector<RegexPattern> separators;
  std::optional<RegexPattern> token;
  bool characters = false, mark = false;
  std::size_t least = 1;  // characters of a token
  std::string pad;
};

Rules rules_of(const TokenizerAttrs& attr) {
  Rules r;
  const StringList separators = attr.separators;
  const std::string_view token = attr.tokenexp;
  if (separators.empty() == token.empty()) {
    fail(ErrorCode::invalid_model, "Tokenizer needs one of the attributes 'separators' and 'tokenexp'");
  }
  r.characters = token == "." || (separators.size() == 1 && separators[0].empty());
  const std::int64_t least = attr.mincharnum;
  if (least < 1 || (r.characters && least > 1)) {
    fail(ErrorCode::invalid_model, "mincharnum is {}; {}", least,
         r.characters ? "characters are tokens: it must be 1" : "it must be positive");
  }
  r.least = static_cast<std::size_t>(least);
  r.mark = attr.mark;
  r.pad = attr.pad_value;
  if (r.characters) return r;
  if (!token.empty()) r.token.emplace(token, false, "tokenexp");
  for (const std::string& s : separators) {
    if (s.empty()) fail(ErrorCode::invalid_model, "an empty separator must be the only one");
    r.separators.emplace_back(s, false, "separators");
  }
  return r;
}

// The byte after the character at `at`.
std::size_t after(std::string_view text, std::size_t at) {
  const std::size_t bytes = decode_utf8(text, at).bytes;
  if (bytes == 0) fail(ErrorCode::runtime_failure, "the string '{}' is not valid UTF-8", text);
  return at + bytes;
}

std::size_t characters(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); at = after(text, at)) ++count;
  return count;
}

void keep(const Rules& r, std::string_view piece, Pieces& out) {
  if (!piece.empty() && characters(piece) >= r.least) out.push_back(piece);
}

void split(const Rules& r, RegexPattern& separator, std::string_view text, Pieces& out) {
  std::size_t from = 0, at = 0;
  while (at < text.size()) {
    const auto match = separator.find(text, at);
    if (!match) break;
    if (match->first == match->second) {  // an empty match separates nothing
      if (match->first >= text.size()) break;
      at = after(text, match->first);
      continue;
    }
    keep(r, text.substr(from, match->first - from), out);
    from = at = match->second;
  }
  keep(r, text.substr(from), out);
}

void collect(const Rules& r, RegexPattern& token, std::string_view text, Pieces& out) {
  for (std::size_t at = 0; at < text.size();) {
    const auto match = token.find(text, at);
    if (!match) return;
    if (match->first == match->second) {
      if (match->first >= text.size()) return;
      at = after(text, match->first);
      continue;
    }
    keep(r, text.substr(match->first, match->second - match->first), out);
    at = match->second;
  }
}

Pieces tokens_of(Rules& r, std::string_view text) {
  characters(text);  // checks it
  Pieces pieces;
  if (r.characters) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = after(text, at);
      pieces.push_back(text.substr(at, end - at));
      at = end;
    }
  } else if (r.token) {
    collect(r, *r.token, text, pieces);
  } else {
    pieces.push_back(text);
    for (RegexPattern& separator : r.separators) {
      Pieces finer;
      for (const std::string_view piece : pieces) split(r, separator, piece, finer);
      pieces = std::move(finer);
    }
  }
  return pieces;
}

template <class S>
void check_rank(const S& s) {
  if (s.size() != 1 && s.size() != 2)
    fail(ErrorCode::invalid_model, "the input must have 1 or 2 axes, received {}", to_string(s));
}

// The shape for an input without strings has no columns, as in ONNX Runtime.
template <class S>
S nothing(S shape) {
  shape.back() = 0;
  return shape;
}

// The result has one more axis, unless there are no strings.
void infer_tokenizer(InferContext& c) {
  rules_of(parse<TokenizerAttrs>(c));
  const SymShape* s = c.shape(0);
  if (s == nullptr) return c.output(0, DataType::string);
  check_rank(*s);
  const bool empty = std::any_of(s->begin(), s->end(), [](const Dim& d) { return d.is_const() && d.value() == 0; });
  if (empty) return c.output(0, DataType::string, nothing(*s));
  if (!std::all_of(s->begin(), s->end(), [](const Dim& d) { return d.is_const(); })) return c.output(0, DataType::string);
  SymShape out = *s;
  out.push_back(Dim::unknown());
  c.output(0, DataType::string, std::move(out));
}

void run_tokenizer(OpContext& c) {
  const Tensor& in = c.input(0);
  Rules r = rules_of(parse<TokenizerAttrs>(c));
  check_rank(in.shape());
  if (in.size() == 0) {
    c.output(0, DataType::string, nothing(in.shape()));
    return;
  }
  std::vector<Pieces> rows;
  std::size_t most = 0;
  for (const std::string& text : in.values<std::string>()) {
    c.stop().check();
    rows.push_back(tokens_of(r, text));
    most = std::max(most, rows.back().size());
  }
  const bool mark = r.mark && most > 0;
  Shape shape = in.shape();
  shape.push_back(static_cast<std::int64_t>(most + (mark ? 2 : 0)));
  Tensor& out = c.output(0, DataType::string, shape);
  auto* to = static_cast<std::string*>(out.mutable_data());
  for (const Pieces& row : rows) {
    if (mark) *to++ = "\x02";
    for (const std::string_view piece : row) *to++ = piece;
    if (mark) *to++ = "\x03";
    for (std::size_t i = row.size(); i < most; ++i) *to++ = r.pad;
  }
}

}  // namespace

void register_tokenizer(OpTable& t) {
  t.add(OpDef("com.microsoft", "Tokenizer", 1)
            .in("X", "T", types::string)
            .out("Y", "T", types::string)
            .attrs<TokenizerAttrs>()
            .infer_with(infer_tokenizer)
            .run_with(run_tokenizer));
}

}  // namespace sdx::ops
