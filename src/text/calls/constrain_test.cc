// Forced calls: what the grammars allow is what the parser reads.

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/errors.h"
#include "text/calls/constrain.h"

namespace sdx::text {
namespace {

using Format = ToolCallFormat;

constexpr const char* kTools = R"([
  {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {
    "city": {"type": "string"}, "unit": {"type": "string", "enum": ["C", "F"]}, "days": {"type": "integer"}},
    "required": ["city"], "additionalProperties": false}}},
  {"type": "function", "function": {"name": "now"}}])";

bool fits(const grammar::Grammar& grammar, std::string_view text) {
  const auto vocabulary = std::make_shared<const grammar::Vocabulary>(std::vector<std::string>{"a"}, std::vector<std::int32_t>{});
  grammar::Matcher matcher(grammar, vocabulary);
  return matcher.accept_text(text) && matcher.can_end();
}

struct Written {
  Format format;
  std::string text;
  std::string prompt = "";
};

class Forced : public ::testing::TestWithParam<Written> {};

TEST_P(Forced, FitsAndIsRead) {
  const Written& w = GetParam();
  AnswerFormat format;
  format.calls = w.format;
  if (w.format == Format::harmony) format.reasoning_begin = format.reasoning_end = "";
  const grammar::Grammar one = grammar_of_calls(format, kTools, {.name = "get_weather"}, w.prompt);
  EXPECT_TRUE(fits(one, w.text)) << w.text;
  EXPECT_TRUE(fits(grammar_of_calls(format, kTools, {}, w.prompt), w.text));
  EXPECT_TRUE(fits(grammar_of_calls(format, kTools, {.name = "", .parallel = true}, w.prompt), w.text));
  EXPECT_FALSE(fits(grammar_of_calls(format, kTools, {.name = "now"}, w.prompt), w.text));
  EXPECT_FALSE(fits(one, "Hello"));
  const ParsedAnswer is = parse_answer(w.text, format, kTools, w.prompt);
  ASSERT_EQ(is.calls.size(), 1U);
  EXPECT_EQ(is.calls[0].name, "get_weather");
  EXPECT_TRUE(is.calls[0].complete);
  EXPECT_EQ(is.calls[0].arguments, R"({"city": "Rome", "days": 3})");
  EXPECT_EQ(is.content, "");
}

INSTANTIATE_TEST_SUITE_P(
    Formats, Forced,
    ::testing::Values(
        Written{Format::hermes,
                "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\", \"days\": 3}}\n</tool_call>"},
        Written{Format::detect,
                "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\", \"days\": 3}}\n</tool_call>"},
        Written{Format::hermes,
                "It rains > 3.</think>\n\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\", \"days\": "
                "3}}\n"
                "</tool_call>",
                "<think>\n"},
        Written{Format::qwen_xml,
                "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
                "</function>\n</tool_call>"},
        Written{Format::glm,
                "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n<arg_key>days</arg_key>\n"
                "<arg_value>3</arg_value>\n</tool_call>"},
        Written{Format::gemma4, R"(<|tool_call>call:get_weather{city:<|"|>Rome<|"|>,days:3}<tool_call|>)"},
        Written{Format::llama, R"({"name": "get_weather", "parameters": {"city": "Rome", "days": 3}})"},
        Written{Format::mistral, R"([TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Rome", "days": 3}}])"},
        Written{Format::mistral_args, R"([TOOL_CALLS]get_weather[ARGS]{"city": "Rome", "days": 3})"},
        Written{Format::json_list, R"(functools[{"name": "get_weather", "arguments": {"city": "Rome", "days": 3}}])"},
        Written{Format::gemma,
                "```tool_code\n{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Rome\", \"days\": 3}}\n```"},
        Written{Format::functionary, "get_weather\n{\"city\": \"Rome\", \"days\": 3}", "assistant\n>>>"},
        Written{Format::functionary, ">>>get_weather\n{\"city\": \"Rome\", \"days\": 3}"},
        Written{Format::deepseek,
                "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Rome\", \"days\": 3}"
                "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
        Written{Format::kimi,
                "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
                "{\"city\": \"Rome\", \"days\": 3}<|tool_call_end|><|tool_calls_section_end|>"},
        Written{Format::harmony,
                "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\": \"Rome\", \"days\": 3}"},
        Written{Format::lfm, R"(<|tool_call_start|>[get_weather(city="Rome", days=3)]<|tool_call_end|>)"},
        Written{Format::olmo, R"(<function_calls>get_weather(city="Rome", days=3)</function_calls>)"},
        Written{Format::pythonic, R"([get_weather(city="Rome", days=3)])"},
        Written{Format::nemotron, R"(<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Rome", "days": 3}}]</TOOLCALL>)"},
        Written{Format::command,
                "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"get_weather\", \"parameters\": {\"city\": "
                "\"Rome\", "
                "\"days\": 3}}\n]<|END_ACTION|>"},
        Written{Format::minimax,
                "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Rome</parameter>\n"
                "<parameter name=\"days\">3</parameter>\n</invoke>\n</minimax:tool_call>"},
        Written{
            Format::dsml,
            "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" "
            "string=\"true\">Rome</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" string=\"false\">3</｜DSML｜parameter>\n"
            "</｜DSML｜invoke>\n</｜DSML｜function_calls>"},
        Written{Format::harmony,
                "<|channel|>analysis<|message|>Rome.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather "
                "<|constrain|>json<|message|>{\"city\": \"Rome\", \"days\": 3}"}));

TEST(ForcedCalls, SeveralAndSchemas) {
  const std::string call = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
  EXPECT_FALSE(fits(grammar_of_calls({}, kTools, {}, ""), call + "\n" + call));
  EXPECT_TRUE(fits(grammar_of_calls({}, kTools, {.name = "", .parallel = true}, ""), call + "\n" + call));
  const grammar::Grammar weather = grammar_of_calls({.calls = Format::llama}, kTools, {.name = "get_weather"}, "");
  EXPECT_FALSE(fits(weather, R"({"name": "get_weather", "parameters": {"city": 3}})"));
  EXPECT_FALSE(fits(weather, R"({"name": "get_weather", "parameters": {}})"));
  EXPECT_TRUE(fits(weather, R"({"name": "get_weather", "parameters": {"city": "", "unit": "C"}})"));
  EXPECT_FALSE(fits(weather, R"({"name": "get_weather", "parameters": {"city": "", "unit": "K"}})"));
  const grammar::Grammar tags = grammar_of_calls({.calls = Format::qwen_xml}, kTools, {.name = "get_weather"}, "");
  const auto tagged = [](const char* city, const char* unit) {
    return std::string("<tool_call>\n<function=get_weather>\n<parameter=city>\n") + city + "\n</parameter>\n<parameter=unit>\n" +
           unit + "\n</parameter>\n</function>\n</tool_call>";
  };
  EXPECT_TRUE(fits(tags, tagged("a < b \"c\"\n", "F")));
  EXPECT_FALSE(fits(tags, tagged("a", "K")));
}

AnswerConstraint held(Format calls, AnswerConstraint::Calls which, std::string prompt = "") {
  AnswerConstraint of;
  of.format.calls = calls;
  if (calls == Format::harmony) of.format.reasoning_begin = of.format.reasoning_end = "";
  of.calls = which;
  if (which != AnswerConstraint::Calls::none) of.tools = kTools;
  of.choice.parallel = true;
  of.prompt = std::move(prompt);
  return of;
}

constexpr const char* kPlace = R"({"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]})";
constexpr const char* kNow = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";

TEST(HeldAnswers, AFormOrCalls) {
  AnswerConstraint of = held(Format::hermes, AnswerConstraint::Calls::allowed);
  of.output = OutputFormat::json_schema;
  of.text = kPlace;
  const grammar::Grammar either = grammar_of_answer(of);
  EXPECT_TRUE(fits(either, R"({"place": "Rome"})"));
  EXPECT_TRUE(fits(either, kNow));
  EXPECT_TRUE(fits(either, std::string(kNow) + "\n" + kNow));
  EXPECT_FALSE(fits(either, R"({"town": "Rome"})"));
  EXPECT_FALSE(fits(either, std::string(R"({"place": "Rome"})") + kNow));
  EXPECT_FALSE(fits(either, "Rome"));
  EXPECT_FALSE(fits(either, R"(<think>a</think>{"place": "Rome"})"));  // nothing says that the model reasons
}

TEST(HeldAnswers, ReasoningComesFirst) {
  AnswerConstraint of = held(Format::none, AnswerConstraint::Calls::none, "user: x\n<think>\n");
  of.output = OutputFormat::json_schema;
  of.text = kPlace;
  const grammar::Grammar within = grammar_of_answer(of);
  EXPECT_TRUE(fits(within, "a < b, </thin {\"x\"}\n</think>\n\n{\"place\": \"Rome\"}"));
  EXPECT_TRUE(fits(within, "</think>{\"place\": \"Rome\"}"));
  EXPECT_FALSE(fits(within, R"({"place": "Rome"})"));
  EXPECT_FALSE(fits(within, "a</think>b</think>{\"place\": \"Rome\"}"));
  of.prompt = "user: x\n";
  of.may_reason = true;
  const grammar::Grammar before = grammar_of_answer(of);
  EXPECT_TRUE(fits(before, "<think>\nhm\n</think>\n\n{\"place\": \"Rome\"}"));
  EXPECT_TRUE(fits(before, R"({"place": "Rome"})"));
  EXPECT_FALSE(fits(before, "hm</think>{\"place\": \"Rome\"}"));
  of.prompt = "<think>\n\n</think>\n\n";  // the template says that there is none
  EXPECT_FALSE(fits(grammar_of_answer(of), "<think>\nhm\n</think>\n\n{\"place\": \"Rome\"}"));
}

TEST(HeldAnswers, StrictToolsAreFreeNotToCall) {
  const grammar::Grammar hermes = grammar_of_answer(held(Format::hermes, AnswerConstraint::Calls::allowed));
  const std::string wrong = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"town\": 5}}\n</tool_call>";
  for (const char* text : {"", "Hello, a < b <tool_cal", "1 {\"a\": 2}", "[1] says so.", "Gr\xC3\xBC\xC3\x9F"}) {
    EXPECT_TRUE(fits(hermes, text)) << text;
    EXPECT_TRUE(fits(hermes, text + std::string(kNow))) << text;
    EXPECT_FALSE(fits(hermes, text + wrong)) << text;
  }
  // The parser would read a call without marks.
  EXPECT_FALSE(fits(hermes, R"( {"name": "get_weather", "arguments": {"town": 5}})"));
  EXPECT_FALSE(fits(hermes, R"([{"name": "get_weather", "arguments": {"town": 5}}])"));
  const grammar::Grammar python = grammar_of_answer(held(Format::pythonic, AnswerConstraint::Calls::allowed));
  EXPECT_TRUE(fits(python, "Hello [1]"));
  EXPECT_TRUE(fits(python, R"([now(), get_weather(city="Rome")])"));
  EXPECT_FALSE(fits(python, R"([get_weather(town=5)])"));
  const grammar::Grammar harmony = grammar_of_answer(held(Format::harmony, AnswerConstraint::Calls::allowed));
  const std::string thought = "<|channel|>analysis<|message|>a < b<|end|><|start|>assistant";
  for (const std::string& first : {std::string(), thought}) {
    EXPECT_TRUE(fits(harmony, first + "<|channel|>final<|message|>Hello"));
    EXPECT_TRUE(fits(harmony, first + "<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}"));
    EXPECT_FALSE(fits(harmony, first + "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{}"));
  }
}

TEST(HeldAnswers, OthersThanStrictToolsAsFarAsPossible) {
  AnswerConstraint of = held(Format::hermes, AnswerConstraint::Calls::required);
  of.tools =
      R"([{"name": "f", "parameters": {"$ref": "http://example.com/schema"}}, {"name": "g", "parameters": {"type": "object",
                "properties": {"x": {"type": "integer"}}, "required": ["x"]}}])";
  EXPECT_THROW(grammar_of_answer(of), Error);
  of.all_strict = false;
  of.strict = {"g"};
  for (const Format format : {Format::hermes, Format::qwen_xml, Format::gemma4, Format::olmo, Format::dsml}) {
    of.format.calls = format;
    const grammar::Grammar grammar = grammar_of_answer(of);
    EXPECT_EQ(grammar.unenforced(), std::vector<std::string>{"tools[f]#"}) << to_string(format);
  }
  of.format.calls = Format::hermes;
  const grammar::Grammar grammar = grammar_of_answer(of);
  EXPECT_TRUE(fits(grammar, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"anything\": [1]}}\n</tool_call>"));
  EXPECT_TRUE(fits(grammar, "<tool_call>\n{\"name\": \"g\", \"arguments\": {\"x\": 1}}\n</tool_call>"));
  EXPECT_FALSE(fits(grammar, "<tool_call>\n{\"name\": \"g\", \"arguments\": {\"x\": \"1\"}}\n</tool_call>"));
  of.strict = {"f"};
  EXPECT_THROW(grammar_of_answer(of), Error);
}

TEST(HeldAnswers, ValuesInTagsThatMayBeSeveralThings) {
  const char* tools = R"([{"name": "f", "parameters": {"$defs": {"U": {"type": "string", "enum": ["C", "F"]},
    "P": {"type": "object", "properties": {"u": {"$ref": "#/$defs/U"}}, "required": ["u"]}}, "properties": {
    "a": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "u": {"$ref": "#/$defs/U"}, "p": {"$ref": "#/$defs/P"}}}}])";
  const grammar::Grammar grammar = grammar_of_calls({.calls = Format::glm}, tools, {}, "");
  const auto call = [](const std::string& key, const std::string& value) {
    return "<tool_call>f\n<arg_key>" + key + "</arg_key>\n<arg_value>" + value + "</arg_value>\n</tool_call>";
  };
  for (const auto& [key, value] : {std::pair("a", "3"), {"a", "null"}, {"u", "C"}, {"p", R"({"u": "F"})"}}) {
    EXPECT_TRUE(fits(grammar, call(key, value))) << key << value;
  }
  for (const auto& [key, value] : {std::pair("a", "x"), {"u", "K"}, {"p", R"({"u": "K"})"}, {"p", "{}"}}) {
    EXPECT_FALSE(fits(grammar, call(key, value))) << key << value;
  }
}

TEST(ForcedCalls, LooseObjects) {
  const grammar::Grammar weather = grammar_of_calls({.calls = Format::gemma4}, kTools, {.name = "get_weather"}, "");
  const auto call = [](const std::string& arguments) { return "<|tool_call>call:get_weather{" + arguments + "}<tool_call|>"; };
  EXPECT_TRUE(fits(weather, call(R"(city:<|"|>a < "b"<|"|>,unit:<|"|>F<|"|>,days:3)")));
  EXPECT_FALSE(fits(weather, call(R"(city:<|"|>a<|"|>,unit:<|"|>K<|"|>)")));
  EXPECT_FALSE(fits(weather, call("days:3")));
  EXPECT_FALSE(fits(weather, call(R"(city:<|"|>a<|"|>,)")));
  const char* optional = R"([{"name": "f", "parameters": {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"},
                                                                         "c": {"type": "integer"}}}}])";
  const grammar::Grammar any = grammar_of_calls({.calls = Format::gemma4}, optional, {}, "");
  for (const std::string text : {"", "a:1", "b:1", "c:1", "a:1,c:2", "b:1,c:2", "a:1,b:2,c:3"}) {
    EXPECT_TRUE(fits(any, "<|tool_call>call:f{" + text + "}<tool_call|>")) << text;
  }
  for (const std::string text : {",a:1", "a:1,", "a:1,a:1", "c:1,a:1", "d:1"}) {
    EXPECT_FALSE(fits(any, "<|tool_call>call:f{" + text + "}<tool_call|>")) << text;
  }
}

TEST(ForcedCalls, WhatCannotBeForcedIsRefused) {
  EXPECT_THROW(grammar_of_calls({}, "", {}, ""), Error);
  EXPECT_THROW(grammar_of_calls({.calls = Format::none}, kTools, {}, ""), Error);
  testing::expect_error([&] { grammar_of_calls({}, kTools, {.name = "other"}, ""); }, {"get_weather, now"});
  testing::expect_error(
      [&] {
        grammar_of_calls({}, R"([{"name": "f", "parameters": {"type": "object", "properties": {"a": {"not": 3}}}}])", {}, "");
      },
      {"tool 'f'"});
  testing::expect_error([&] { grammar_of_calls({}, R"([{"name": "f", "parameters": {"type": 3}}])", {}, ""); }, {"tool 'f'"});
  testing::expect_error([&] { grammar_of_calls({}, R"([{"name": "f", "parameters": {"required": 3}}])", {}, ""); }, {"tool 'f'"});
  const AnswerFormat tags{.calls = Format::qwen_xml};
  // Values in tags are texts; only their lengths and lists are enforced.
  EXPECT_EQ(grammar_of_calls(tags, R"([{"name": "f", "parameters": {"dependentRequired": {"a": ["b"]}, "properties": {
                                          "a": {"type": "string", "not": {"const": "x"}}}}}])",
                             {}, "")
                .unenforced(),
            (std::vector<std::string>{"tools[f]#/dependentRequired", "tools[f]#/not"}));
  for (const char* text : {R"({"type": "string", "maxLength": -1})", R"({"type": "string", "minLength": 3, "maxLength": 2})",
                           R"({"type": "string", "maxLength": "x"})"}) {
    const std::string tools =
        R"([{"name": "f", "parameters": {"type": "object", "properties": {"a": )" + std::string(text) + "}}}]";
    EXPECT_THROW(grammar_of_calls(tags, tools, {}, ""), Error) << text;
  }
  EXPECT_THROW(grammar_of_calls(tags, R"([{"name": "f", "parameters": {"required": ["a"]}}])", {}, ""), Error);
  const grammar::Grammar two = grammar_of_calls(
      tags, R"([{"name": "f", "parameters": {"properties": {"a": {"type": "string", "maxLength": 2}}, "required": ["a"]}}])", {},
      "");
  const auto with = [](const char* value) {
    return std::string("<tool_call>\n<function=f>\n<parameter=a>\n") + value + "\n</parameter>\n</function>\n</tool_call>";
  };
  EXPECT_TRUE(fits(two, with("ab")));
  EXPECT_FALSE(fits(two, with("abc")));
}

}  // namespace
}  // namespace sdx::text
