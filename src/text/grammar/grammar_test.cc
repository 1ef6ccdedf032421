#include "text/grammar/grammar.h"

#include <gtest/gtest.h>

#include <sdx/error.hpp>
#include <string>
#include <vector>

namespace sdx::text::grammar {
namespace {

constexpr std::int32_t end_token = 256;

// Token i is byte i; 256 ends; then some longer ones.
std::shared_ptr<const Vocabulary> bytes(const std::vector<std::string>& more = {}) {
  std::vector<std::string> tokens;
  for (int i = 0; i < 256; i++) tokens.emplace_back(1, static_cast<char>(i));
  tokens.emplace_back();
  tokens.insert(tokens.end(), more.begin(), more.end());
  return std::make_shared<const Vocabulary>(tokens, std::vector<std::int32_t>{end_token});
}

bool fits(const Grammar& grammar, const std::string& text) {
  Matcher matcher(grammar, bytes());
  return matcher.accept_text(text) && matcher.can_end();
}

void expect(const Grammar& grammar, const std::vector<std::string>& good, const std::vector<std::string>& bad) {
  for (const std::string& text : good) EXPECT_TRUE(fits(grammar, text)) << text;
  for (const std::string& text : bad) EXPECT_FALSE(fits(grammar, text)) << text;
}

template <class F>
std::string refused(F&& make) {
  try {
    make();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  ADD_FAILURE() << "not refused";
  return {};
}

TEST(Grammar, ReadsGbnf) {
  expect(Grammar::from_gbnf(
             "root ::= greeting \", \" [a-zA-ZĄ-ż]+ \"!\"? # a comment\ngreeting ::= \"Hi\" | \"Cze\\u015b\\u0107\"\n"),
         {"Hi, Bob", "Cześć, Łukasz!", "Hi, x!"}, {"Hi,", "hi, Bob", "Hi, Bob!!", "Hi, 1"});
  expect(Grammar::from_gbnf("root ::= (\"a\" | # first\n  \"b\"){2,3} .\n"), {"abx", "aaał", "bb\n"}, {"ax", "aaaax", "ab"});
  expect(Grammar::from_gbnf("root ::= \"(\" root \")\" | \"x\""), {"x", "((x))"}, {"", "(x", "(x))"});
}

TEST(Grammar, SaysWhatIsWrongWithGbnf) {
  EXPECT_NE(refused([] { Grammar::from_gbnf("root ::= list \"x\"\nlist ::= item\nitem ::= list"); }).find("begins with itself"),
            std::string::npos);
  EXPECT_NE(refused([] { Grammar::from_gbnf("root ::= \"a\"\n\nb ::= [z"); }).find("line 3"), std::string::npos);
  EXPECT_NE(refused([] { Grammar::from_gbnf("root ::= nosuch"); }).find("'nosuch'"), std::string::npos);
  EXPECT_NE(refused([] { Grammar::from_gbnf("root ::= \"(\" root \")\""); }).find("no text"), std::string::npos);
}

TEST(Grammar, ReadsRegularExpressions) {
  expect(Grammar::from_regex("(\\d{3}-)?\\d{4}"), {"123-4567", "4567"}, {"123-456", "1234567", "12-3456"});
  expect(Grammar::from_regex("[^a-c\\s]+|ł*?x"), {"xyz", "łłx", "x"}, {"abc", "ł x"});
  EXPECT_NE(refused([] { Grammar::from_regex("a(?=b)"); }).find("lookaround"), std::string::npos);
}

TEST(Grammar, ReadsJsonSchemas) {
  expect(
      Grammar::from_json_schema(
          R"({"type": "object", "properties": {"n": {"type": "integer", "minimum": -5, "maximum": 12}, "t": {"type": "string", "maxLength": 2}}, "required": ["n"],
                                       "additionalProperties": false})"),
      {R"({"n":3})", R"({"n": -5, "t": "ł\u00e9"})", "{\n  \"n\": 12\n}"},
      {"{}", R"({"n":13})", R"({"n":-6})", R"({"t":"a"})", R"({"n":1,"t":"abc"})", R"({"n":1,"x":2})", R"({"n":01})", "[]"});
  expect(
      Grammar::from_json_schema(
          R"({"$ref": "#/$defs/node", "$defs": {"node": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/node"}}]}}})"),
      {"null", "[]", "[[null],null]"}, {"[1]", "[", "nul"});
  // What both say of the value without restricting it need not be the same.
  expect(
      Grammar::from_json_schema(
          R"({"allOf": [{"type": "integer", "example": 1, "name": "a", "xml": {}}, {"maximum": 2, "example": 2, "name": "b", "xml": 1}],
                                       "minimum": 0})"),
      {"0", "2"}, {"3", "-1", "\"a\""});
  expect(Grammar::from_json_schema(R"({"type": "number", "exclusiveMinimum": 0, "maximum": 2})"),
         {"0.5", "1", "1.99", "2", "2.0", "0.001"}, {"0", "0.0", "2.1", "-1", "3", "1e5"});
  expect(Grammar::any_json(), {"{\"a\": [1, 2.5e3, \"x\\n\", true, null, {}]}", "\"\\ud83d\\ude42\""},
         {"{\"a\"}", "[1,]", "\"\\ud83d\"", "\"\n\"", "01"});
  expect(Grammar::json_object(), {"{}", "{\"a\":1}"}, {"[]", "1"});
}

TEST(Grammar, RefusesWhatItCannotEnforceWithThePlace) {
  EXPECT_NE(refused([] {
              Grammar::from_json_schema(R"({"properties": {"a": {"type": "integer", "multipleOf": 7}}})");
            }).find("#/properties/a/multipleOf"),
            std::string::npos);
  EXPECT_NE(refused([] { Grammar::from_json_schema(R"({"not": {}})"); }).find("#/not"), std::string::npos);
  EXPECT_NE(refused([] { Grammar::from_json_schema(R"({"minLength": 2, "maxLength": 1})"); }).find("no text"), std::string::npos);
  EXPECT_NE(refused([] { Grammar::from_json_schema("{"); }).find("not valid JSON"), std::string::npos);
  refused([] { Grammar::from_json_schema(std::string(1000, '[')); });
  refused([] { Grammar::from_json_schema(R"({"type": "string", "maxLength": "5"})"); });
  refused([] { Grammar::from_json_schema(R"({"allOf": [{"$ref": "#"}]})"); });
}

TEST(Matcher, AllowsTokensThatCrossTheGrammarsParts) {
  const auto vocabulary = bytes({"{\"", "\":", "{\"a\":", "{\"b\":", "1}", "tr", "\xc5", "\xc5\x82"});
  Matcher matcher(
      Grammar::from_json_schema(
          R"({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false})"),
      vocabulary);
  EXPECT_TRUE(matcher.allows('{'));
  EXPECT_TRUE(matcher.allows(257));
  EXPECT_TRUE(matcher.allows(259));
  EXPECT_FALSE(matcher.allows(260));
  EXPECT_FALSE(matcher.allows(end_token));
  const auto mask = matcher.mask();
  for (std::int32_t token = 0; token < static_cast<std::int32_t>(vocabulary->size()); token++) {
    EXPECT_EQ(mask[static_cast<std::size_t>(token) / 64] >> (token % 64) & 1, matcher.allows(token) ? 1U : 0U) << token;
  }
  EXPECT_TRUE(matcher.accept(259));
  EXPECT_FALSE(matcher.accept('x'));
  EXPECT_TRUE(matcher.accept(261));
  EXPECT_TRUE(matcher.can_end());
  EXPECT_TRUE(matcher.is_complete());
  EXPECT_EQ(matcher.mask()[end_token / 64] >> (end_token % 64) & 1, 1U);
  EXPECT_TRUE(matcher.accept(end_token));
  EXPECT_FALSE(matcher.accept(-1));
  EXPECT_FALSE(matcher.accept(100000));
}

TEST(Matcher, KeepsItsBounds) {
  Matcher deep(Grammar::any_json(), bytes());
  EXPECT_TRUE(deep.accept_text(std::string(100, '[')));
  EXPECT_FALSE(deep.accept_text(std::string(10000, '[')));
  EXPECT_TRUE(deep.accept_text(std::string(100, ']')));
  EXPECT_TRUE(deep.can_end());
  // Ways through the text that double with each character are refused, not followed.
  Matcher many(Grammar::from_gbnf("root ::= a\na ::= \"x\" a a | \"x\" a | \"x\""), bytes());
  try {
    many.accept_text(std::string(5000, 'x'));
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::invalid_argument || error.code() == ErrorCode::out_of_memory);
  }
  EXPECT_THROW(Vocabulary({"a"}, {5}), Error);
}

}  // namespace
}  // namespace sdx::text::grammar
