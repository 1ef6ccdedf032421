// Answers in the formats of calls, in pieces of every size.

#include <gtest/gtest.h>

#include <random>
#include <sdx/tool_calls.hpp>

#include "base/error.h"

namespace sdx::text {
namespace {

using Format = ToolCallFormat;
using Kind = AnswerEvent::Kind;

constexpr const char* kTools = R"([
  {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {
    "city": {"type": "string"}, "days": {"type": "integer"}, "metric": {"type": "boolean"}, "note": {"type": ["string", "null"]},
    "more": {"type": "object"}}}}},
  {"type": "function", "function": {"name": "add"}}])";

struct Expected {
  const char* name;
  const char* arguments;
  bool complete = true;
};

struct Case {
  const char* what;
  Format format;
  std::string text;
  std::vector<Expected> calls;
  std::string content = "", reasoning = "";
  std::string prompt = "";
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.what; }

// The events together must equal the whole.
ParsedAnswer gather(const Case& c, const std::vector<std::string_view>& pieces, const char* tools = kTools) {
  AnswerFormat format;
  format.calls = c.format;
  if (c.format == Format::harmony) format.reasoning_begin = format.reasoning_end = "";
  AnswerParser parser(format, tools, c.prompt);
  ParsedAnswer told;
  int open = -1;
  const auto hear = [&](const std::vector<AnswerEvent>& events) {
    for (const AnswerEvent& e : events) {
      switch (e.kind) {
        case Kind::content: told.content += e.text; break;
        case Kind::reasoning: told.reasoning += e.text; break;
        case Kind::call_begin:
          EXPECT_EQ(open, -1);
          open = e.index;
          EXPECT_EQ(e.index, static_cast<int>(told.calls.size()));
          told.calls.push_back({e.id, e.name, "", false});
          EXPECT_FALSE(e.id.empty());
          break;
        case Kind::arguments:
          EXPECT_EQ(open, e.index);
          told.calls.back().arguments += e.text;
          break;
        case Kind::call_end:
          EXPECT_EQ(open, e.index);
          open = -1;
          told.calls.back().complete = e.complete;
          break;
      }
      EXPECT_EQ(e.text.empty(), e.kind == Kind::call_begin || e.kind == Kind::call_end);
    }
  };
  for (const std::string_view piece : pieces) hear(parser.add(piece));
  hear(parser.finish());
  EXPECT_EQ(open, -1);
  const ParsedAnswer& whole = parser.answer();
  EXPECT_EQ(told.content, whole.content);
  EXPECT_EQ(told.reasoning, whole.reasoning);
  EXPECT_EQ(told.calls.size(), whole.calls.size());
  for (std::size_t i = 0; i < std::min(told.calls.size(), whole.calls.size()); ++i) {
    EXPECT_EQ(told.calls[i].id, whole.calls[i].id);
    EXPECT_EQ(told.calls[i].name, whole.calls[i].name);
    EXPECT_EQ(told.calls[i].arguments, whole.calls[i].arguments);
    EXPECT_EQ(told.calls[i].complete, whole.calls[i].complete);
  }
  return whole;
}

void expect(const Case& c, const ParsedAnswer& is) {
  EXPECT_EQ(is.content, c.content) << c.what;
  EXPECT_EQ(is.reasoning, c.reasoning) << c.what;
  ASSERT_EQ(is.calls.size(), c.calls.size()) << c.what;
  for (std::size_t i = 0; i < c.calls.size(); ++i) {
    EXPECT_EQ(is.calls[i].name, c.calls[i].name) << c.what;
    EXPECT_EQ(is.calls[i].arguments, c.calls[i].arguments) << c.what;
    EXPECT_EQ(is.calls[i].complete, c.calls[i].complete) << c.what;
  }
}

std::vector<std::string_view> cut(std::string_view text, std::size_t size) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < text.size(); at += size) out.push_back(text.substr(at, size));
  return out;
}

class Calls : public ::testing::TestWithParam<Case> {};

TEST_P(Calls, AreTheSameHoweverTheyAreCut) {
  const Case& c = GetParam();
  for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{7}, c.text.size() + 1}) {
    expect(c, gather(c, cut(c.text, size)));
    if (HasFailure()) FAIL() << c.what << " in pieces of " << size;
  }
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string_view> pieces;
    for (std::string_view left = c.text; !left.empty();) {
      const std::size_t n = std::min<std::size_t>(left.size(), 1 + random() % 13);
      pieces.push_back(left.substr(0, n));
      left.remove_prefix(n);
    }
    expect(c, gather(c, pieces));
    if (HasFailure()) FAIL() << c.what << " round " << round;
  }
}

const std::string kHermes =
    "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Zürich\", \"days\": 3}}\n</tool_call>";
const std::string kZurich = R"({"city": "Zürich", "days": 3})";

INSTANTIATE_TEST_SUITE_P(
    Formats, Calls,
    ::testing::Values(
        Case{"hermes", Format::hermes, kHermes, {{"get_weather", kZurich.c_str()}}},
        Case{"hermes, found out", Format::detect, kHermes, {{"get_weather", kZurich.c_str()}}},
        Case{"hermes, two, with text",
             Format::hermes,
             "Let me see.\n\n" + kHermes + "\n" + kHermes + "\nDone.",
             {{"get_weather", kZurich.c_str()}, {"get_weather", kZurich.c_str()}},
             "Let me see.Done."},
        Case{"hermes behind reasoning",
             Format::hermes,
             "<think>\nThe city is <b>.\n</think>\n\n" + kHermes,
             {{"get_weather", kZurich.c_str()}},
             "",
             "The city is <b>."},
        Case{"hermes, arguments first",
             Format::hermes,
             R"(<tool_call>{"arguments": {"a": [1, "}"]}, "name": "add"}</tool_call>)",
             {{"add", R"({"a": [1, "}"]})"}}},
        Case{"hermes, arguments as a text",
             Format::hermes,
             R"(<tool_call>{"name": "add", "arguments": "{\"a\": 1}"}</tool_call>)",
             {{"add", R"({"a": 1})"}}},
        Case{"hermes, no arguments", Format::hermes, R"(<tool_call>{"name": "add"}</tool_call>)", {{"add", "{}"}}},
        Case{"hermes, a brace missing",
             Format::hermes,
             R"(<tool_call>{"name": "add", "arguments": {"a": 1}</tool_call>)",
             {{"add", R"({"a": 1})"}}},
        Case{"hermes, cut off",
             Format::hermes,
             R"(<tool_call>{"name": "add", "arguments": {"a": 1)",
             {{"add", R"({"a": 1)", false}}},
        Case{"hermes, cut in the head",
             Format::hermes,
             R"(<tool_call>{"name": "add", "argu)",
             {},
             R"(<tool_call>{"name": "add", "argu)"},
        Case{"hermes, not JSON",
             Format::hermes,
             R"(<tool_call>{"name": "add", "arguments": {a: 1}}</tool_call>)",
             {{"add", "{a: 1}", false}}},
        Case{"only looks so",
             Format::hermes,
             "Write <tool_call> and <tool_call>[x] and <tool_ca",
             {},
             "Write <tool_call> and <tool_call>[x] and <tool_ca"},
        Case{"an object without a name",
             Format::hermes,
             "<tool_call>{\"a\": 1}</tool_call> ",
             {},
             "<tool_call>{\"a\": 1}</tool_call> "},
        Case{"blanks stay", Format::detect, "  Hello \n\n world\n ", {}, "  Hello \n\n world\n "},
        Case{"reasoning in the prompt",
             Format::hermes,
             "I think.\n</think>\n\nYes. ",
             {},
             "Yes. ",
             "I think.",
             "<|assistant|><think>\n"},
        Case{"reasoning without an end", Format::none, "<think>I think </thin", {}, "", "I think </thin"},
        Case{"no reasoning later", Format::none, "a <think>b</think>", {}, "a <think>b</think>"},
        Case{"none leaves calls", Format::none, kHermes, {}, kHermes},
        Case{"tags",
             Format::qwen_xml,
             "<tool_call>\n<function=get_weather>\n<parameter=city>\nZürich "
             "\"x\"\nb\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
             "<parameter=metric>\nTrue\n</parameter>\n<parameter=note>\nNone\n</parameter>\n<parameter=more>\n{\"a\": "
             "[1]}\n</parameter>\n"
             "<parameter=new>\nhello\n</parameter>\n</function>\n</tool_call>",
             {{"get_weather",
               R"({"city": "Zürich \"x\"\nb", "days": 3, "metric": true, "note": null, "more": {"a": [1]}, "new": "hello"})"}}},
        Case{"tags without parameters",
             Format::qwen_xml,
             "Hm\n<tool_call>\n<function=add>\n</function>\n</tool_call>",
             {{"add", "{}"}},
             "Hm"},
        Case{
            "a number that is a text",
            Format::qwen_xml,
            "<tool_call><function=get_weather><parameter=city>12</parameter><parameter=note>7</parameter></function></tool_call>",
            {{"get_weather", R"({"city": "12", "note": "7"})"}}},
        Case{"tags, cut off", Format::qwen_xml, "<tool_call>\n<function=add>\n<parameter=a>\n1", {{"add", R"({"a": )", false}}},
        Case{"glm",
             Format::glm,
             "I look.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Zürich "
             "\"x\"\nb</arg_value>\n<arg_key>days</arg_key>\n"
             "<arg_value>3</arg_value>\n<arg_key>more</arg_key>\n<arg_value>{\"a\": [1]}</arg_value>\n</tool_call>\n"
             "<tool_call>add\n</tool_call>",
             {{"get_weather", R"({"city": "Zürich \"x\"\nb", "days": 3, "more": {"a": [1]}})"}, {"add", "{}"}},
             "I look."},
        Case{"glm, newer, without line ends",
             Format::glm,
             "<tool_call>get_weather<arg_key>city</arg_key><arg_value>12</arg_value><arg_key>metric</arg_key><arg_value>True</"
             "arg_value>"
             "</tool_call><tool_call>new</tool_call>",
             {{"get_weather", R"({"city": "12", "metric": true})"}, {"new", "{}"}}},
        Case{"glm, unasked",
             Format::detect,
             "<tool_call>other\n<arg_key>a</arg_key>\n<arg_value>b</arg_value>\n</tool_call>",
             {{"other", R"({"a": "b"})"}}},
        Case{"glm, JSON", Format::glm, "<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>", {{"add", "{}"}}},
        Case{"glm, cut off", Format::glm, "<tool_call>add\n<arg_key>a</arg_key>\n<arg_value>1", {{"add", R"({"a": )", false}}},
        Case{"glm, something between the pairs",
             Format::glm,
             "<tool_call>add<arg_key>a</arg_key>: <arg_value>1</arg_value></tool_call>",
             {{"add", "{", false}},
             "<arg_key>a</arg_key>: <arg_value>1</arg_value></tool_call>"},
        Case{"words between marks", Format::detect, "<tool_call>hello</tool_call>", {}, "<tool_call>hello</tool_call>"},
        Case{"glm, no name", Format::glm, "<tool_call>two words<arg_key>", {}, "<tool_call>two words<arg_key>"},
        Case{"gemma 4",
             Format::gemma4,
             "<|tool_call>call:get_weather{city:<|\"|>Zürich \"x\"\n<b|<|\"|>,days:3,more:{a:[1,<|\"|>c<|\"|>],b:{}}}<tool_call|>"
             "<|tool_call>call:add{}<tool_call|>",
             {{"get_weather", R"({"city": "Zürich \"x\"\n<b|", "days": 3, "more": {"a": [1, "c"], "b": {}}})"}, {"add", "{}"}}},
        Case{"gemma 4, quotes as in JSON",
             Format::gemma4,
             R"(<|tool_call>call:add{"a": 1, b: "x\"}"}<tool_call|>)",
             {{"add", R"({"a":  1, "b":  "x\"}"})"}}},
        Case{"gemma 4, text behind",
             Format::gemma4,
             "<|tool_call>call:add{a:true}<tool_call|>Well.",
             {{"add", R"({"a": true})"}},
             "Well."},
        Case{"gemma 4, no JSON", Format::gemma4, "<|tool_call>call:add{a:b}<tool_call|>", {{"add", R"({"a": b})", false}}},
        Case{"gemma 4, cut off", Format::gemma4, "<|tool_call>call:add{a:<|\"|>x", {{"add", R"({"a": "x)", false}}},
        Case{"gemma 4, no call", Format::gemma4, "<|tool_call>add{a:1}", {}, "<|tool_call>add{a:1}"},
        Case{"gemma 4, brackets that do not fit",
             Format::gemma4,
             "<|tool_call>call:add{a:[1}",
             {{"add", R"({"a": [1)", false}},
             "}"},
        Case{"a function tag with JSON", Format::llama, "<function=add>{\"a\": 1}</function>", {{"add", R"({"a": 1})"}}},
        Case{"llama",
             Format::llama,
             R"({"name": "get_weather", "parameters": {"city": "Zürich", "days": 3}})",
             {{"get_weather", kZurich.c_str()}}},
        Case{"llama, two",
             Format::llama,
             R"({"name": "add", "parameters": {}}; {"name": "add", "parameters": {"a": 2}})",
             {{"add", "{}"}, {"add", R"({"a": 2})"}}},
        Case{"llama with a tag",
             Format::llama,
             R"(<|python_tag|>{"name": "other", "parameters": {"a": 1}})",
             {{"other", R"({"a": 1})"}}},
        Case{"llama, some object",
             Format::llama,
             R"({"name": "Lily", "parameters": {"age": 3}})",
             {},
             R"({"name": "Lily", "parameters": {"age": 3}})"},
        Case{"llama, code", Format::llama, "<|python_tag|>print(1)", {}, "<|python_tag|>print(1)"},
        Case{"mistral",
             Format::mistral,
             R"([TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Zürich", "days": 3}}, )"
             R"({"id": "abc123456", "name": "add", "arguments": {}}])",
             {{"get_weather", kZurich.c_str()}, {"add", "{}"}}},
        Case{"mistral, newer",
             Format::mistral,
             R"([TOOL_CALLS]add[ARGS]{"a": 1}[TOOL_CALLS]get_weather[CALL_ID]123456789[ARGS]{"city": "]"})",
             {{"add", R"({"a": 1})"}, {"get_weather", R"({"city": "]"})"}}},
        Case{"mistral, no call",
             Format::mistral,
             "[TOOL_CALLS] are marks [TOOL_CALLS]",
             {},
             "[TOOL_CALLS] are marks [TOOL_CALLS]"},
        Case{"functools",
             Format::json_list,
             R"(functools[{"name": "add", "arguments": {"a": 1}},{"name": "add", "arguments": {"a": 2}}])",
             {{"add", R"({"a": 1})"}, {"add", R"({"a": 2})"}}},
        Case{"a list between marks",
             Format::json_list,
             R"(<|tool_call|>[{"name": "add", "arguments": {"a": 1}}]<|/tool_call|>)",
             {{"add", R"({"a": 1})"}}},
        Case{"tool_calls",
             Format::json_list,
             R"(Steps.
<tool_calls>[{"name": "add", "arguments": {"a": 1}, "id": "call00001"}]</tool_calls>)",
             {{"add", R"({"a": 1})"}},
             "Steps."},
        Case{"lfm",
             Format::lfm,
             "<|tool_call_start|>[get_weather(city=\"Rome\", days=3), add(a=-1.5e3, b=[1, 'x', None], c={'k': "
             "True})]<|tool_call_end|>It rains.",
             {{"get_weather", R"({"city": "Rome", "days": 3})"},
              {"add", R"({"a": -1.5e3, "b": [1, "x", null], "c": {"k": true}})"}},
             "It rains."},
        Case{"lfm, found out", Format::detect, "<|tool_call_start|>[add()]<|tool_call_end|>", {{"add", "{}"}}},
        Case{"lfm, JSON",
             Format::lfm,
             R"(<|tool_call_start|>[{"name": "add", "arguments": {"a": 1}}]<|tool_call_end|>)",
             {{"add", R"({"a": 1})"}}},
        Case{"lfm, no call", Format::lfm, "<|tool_call_start|>[a (list)]", {}, "<|tool_call_start|>[a (list)]"},
        Case{"olmo",
             Format::olmo,
             "I look.\n<function_calls>\nadd(a='it\\'s (1)\\n')\nadd(a=\"\\u00fc\\ud83d\\ude00\")\n</function_calls>\nBye (x)",
             {{"add", R"({"a": "it's (1)\n"})"}, {"add", "{\"a\": \"ü\U0001F600\"}"}},
             "I look.Bye (x)"},
        Case{"pythonic",
             Format::pythonic,
             R"([add(a=1), get_weather(city="Rome")])",
             {{"add", R"({"a": 1})"}, {"get_weather", R"({"city": "Rome"})"}}},
        Case{"pythonic, found out", Format::detect, "[add(a=1)]", {{"add", R"({"a": 1})"}}},
        Case{"pythonic, marked", Format::pythonic, "<|python_start|>[add(a=1)]<|python_end|>", {{"add", R"({"a": 1})"}}},
        Case{"pythonic, others' functions", Format::pythonic, "[print(a=1)]", {}, "[print(a=1)]"},
        Case{"pythonic, a list", Format::pythonic, "[1] and [add]", {}, "[1] and [add]"},
        Case{"nemotron",
             Format::nemotron,
             R"(<TOOLCALL>[{"name": "add", "arguments": {"a": 1}}, {"name": "add", "arguments": {}}]</TOOLCALL>)",
             {{"add", R"({"a": 1})"}, {"add", "{}"}}},
        Case{"command",
             Format::command,
             "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"add\", \"parameters\": {\"a\": 1}},\n    "
             "{\"tool_call_id\": "
             "\"1\", \"tool_name\": \"add\", \"parameters\": {}}\n]<|END_ACTION|>",
             {{"add", R"({"a": 1})"}, {"add", "{}"}}},
        Case{"minimax",
             Format::minimax,
             "Now.\n<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">\nZ\"ü</parameter>\n<parameter "
             "name=\"days\">3</parameter>\n</invoke>\n<invoke name=\"add\">\n</invoke>\n</minimax:tool_call>",
             {{"get_weather", R"({"city": "\nZ\"ü", "days": 3})"}, {"add", "{}"}},
             "Now."},
        Case{"minimax, cut off",
             Format::minimax,
             "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Ro",
             {{"get_weather", R"({"city": "Ro)", false}}},
        Case{"dsml",
             Format::dsml,
             "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"add\">\n<｜DSML｜parameter name=\"a\" "
             "string=\"true\">5</｜DSML｜parameter>\n"
             "<｜DSML｜parameter name=\"b\" string=\"false\">[1, "
             "2]</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
             {{"add", R"({"a": "5", "b": [1, 2]})"}}},
        Case{"functools in prose", Format::json_list, "functools[0] and functools", {}, "functools[0] and functools"},
        Case{"gemma",
             Format::gemma,
             "Sure:\n```tool_code\n{\"name\": \"add\", \"parameters\": {\"a\": 1}}\n```",
             {{"add", R"({"a": 1})"}},
             "Sure:"},
        Case{"gemma, a list without a fence",
             Format::gemma,
             R"([{"name": "add", "parameters": {"a": 1}}])",
             {{"add", R"({"a": 1})"}}},
        Case{"other JSON in a fence",
             Format::gemma,
             "```json\n{\"name\": \"Bob\", \"parameters\": {}}\n```\n",
             {},
             "```json\n{\"name\": \"Bob\", \"parameters\": {}}\n```\n"},
        Case{"functionary",
             Format::functionary,
             "get_weather\n{\"city\": \"Zürich\", \"days\": 3}\n>>>add\n{\"a\": 1}",
             {{"get_weather", kZurich.c_str()}, {"add", R"({"a": 1})"}},
             "",
             "",
             "<|assistant|>\n\n>>>"},
        Case{"functionary to all",
             Format::functionary,
             "all\nHello\n>>>add\n{\"a\": 1}",
             {{"add", R"({"a": 1})"}},
             "Hello",
             "",
             ">>>"},
        Case{"deepseek",
             Format::deepseek,
             "Good.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>add<｜tool▁sep｜>{\"a\": "
             "1}<｜tool▁call▁end｜><｜tool▁call▁begin｜>add<｜tool▁sep｜>{}"
             "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
             {{"add", R"({"a": 1})"}, {"add", "{}"}},
             "Good."},
        Case{"deepseek, older",
             Format::deepseek,
             "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{\"a\": "
             "1}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>"
             "function<｜tool▁sep｜>add\n```json\n{\"a\": 2}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
             {{"add", R"({"a": 1})"}, {"add", R"({"a": 2})"}}},
        Case{"kimi",
             Format::kimi,
             "<|tool_calls_section_begin|><|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{\"a\": "
             "1}<|tool_call_end|>"
             "<|tool_calls_section_end|>",
             {{"add", R"({"a": 1})"}}},
        Case{"harmony",
             Format::harmony,
             "<|channel|>analysis<|message|>I need it. <|end|><|start|>assistant<|channel|>commentary to=functions.add "
             "<|constrain|>json"
             "<|message|>{\"a\": 1}",
             {{"add", R"({"a": 1})"}},
             "",
             "I need it."},
        Case{"harmony, an answer",
             Format::harmony,
             "<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final<|message|>It is <5>.",
             {},
             "It is <5>.",
             "Easy."},
        Case{"harmony, the receiver first",
             Format::harmony,
             "<|start|>assistant to=functions.add<|channel|>commentary json<|message|>{\"a\": 1}<|call|>",
             {{"add", R"({"a": 1})"}}}));

TEST(CallParser, IdsAreTheModelsOrMadeUp) {
  AnswerFormat format;
  format.calls = Format::mistral;
  const ParsedAnswer m = parse_answer(
      R"([TOOL_CALLS][{"id": "abc123456", "name": "add", "arguments": {}}, {"name": "add", "arguments": {}}])", format);
  ASSERT_EQ(m.calls.size(), 2U);
  EXPECT_EQ(m.calls[0].id, "abc123456");
  EXPECT_EQ(m.calls[1].id.size(), 9U);
  const ParsedAnswer k =
      parse_answer("<|tool_call_begin|>functions.add:7<|tool_call_argument_begin|>{}<|tool_call_end|>", {.calls = Format::kimi});
  ASSERT_EQ(k.calls.size(), 1U);
  EXPECT_EQ(k.calls[0].id, "functions.add:7");
  const ParsedAnswer h = parse_answer(kHermes + kHermes);
  ASSERT_EQ(h.calls.size(), 2U);
  EXPECT_TRUE(h.calls[0].id.starts_with("call_"));
  EXPECT_NE(h.calls[0].id, h.calls[1].id);
}

TEST(CallParser, ArgumentsComeAsTheyAreWritten) {
  AnswerParser parser({.calls = Format::hermes}, kTools);
  EXPECT_TRUE(parser.add("<tool_call>{\"name\": \"add\"").empty());
  EXPECT_TRUE(parser.add(", \"arguments\": ").empty());
  std::vector<AnswerEvent> events = parser.add("{\"a\"");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].kind, Kind::call_begin);
  EXPECT_EQ(events[1].text, "{\"a\"");
  events = parser.add(": 1");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].text, ": 1");
  // Text that cannot become a mark does not wait.
  AnswerParser plain({}, kTools);
  events = plain.add("a <b");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].text, "a <b");
}

TEST(CallParser, BareObjectsNeedTools) {
  const std::string text = R"({"name": "add", "parameters": {}})";
  EXPECT_EQ(parse_answer(text, {.calls = Format::llama}).content, text);
  EXPECT_EQ(parse_answer(text, {.calls = Format::llama}, kTools).calls.size(), 1U);
}

TEST(CallParser, ToolsMustBeFunctions) {
  for (const char* wrong :
       {"{", "{}", "[1]", R"([{"name": 1}])", R"([{"name": "a b"}])", R"([{"type": "function", "function": 3}])"}) {
    EXPECT_THROW(parse_answer("", {}, wrong), Error) << wrong;
  }
  EXPECT_NO_THROW(parse_answer("", {}, "null"));
  EXPECT_NO_THROW(parse_answer("", {}, R"([{"name": "a", "parameters": {}}])"));
  EXPECT_THROW(parse_answer("", {}, std::string(100000, '[')), Error);
}

TEST(CallParser, FormatsOfTemplates) {
  EXPECT_EQ(answer_format("… <tool_call>\n{\"name\"…").calls, Format::hermes);
  EXPECT_EQ(answer_format("… <tool_call>\n<function=example>…").calls, Format::qwen_xml);
  EXPECT_EQ(answer_format("… <tool_call>{function-name}\n<arg_key>…").calls, Format::glm);
  EXPECT_EQ(answer_format("'<|tool_call>call:' + name … <|channel>thought").calls, Format::gemma4);
  EXPECT_EQ(answer_format("'<|tool_call>call:' + name … <|channel>thought").reasoning_end, "<channel|>");
  EXPECT_EQ(answer_format("{{'[TOOL_CALLS] '}}[THINK]").calls, Format::mistral);
  EXPECT_EQ(answer_format("{{'[TOOL_CALLS] '}}[THINK]").reasoning_begin, "[THINK]");
  EXPECT_EQ(answer_format("<|channel|>analysis<|message|>").calls, Format::harmony);
  EXPECT_EQ(answer_format("<start_of_turn>user").calls, Format::gemma);
  EXPECT_EQ(answer_format("hello").calls, Format::detect);
  for (int i = 0; i <= static_cast<int>(Format::harmony); ++i) {
    EXPECT_EQ(tool_call_format(to_string(static_cast<Format>(i))), static_cast<Format>(i));
  }
  EXPECT_THROW(tool_call_format("xml"), Error);
}

// Pieces of every format in any order: nothing is lost outside of calls, and nothing grows.
TEST(CallParser, HostileTexts) {
  const std::vector<std::string> parts{"<tool_call>",
                                       "</tool_call>",
                                       "{\"name\": \"add\"",
                                       ", \"arguments\": ",
                                       "{",
                                       "}",
                                       "[",
                                       "]",
                                       "\"",
                                       "\\",
                                       ",",
                                       "<function=",
                                       "add>",
                                       "<parameter=a>",
                                       "</parameter>",
                                       "</function>",
                                       "<arg_key>",
                                       "</arg_key>",
                                       "<arg_value>",
                                       "</arg_value>",
                                       "<|tool_call>",
                                       "call:add{",
                                       "a:",
                                       "<|\"|>",
                                       "<tool_call|>",
                                       "[TOOL_CALLS]",
                                       "[ARGS]",
                                       "functools[",
                                       "<|channel|>",
                                       "<|message|>",
                                       "to=functions.add ",
                                       "<|end|>",
                                       "<think>",
                                       "</think>",
                                       "```json\n",
                                       "\n",
                                       " ",
                                       "<｜tool▁calls▁begin｜>",
                                       "<｜tool▁call▁begin｜>",
                                       "<｜tool▁sep｜>",
                                       "<|tool_call_begin|>",
                                       "functions.add:1",
                                       ">>>",
                                       "<|tool_call_argument_begin|>",
                                       "<|python_tag|>",
                                       "add",
                                       "\xC3",
                                       "\xFF",
                                       std::string(3, '\0'),
                                       "123",
                                       ":"};
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (std::size_t n = random() % 40; n > 0; --n) text += parts[random() % parts.size()];
    Case c{"random", static_cast<Format>(random() % 12), text, {}};
    const ParsedAnswer whole = gather(c, {text}), bytes = gather(c, cut(text, 1));
    ASSERT_EQ(whole.content, bytes.content) << text;
    ASSERT_EQ(whole.reasoning, bytes.reasoning) << text;
    ASSERT_EQ(whole.calls.size(), bytes.calls.size()) << text;
    for (std::size_t i = 0; i < whole.calls.size(); ++i) ASSERT_EQ(whole.calls[i].arguments, bytes.calls[i].arguments) << text;
    if (c.format == Format::none && whole.reasoning.empty() && text.find("<think>") == std::string::npos) {
      ASSERT_EQ(whole.content, text);
    }
  }
}

TEST(CallParser, WhatIsHeldBackIsBounded) {
  for (const std::string& head :
       {std::string("<tool_call>{\"a\": \""), std::string("[TOOL_CALLS]"), std::string("<tool_call>{\"arguments\": {\"a\": ["),
        std::string("<function="), std::string("<|channel|>"), std::string("<tool_call><function=add><parameter=a>"),
        std::string("<tool_call>")}) {
    AnswerParser parser({}, kTools);
    std::size_t told = 0;
    const auto count = [&](const std::vector<AnswerEvent>& events) {
      for (const AnswerEvent& e : events) told += e.text.size();
    };
    count(parser.add(head));
    const std::string more(1000, head.back() == '[' ? '[' : 'x');
    for (int i = 0; i < 300; ++i) count(parser.add(more));
    EXPECT_GT(told, 200'000U) << head;
  }
  std::string many;
  for (int i = 0; i < 400; ++i) many += R"(<tool_call>{"name": "add", "arguments": {}}</tool_call>)";
  EXPECT_EQ(parse_answer(many).calls.size(), 128U);
}

}  // namespace
}  // namespace sdx::text
