// Texts of a JSON schema: lengths, pattern, format.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/text/utf8.h"
#include "text/grammar/grammar.h"
#include "text/grammar/schema_conditions.h"
#include "text/grammar/schema_parts.h"

namespace sdx::text::grammar {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDate =
    "(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-"
    "9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))";
constexpr const char* kTime = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";

// The usual form of each; formats that are not here say nothing about how a text is written.
const std::map<std::string_view, std::string> formats{
    {"date", kDate},
    {"time", kTime},
    {"date-time", std::string("(") + kDate + ")T(" + kTime + ")"},
    {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
    {"email", "[A-Za-z0-9_+-]{1,20}(\\.[A-Za-z0-9_+-]{1,20}){0,2}@([a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?\\.){1,4}[a-z]{2,20}"},
    {"hostname", "([a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?\\.){0,4}[a-z]([a-z0-9-]{0,20}[a-z0-9])?"},
    {"ipv4", "((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"},
    {"ipv6", "([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}"},
    {"uri",
     "https?://([a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?\\.){1,4}[a-z]{2,20}(/"
     "[A-Za-z0-9._~-]{0,40}){0,8}(\\?[A-Za-z0-9._~=&-]{0,80})?"},
    {"duration", "P([0-9]{1,4}[DWMY]|T[0-9]{1,4}[HMS])"},
};

// The lengths of texts that a regular expression matches, in characters.
struct Span {
  std::uint64_t least = 0, most = 0;
};

Span span_of(const Expressions& in, Expression e) {
  constexpr std::uint64_t many = UINT32_MAX;
  const Expressions::Node& node = in.node(e);
  Span out;
  switch (node.kind) {
    case Expressions::Kind::never:
    case Expressions::Kind::empty: break;
    case Expressions::Kind::text: {
      const auto count = static_cast<std::uint64_t>(std::count_if(
          node.text.begin(), node.text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
      return {count, count};
    }
    case Expressions::Kind::characters: return {1, 1};
    case Expressions::Kind::sequence:
      for (const Expression part : node.parts) {
        const Span s = span_of(in, part);
        out = {std::min(many, out.least + s.least), std::min(many, out.most + s.most)};
      }
      break;
    case Expressions::Kind::choice:
      out.least = many;
      for (const Expression part : node.parts) {
        const Span s = span_of(in, part);
        out = {std::min(out.least, s.least), std::max(out.most, s.most)};
      }
      break;
    case Expressions::Kind::repeat: {
      const Span s = span_of(in, node.parts[0]);
      out = {std::min(many, s.least * node.least), s.most == 0              ? 0
                                                   : node.most == unlimited ? many
                                                                            : std::min(many, s.most * node.most)};
      break;
    }
    case Expressions::Kind::rule: return span_of(in, in.rules()[node.rule].body);
  }
  return out;
}

}  // namespace

void refuse_schema(const std::string& path, const std::string& what) {
  fail(ErrorCode::invalid_argument, "JSON schema, at {}: {}", path.size() > 300 ? path.substr(0, 300) + "…" : path, what);
}

std::uint32_t schema_count(const Json& schema, const char* key, const std::string& path, std::uint32_t otherwise) {
  if (!schema.contains(key)) return otherwise;
  const Json& value = schema[key];
  const bool whole = value.is_number() && value.get<double>() >= 0 && std::floor(value.get<double>()) == value.get<double>();
  if (!whole) refuse_schema(path + "/" + key, "expected a whole number of at least 0");
  constexpr double most = 200'000;
  if (value.get<double>() <= most) return static_cast<std::uint32_t>(value.get<double>());
  // More than an answer has: no bound from above, and one from below that nothing reaches.
  if (std::string_view(key).starts_with("max")) return unlimited;
  refuse_schema(path + "/" + key, "more than 200000 are not supported");
}

Expression StringSchemas::pattern(const std::string& pattern, const std::string& path) {
  try {
    return in_quotes(read_regex(pattern, to_, Writing::json_string, true));
  } catch (Error& error) {
    error.add_context("in the JSON schema, at " + path);
    throw;
  }
}

Expression StringSchemas::format(const std::string& name) {
  const auto known = format_rules_.find(name);
  if (known != format_rules_.end()) return to_.use(known->second);
  const Rule rule = to_.add_rule(name);
  format_rules_.emplace(name, rule);
  to_.define(rule, read_regex(formats.at(name), to_, Writing::json_string, false));
  return to_.use(rule);
}

// Lengths hold of themselves, or by bounding the one part that may have any length ([a-z]+). Else they are left to others.
Expression StringSchemas::with_lengths(Expression content, const std::string& plain, bool search, const Lengths& lengths,
                                       const std::string& path) {
  Expressions scratch;
  const Expression body = read_regex(plain, scratch, Writing::plain, search);
  const Span span = span_of(scratch, body);
  if (span.most < lengths.least || span.least > lengths.most) return to_.never();
  if (span.least >= lengths.least && span.most <= lengths.most) return content;
  const auto parts_of = [](const Expressions& in, Expression e) {
    return in.node(e).kind == Expressions::Kind::sequence ? in.node(e).parts : std::vector<Expression>{e};
  };
  std::vector<Expression> parts = parts_of(to_, content);
  const std::vector<Expression> twins = parts_of(scratch, body);
  std::optional<std::size_t> open;
  std::uint64_t fixed = 0;
  for (std::size_t i = 0; i < twins.size() && parts.size() == twins.size(); ++i) {
    const Span s = span_of(scratch, twins[i]);
    const Expressions::Node& node = scratch.node(twins[i]);
    const bool repeats = node.kind == Expressions::Kind::repeat && span_of(scratch, node.parts[0]).least == 1 &&
                         span_of(scratch, node.parts[0]).most == 1 && to_.node(parts[i]).kind == Expressions::Kind::repeat;
    if (s.least == s.most) {
      fixed += s.least;
    } else if (repeats && !open) {
      open = i;
    } else {
      open.reset();
      break;
    }
    if (i + 1 < twins.size() || !open) continue;
    const Expressions::Node part = to_.node(parts[*open]);
    const auto least =
        static_cast<std::uint32_t>(std::max<std::uint64_t>(part.least, lengths.least > fixed ? lengths.least - fixed : 0));
    const auto most = lengths.most == unlimited ? part.most
                      : lengths.most < fixed
                          ? 0
                          : static_cast<std::uint32_t>(std::min<std::uint64_t>(part.most, lengths.most - fixed));
    parts[*open] = to_.repeat(part.parts[0], least, most);
    return to_.sequence(std::move(parts));
  }
  if (span.least < lengths.least) to_.note(path + "/minLength");
  if (span.most > lengths.most) to_.note(path + "/maxLength");
  return content;
}

// Texts that are not allowed matter where the others allow them.
Expression StringSchemas::read(const Json& schema, const std::string& path) {
  const Json* left_out = left_out_values(schema);
  if (left_out == nullptr) return read_plain(schema, path);
  Json rest = schema;
  rest.erase("not");
  std::vector<std::string> texts;
  for (const Json& value : *left_out) {
    if (value.is_string()) texts.push_back(value.get<std::string>());
  }
  if (texts.empty()) return read_plain(rest, path);
  const bool free = !rest.contains("pattern") && !formats.contains(rest.value("format", "")) && !rest.contains("maxLength");
  if (free && !rest.contains("minLength")) return parts_.other_string(texts);
  Expressions scratch;
  JsonParts parts(scratch);
  const Expression body = StringSchemas(scratch, parts).read_plain(rest, path);
  Matcher matcher(Grammar::from_expressions(scratch, body),
                  std::make_shared<const Vocabulary>(std::vector<std::string>(), std::vector<std::int32_t>()));
  const bool matters = std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
    matcher.restart();
    return matcher.accept_text(Json(text).dump()) && matcher.can_end();
  });
  if (matters) to_.note(path + "/not");
  return read_plain(rest, path);
}

Expression StringSchemas::read_plain(const Json& schema, const std::string& path) {
  const bool sized = schema.contains("minLength") || schema.contains("maxLength");
  const Lengths lengths{schema_count(schema, "minLength", path, 0), schema_count(schema, "maxLength", path, unlimited)};
  for (const char* key : {"pattern", "format"}) {
    if (schema.contains(key) && !schema[key].is_string()) refuse_schema(path + "/" + key, "expected a text");
  }
  const std::string form = schema.value("format", "");
  const bool known_form = formats.contains(form);
  if (schema.contains("pattern")) {
    const std::string pattern = schema["pattern"].get<std::string>();
    try {
      const Expression content = read_regex(pattern, to_, Writing::json_string, true);
      return in_quotes(sized ? with_lengths(content, pattern, true, lengths, path) : content);
    } catch (Error& error) {
      if (error.code() != ErrorCode::invalid_argument) throw;
      to_.note(path + "/pattern");  // a format may say the same in words
    }
  }
  if (known_form) {
    const Expression content = format(form);
    return in_quotes(sized ? with_lengths(content, formats.at(form), false, lengths, path) : content);
  }
  if (!sized) return parts_.string();
  return in_quotes(to_.repeat(parts_.character(), lengths.least, lengths.most));
}

}  // namespace sdx::text::grammar
