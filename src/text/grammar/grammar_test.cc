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
  // Annotations of both schemas, which do not restrict the value, need not be equal.
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

// Schemas in the form of pydantic, zod and servers of tools.
TEST(Grammar, ReadsNumbersWithAnyBounds) {
  expect(Grammar::from_json_schema(R"({"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991})"),
         {"0", "-1", "9007199254740991", "-9007199254740991", "123456"}, {"9007199254740992", "-9007199254740992", "-0", "1.5"});
  expect(Grammar::from_json_schema(R"({"type": "integer", "minimum": -9223372036854775808, "maximum": 18446744073709551615})"),
         {"0", "-7", "9999999999999999"}, {"1.5"});
  expect(Grammar::from_json_schema(R"({"type": "number", "minimum": 0.5, "maximum": 2.25})"),
         {"0.5", "1", "2", "2.2", "2.25", "2.249", "0.51", "1.999"}, {"0", "0.4", "0.49", "2.26", "2.251", "3", "-1", "2.3"});
  expect(Grammar::from_json_schema(R"({"type": "number", "exclusiveMinimum": -0.5, "exclusiveMaximum": 0.5})"),
         {"0", "0.4", "-0.4", "-0.49", "0.49999", "0.01", "-0.01"}, {"0.5", "-0.5", "-0.51", "1", "-1"});
  expect(Grammar::from_json_schema(R"({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})"),
         {"0.001", "0.5", "0.999"}, {"0", "0.0", "1", "1.0", "-0.5"});
  expect(Grammar::from_json_schema(R"({"type": "number", "minimum": 5, "maximum": 5})"), {"5", "5.0"}, {"5.1", "4.9", "4"});
  expect(Grammar::from_json_schema(R"({"type": "number", "minimum": -3.4e38, "maximum": 3.4e38})"), {"1.5", "-2"}, {"1e99"});
}

TEST(Grammar, ReadsMultiples) {
  expect(Grammar::from_json_schema(R"({"type": "integer", "multipleOf": 7})"), {"0", "7", "-14", "700000007"},
         {"1", "8", "-6", "70.0"});
  expect(Grammar::from_json_schema(R"({"type": "integer", "multipleOf": 5, "minimum": 10, "maximum": 100})"), {"10", "15", "100"},
         {"5", "11", "105", "0"});
  expect(Grammar::from_json_schema(R"({"type": "number", "multipleOf": 0.25, "minimum": 0})"),
         {"0", "1", "0.25", "1.50", "12.75"}, {"0.3", "1.55", "-0.25"});
  expect(Grammar::from_json_schema(R"({"type": "number", "multipleOf": 0.01})"), {"0.01", "-3.20", "7"}, {"0.001"});
  expect(Grammar::from_json_schema(R"({"type": "integer", "multipleOf": 0.5})"), {"3", "-2"}, {"0.5"});
  EXPECT_EQ(Grammar::from_json_schema(R"({"properties": {"a": {"type": "integer", "multipleOf": 99991}}})").unenforced(),
            std::vector<std::string>{"#/properties/a/multipleOf"});
}

TEST(Grammar, ReadsTextsWithSeveralConditions) {
  // The address of a page, as pydantic has it.
  expect(Grammar::from_json_schema(R"({"type": "string", "format": "uri", "minLength": 1, "maxLength": 2083})"),
         {"\"https://a.example/x?y=1\""}, {"\"\"", "\"x\""});
  expect(
      Grammar::from_json_schema(
          R"({"type": "string", "format": "uuid", "pattern": "^([0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})$"})"),
      {"\"01234567-89ab-4cde-8123-456789abcdef\""}, {"\"01234567-89ab-1cde-8123-456789abcdef\""});
  const Grammar mail = Grammar::from_json_schema(
      R"({"properties": {"m": {"type": "string", "format": "email", "pattern": "^(?!\\.)[a-z]+@[a-z.]+$"}}, "required": ["m"]})");
  expect(mail, {R"({"m":"a@b.org"})"}, {R"({"m":"a"})"});
  EXPECT_EQ(mail.unenforced(), std::vector<std::string>{"#/properties/m/pattern"});
  expect(Grammar::from_json_schema(R"({"type": "string", "pattern": "^[A-Z][a-z]*$", "minLength": 3, "maxLength": 5})"),
         {"\"Abc\"", "\"Abcde\""}, {"\"Ab\"", "\"Abcdef\"", "\"abc\""});
  expect(Grammar::from_json_schema(R"({"type": "string", "format": "password"})"), {"\"x\"", "\"\""}, {"1"});
  expect(Grammar::from_json_schema(R"({"type": "string", "pattern": "^\\p{L}+\\p{Nd}$"})"), {"\"żółw7\"", "\"a1\""},
         {"\"1\"", "\"a\""});
  expect(Grammar::from_json_schema(R"({"type": "string", "pattern": "\\bcat\\b"})"), {"\"cat\""}, {"\"cats\"", "\"dog\""});
  EXPECT_EQ(Grammar::from_json_schema(R"({"type": "string", "pattern": "(?!a)b"})").unenforced(),
            std::vector<std::string>{"#/pattern"});
}

TEST(Grammar, ReadsListsAndObjectsOfClients) {
  expect(
      Grammar::from_json_schema(R"({"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": true, "minItems": 1})"),
      {R"(["a"])", R"(["a","c"])", R"(["a","b","c"])"}, {"[]", R"(["a","a"])", R"(["d"])"});
  expect(Grammar::from_json_schema(R"({"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": true, "maxItems": 2})"),
         {"[]", "[1,3]", "[2]"}, {"[1,2,3]", "[2,2]"});
  const Grammar set = Grammar::from_json_schema(R"({"type": "array", "items": {"type": "string"}, "uniqueItems": true})");
  EXPECT_TRUE(fits(set, R"(["a","b"])"));
  EXPECT_EQ(set.unenforced(), std::vector<std::string>{"#/uniqueItems"});
  expect(Grammar::from_json_schema(
             R"({"type": "object", "propertyNames": {"type": "string"}, "additionalProperties": {"type": "integer"}})"),
         {R"({"a":1,"b":2})", "{}"}, {R"({"a":"x"})"});
  expect(Grammar::from_json_schema(
             R"({"type": "object", "propertyNames": {"enum": ["x", "y"]}, "additionalProperties": {"type": "integer"}})"),
         {R"({"x":1})", R"({"x":1,"y":2})", "{}"}, {R"({"z":1})", R"({"x":1,"x":2})"});
  expect(Grammar::from_json_schema(R"({"type": "object", "patternProperties": {"^x-": {"type": "integer"}}})"),
         {R"({"x-a":1})", "{}"}, {R"({"y":1})", R"({"x-a":"b"})"});
  expect(Grammar::from_json_schema(
             R"({"properties": {"id": {"type": "integer"}}, "required": ["id"], "patternProperties": {"^i": {"maximum": 5}},
                 "unevaluatedProperties": false})"),
         {R"({"id":5})"}, {R"({"id":6})", R"({"id":1,"ix":2})", "{}"});
  expect(Grammar::from_json_schema(
             R"({"type": "array", "items": [{"type": "integer"}, {"type": "null"}], "additionalItems": false})"),
         {"[]", "[1]", "[1,null]"}, {"[1,null,2]", "[null]"});
  expect(Grammar::from_json_schema(
             R"({"type": "integer", "maximum": 3, "markdownDescription": "m", "enumDescriptions": [1], "if2": {}})"),
         {"3"}, {"4"});
  expect(Grammar::from_json_schema(R"({"type": "object", "properties": {"a": {"not": {}}, "b": {"type": "null"}}})"),
         {"{}", R"({"b":null})"}, {R"({"a":1})"});
}

TEST(Grammar, ReadsConditionsOfConditions) {
  expect(Grammar::from_json_schema(
             R"({"type": "object", "properties": {"a": {"enum": [1, 2]}, "b": {"type": "null"}}, "required": ["a"],
                 "additionalProperties": false, "if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]},
                 "else": {"not": {"required": ["b"]}}})"),
         {R"({"a":1,"b":null})", R"({"a":2})"}, {R"({"a":1})", R"({"a":2,"b":null})", "{}"});
  expect(Grammar::from_json_schema(R"({"type": "array", "items": {"enum": [1, 2]}, "contains": {"const": 2}, "maxContains": 1})"),
         {"[2]", "[1,2]", "[1,1,2,1]"}, {"[]", "[1]", "[2,2]", "[2,1,2]"});
  expect(Grammar::from_json_schema(R"({"type": "string", "not": {"enum": ["", "no"]}})"), {R"("n")", R"("now")", R"("yes")"},
         {R"("")", R"("no")", "1"});
  expect(Grammar::from_json_schema(R"({"type": ["string", "null"], "not": {"type": "null"}})"), {R"("n")"}, {"null"});
  // A condition that no grammar can express is left to the caller as a whole.
  const Grammar loose = Grammar::from_json_schema(
      R"({"type": "object", "properties": {"a": {"type": "string"}}, "if": {"properties": {"a": {"pattern": "^x"}}},
          "then": {"required": ["a"]}})");
  EXPECT_TRUE(fits(loose, R"({"a":"x"})"));
  EXPECT_EQ(loose.unenforced(), std::vector<std::string>{"#/if"});
}

TEST(Grammar, ReferencesAreNoNesting) {
  std::string schema = R"({"$ref": "#/$defs/d0", "$defs": {)";
  for (int i = 0; i < 300; i++) {
    schema += "\"d" + std::to_string(i) + R"(": {"type": "object", "properties": {"n": {"anyOf": [{"$ref": "#/$defs/d)" +
              std::to_string(i + 1) + R"("}, {"type": "null"}]}}, "required": ["n"], "additionalProperties": false},)";
  }
  const Grammar chain = Grammar::from_json_schema(schema + R"("d300": {"type": "integer"}}})");
  expect(chain, {R"({"n":null})", R"({"n":{"n":{"n":null}}})"}, {R"({"n":1})"});
}

TEST(Grammar, RefusesWhatItCannotEnforceWithThePlace) {
  EXPECT_NE(refused([] { Grammar::from_json_schema(R"({"properties": {"a": {"not": 3}}})"); }).find("#/properties/a/not"),
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
