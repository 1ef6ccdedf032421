#include "text/grammar/grammar.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/utf8.h"
#include "text/grammar/program.h"
#include "text/grammar/readers.h"

namespace sdx::text::grammar {
namespace {

constexpr std::size_t max_source = std::size_t{4} << 20;
constexpr int max_json_depth = 200;
constexpr std::size_t max_names = 2000;

void check_source(std::string_view text, const char* what) {
  if (text.size() > max_source)
    fail(ErrorCode::invalid_argument, "the {} has {} bytes; at most 4 MiB are supported", what, text.size());
  if (const std::size_t valid = valid_utf8(text); valid != text.size())
    fail(ErrorCode::invalid_argument, "the {} is not valid UTF-8 at byte {}", what, valid);
}

Program whole(Expressions& expressions, Expression body) {
  const Rule root = expressions.add_rule("root");
  expressions.define(root, body);
  return compile(expressions, root);
}

}  // namespace

// Objects that keep their order look through all names for each new one.
nlohmann::ordered_json parse_ordered(std::string_view text, const char* what) {
  std::vector<std::size_t> names;
  const auto count = [&names, what](int depth, nlohmann::ordered_json::parse_event_t event, nlohmann::ordered_json&) {
    using Event = nlohmann::ordered_json::parse_event_t;
    if (depth > max_json_depth) fail(ErrorCode::invalid_argument, "the {} is nested more than {} deep", what, max_json_depth);
    names.resize(static_cast<std::size_t>(max_json_depth) + 2);
    if (event == Event::object_start) names[static_cast<std::size_t>(depth) + 1] = 0;
    if (event == Event::key && ++names[static_cast<std::size_t>(depth)] > max_names) {
      fail(ErrorCode::invalid_argument, "the {} has an object with more than {} names", what, max_names);
    }
    return true;
  };
  return nlohmann::ordered_json::parse(text, count);
}

namespace {

Rule read_schema_text(std::string_view schema, Expressions& to) {
  check_source(schema, "JSON schema");
  try {
    return read_json_schema(parse_ordered(schema, "JSON schema"), to);
  } catch (const nlohmann::ordered_json::parse_error& error) {
    fail(ErrorCode::invalid_argument, "the JSON schema is not valid JSON: {}", error.what());
  } catch (const nlohmann::ordered_json::exception& error) {
    fail(ErrorCode::invalid_argument, "the JSON schema has a value of an unexpected type: {}", error.what());
  }
}

}  // namespace

Expression read_output(OutputFormat format, std::string_view text, Expressions& to) {
  switch (format) {
    case OutputFormat::json_schema: return to.use(read_schema_text(text, to));
    case OutputFormat::gbnf: check_source(text, "grammar"); return to.use(read_gbnf(text, to));
    case OutputFormat::regex: check_source(text, "regular expression"); return read_regex(text, to, Writing::plain, false);
    case OutputFormat::json: return JsonParts(to).value();
    case OutputFormat::json_object: return JsonParts(to).object();
  }
  fail(ErrorCode::invalid_argument, "unknown output format: {}", static_cast<int>(format));
}

Grammar Grammar::from_output(OutputFormat format, std::string_view text) {
  Expressions expressions;
  const Expression body = read_output(format, text, expressions);
  return from_expressions(expressions, body);
}

Grammar Grammar::from_gbnf(std::string_view text) { return from_output(OutputFormat::gbnf, text); }
Grammar Grammar::from_regex(std::string_view pattern) { return from_output(OutputFormat::regex, pattern); }
Grammar Grammar::from_json_schema(std::string_view schema) { return from_output(OutputFormat::json_schema, schema); }
Grammar Grammar::any_json() { return from_output(OutputFormat::json, {}); }
Grammar Grammar::json_object() { return from_output(OutputFormat::json_object, {}); }

Grammar Grammar::from_expressions(Expressions& expressions, std::uint32_t body) {
  return Grammar(std::make_shared<const Program>(whole(expressions, body)), expressions.notes());
}

Vocabulary::Vocabulary(const std::vector<std::string>& tokens, std::vector<std::int32_t> end_tokens)
    : end_tokens_(std::move(end_tokens)) {
  for (const std::int32_t token : end_tokens_) {
    if (token < 0 || static_cast<std::size_t>(token) >= tokens.size()) {
      fail(ErrorCode::invalid_argument, "the end token {} is not in the vocabulary of {} tokens", token, tokens.size());
    }
  }
  std::vector<std::int32_t> order;
  for (std::size_t i = 0; i < tokens.size(); i++) {
    if (tokens[i].size() > 4096)
      fail(ErrorCode::invalid_argument, "token {} stands for {} bytes; at most 4096 are supported", i, tokens[i].size());
    offsets_.push_back(static_cast<std::uint32_t>(text_.size()));
    sizes_.push_back(static_cast<std::uint32_t>(tokens[i].size()));
    text_ += tokens[i];
    const bool ends = std::find(end_tokens_.begin(), end_tokens_.end(), static_cast<std::int32_t>(i)) != end_tokens_.end();
    if (!tokens[i].empty() && !ends) order.push_back(static_cast<std::int32_t>(i));
  }
  const auto at = [this](std::int32_t token) { return bytes(static_cast<std::size_t>(token)); };
  // Compares the first eight bytes as a number, and the rest only if these are equal: most comparisons then touch nothing but the
  // list itself.
  const auto head = [&](std::int32_t token) {
    std::uint64_t key = 0;
    const std::string_view text = at(token);
    for (std::size_t i = 0; i < 8; i++) key = key << 8 | (i < text.size() ? static_cast<std::uint8_t>(text[i]) : 0);
    return key;
  };
  std::vector<std::pair<std::uint64_t, std::int32_t>> keyed;
  for (const std::int32_t token : order) keyed.emplace_back(head(token), token);
  std::sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first < b.first;
    const int compared = at(a.second).compare(at(b.second));
    return compared != 0 ? compared < 0 : a.second < b.second;
  });
  for (std::size_t i = 0; i < keyed.size(); i++) order[i] = keyed[i].second;
  std::vector<std::uint32_t> path;  // nodes from the root to the last token
  std::string_view last;
  const auto close = [&](std::size_t depth) {
    while (path.size() > depth) {
      nodes_[path.back()].skip = static_cast<std::uint32_t>(nodes_.size());
      path.pop_back();
    }
  };
  for (const std::int32_t token : order) {
    const std::string_view text = at(token);
    const auto shared =
        static_cast<std::size_t>(std::mismatch(text.begin(), text.end(), last.begin(), last.end()).first - text.begin());
    close(shared);
    for (std::size_t i = shared; i < text.size(); i++) {
      path.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.push_back(
          {0, static_cast<std::uint32_t>(tokens_.size()), static_cast<std::uint16_t>(i + 1), static_cast<std::uint8_t>(text[i])});
    }
    tokens_.push_back(token);
    last = text;
  }
  close(0);
  nodes_.push_back({static_cast<std::uint32_t>(nodes_.size() + 1), static_cast<std::uint32_t>(tokens_.size()), 0,
                    0});  // where the last node's tokens end
}

}  // namespace sdx::text::grammar
