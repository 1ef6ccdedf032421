// StringConcat: ai.onnx 20. StringSplit: ai.onnx 20. StringNormalizer: ai.onnx 10.

#include <utf8proc.h>

#include <algorithm>

#include "base/text/utf8.h"
#include "ops/context.h"
#include "ops/math/broadcast.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct StringSplitAttrs {
  std::string_view delimiter;
  std::int64_t maxsplit = -1;

  void fields(auto& f) {
    f("delimiter", delimiter);
    f("maxsplit", maxsplit);
  }
};

struct StringNormalizerAttrs {
  std::string_view case_change_action = "NONE";
  bool is_case_sensitive = false;
  StringList stopwords;

  void fields(auto& f) {
    f("case_change_action", case_change_action);
    f("is_case_sensitive", is_case_sensitive);
    f("stopwords", stopwords);
    f.unread("locale", AttrKind::s);
  }
};

using Strings = std::vector<std::string>;

void infer_concat(InferContext& c) { infer_broadcast(c, 0, 2, DataType::string); }

void run_concat(OpContext& c) {
  const Tensor& a = c.input(0);
  const Tensor& b = c.input(1);
  Tensor& out = c.output(0, DataType::string, broadcast_shapes(a.shape(), b.shape()));
  using S = std::string;
  broadcast_binary<S, S, S>(a, b, out, [](const S& x, const S& y) { return x + y; });
}

constexpr std::string_view kBlank = " \t\n\v\f\r";

// Runs of blanks separate; those at the ends count for nothing.
Strings split_blank(std::string_view text, std::int64_t most) {
  Strings parts;
  text = text.substr(0, text.find_last_not_of(kBlank) + 1);
  std::size_t at = text.find_first_not_of(kBlank);
  while (at != std::string_view::npos) {
    if (static_cast<std::int64_t>(parts.size()) == most) {
      parts.emplace_back(text.substr(at));
      break;
    }
    const std::size_t end = std::min(text.find_first_of(kBlank, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = text.find_first_not_of(kBlank, end);
  }
  return parts;
}

Strings split_at(std::string_view text, std::string_view delimiter, std::int64_t most) {
  Strings parts;
  std::size_t at = 0;
  for (;;) {
    const std::size_t end = static_cast<std::int64_t>(parts.size()) == most ? std::string_view::npos : text.find(delimiter, at);
    parts.emplace_back(text.substr(at, end == std::string_view::npos ? end : end - at));
    if (end == std::string_view::npos) return parts;
    at = end + delimiter.size();
  }
}

void infer_split(InferContext& c) {
  const SymShape* in = c.shape(0);
  if (in == nullptr) {
    c.output(0, DataType::string);
    return c.output(1, DataType::int64);
  }
  c.output(1, DataType::int64, *in);
  SymShape out = *in;
  out.emplace_back();
  c.output(0, DataType::string, std::move(out));
}

void run_split(OpContext& c) {
  const auto attr = parse<StringSplitAttrs>(c);
  const Tensor& in = c.input(0);
  const std::string_view delimiter = attr.delimiter;
  const std::int64_t given = attr.maxsplit;
  const std::int64_t most = given < 0 ? INT64_MAX : given;
  std::vector<Strings> rows;
  std::size_t longest = 0;
  Tensor& counts = c.output(1, DataType::int64, in.shape());
  auto* count = static_cast<std::int64_t*>(counts.mutable_data());
  for (const std::string& text : in.values<std::string>()) {
    c.stop().check();
    rows.push_back(delimiter.empty() ? split_blank(text, most) : split_at(text, delimiter, most));
    longest = std::max(longest, rows.back().size());
    *count++ = static_cast<std::int64_t>(rows.back().size());
  }
  Shape shape = in.shape();
  shape.push_back(static_cast<std::int64_t>(longest));
  Tensor& out = c.output(0, DataType::string, shape);
  auto* to = static_cast<std::string*>(out.mutable_data());
  for (Strings& row : rows) {
    std::string* end = std::move(row.begin(), row.end(), to);
    to += longest;
    std::fill(end, to, std::string());
  }
}

// Code point by code point, independent of the machine's locale; bytes that are not UTF-8 stay as they are.
std::string with_case(std::string_view text, bool upper) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint code = decode_utf8(text, at);
    if (code.bytes == 0) {
      out += text[at++];
      continue;
    }
    const auto point = static_cast<utf8proc_int32_t>(code.value);
    append_utf8(out, static_cast<char32_t>(upper ? utf8proc_toupper(point) : utf8proc_tolower(point)));
    at += code.bytes;
  }
  return out;
}

enum class CaseChange { none, lower, upper };

CaseChange case_change(const StringNormalizerAttrs& attr) {
  const std::string_view action = attr.case_change_action;
  if (action == "NONE") return CaseChange::none;
  if (action == "LOWER") return CaseChange::lower;
  if (action == "UPPER") return CaseChange::upper;
  fail(ErrorCode::invalid_model, "'case_change_action' must be NONE, LOWER or UPPER, received {}", action);
}

void infer_normalizer(InferContext& c) {
  case_change(parse<StringNormalizerAttrs>(c));
  const SymShape* in = c.shape(0);
  if (in == nullptr) return c.output(0, DataType::string);
  if (in->size() == 1) return c.output(0, DataType::string, SymShape{Dim()});
  c.output(0, DataType::string, SymShape{Dim(1), Dim()});
}

void run_normalizer(OpContext& c) {
  const auto attr = parse<StringNormalizerAttrs>(c);
  const Tensor& in = c.input(0);
  if (in.rank() != 1 && !(in.rank() == 2 && in.dim(0) == 1)) {
    c.fail("expected strings of shape [C] or [1, C], received {}", in.type_string());
  }
  const CaseChange change = case_change(attr);
  const bool sensitive = attr.is_case_sensitive;
  Strings stop = to_vector(attr.stopwords);
  for (std::string& word : stop) {
    if (!sensitive) word = with_case(word, false);
  }
  std::sort(stop.begin(), stop.end());
  Strings kept;
  for (const std::string& text : in.values<std::string>()) {
    if (!stop.empty() && std::binary_search(stop.begin(), stop.end(), sensitive ? text : with_case(text, false))) continue;
    kept.push_back(change == CaseChange::none ? text : with_case(text, change == CaseChange::upper));
  }
  if (kept.empty()) kept.emplace_back();  // Source: ONNX StringNormalizer-10: one empty string when nothing is left
  const auto n = static_cast<std::int64_t>(kept.size());
  Tensor& out = c.output(0, DataType::string, in.rank() == 1 ? Shape{n} : Shape{1, n});
  std::move(kept.begin(), kept.end(), static_cast<std::string*>(out.mutable_data()));
}

}  // namespace

void register_strings(OpTable& t) {
  OpDef string_concat("StringConcat", 20);
  string_concat.in("X Y", "T", types::string).out("Z", "T", types::string);
  t.add(std::move(string_concat).infer_with(infer_concat).run_with(run_concat));
  OpDef string_split("StringSplit", 20);
  string_split.in("X", "T1", types::string).out("Y", "T2", types::string).out("Z", "T3", types::int64);
  string_split.attrs<StringSplitAttrs>();
  t.add(std::move(string_split).infer_with(infer_split).run_with(run_split));
  OpDef string_normalizer("StringNormalizer", 10);
  string_normalizer.in("X", "", types::string).out("Y", "", types::string).attrs<StringNormalizerAttrs>();
  t.add(std::move(string_normalizer).infer_with(infer_normalizer).run_with(run_normalizer));
}

}  // namespace sdx::ops
