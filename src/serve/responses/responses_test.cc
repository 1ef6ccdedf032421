#include <gtest/gtest.h>

#include "serve/responses/requests.h"
#include "serve/responses/response_answer.h"
#include "serve/responses/store.h"

namespace sdx::serve::responses {
namespace {

using openai::Json;

ResponseRequest read(const std::string& body, const Store& store = Store()) {
  return read_response_request(openai::read_body(R"({"model": "m", )" + body + "}"), store, "");
}

// The field that is wrong, or "fine".
std::string verdict(const std::string& body) {
  try {
    read(body);
    return "fine";
  } catch (const openai::ApiError& error) {
    EXPECT_EQ(error.status, 400);
    return error.param.value_or("-");
  }
}

TEST(ResponseRequests, ItemsBecomeMessages) {
  const ResponseRequest r = read(R"("instructions": "i", "input": [
      {"role": "developer", "content": "d"}, {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
      {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "s"}], "content": [{"type": "reasoning_text", "text": "t"}]},
      {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "o", "annotations": []}], "status": "completed"},
      {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{\"x\": 1}"},
      {"type": "custom_tool_call", "call_id": "2", "name": "g", "input": "text"},
      {"type": "function_call_output", "call_id": "1", "output": "r1"},
      {"type": "custom_tool_call_output", "call_id": "2", "output": [{"type": "input_text", "text": "r2"}]}])");
  EXPECT_EQ(r.chat.messages, Json::parse(R"([{"role": "system", "content": "i\n\nd"}, {"role": "user", "content": "a\nb"},
      {"role": "assistant", "content": "o", "reasoning_content": "t", "tool_calls": [
          {"id": "1", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}},
          {"id": "2", "type": "function", "function": {"name": "g", "arguments": {"input": "text"}}}]},
      {"role": "tool", "content": "r1", "tool_call_id": "1"}, {"role": "tool", "content": "r2", "tool_call_id": "2"}])"));
  EXPECT_EQ(r.input.size(), 8U);
  for (const Json& item : r.input) EXPECT_TRUE(item["id"].is_string());
  EXPECT_EQ(read(R"("input": "hi")").chat.messages, Json::parse(R"([{"role": "user", "content": "hi"}])"));
}

TEST(ResponseRequests, SystemMessagesBehindAUsersStayThere) {
  const Json messages =
      read(R"("input": [{"role": "user", "content": "u"}, {"role": "developer", "content": "d"}])").chat.messages;
  EXPECT_EQ(messages, Json::parse(R"([{"role": "user", "content": "u"}, {"role": "developer", "content": "d"}])"));
}

constexpr const char* kTools =
    R"("input": "a", "tools": [{"type": "function", "name": "f", "strict": true}, {"type": "custom", "name": "g",
    "description": "d", "format": {"type": "grammar", "syntax": "regex", "definition": "a+"}}, {"type": "web_search"}])";

TEST(ResponseRequests, Tools) {
  const ResponseRequest r = read(kTools);
  EXPECT_EQ(Json::parse(r.chat.tools), Json::parse(R"([
      {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}},
      {"type": "function", "function": {"name": "g", "description": "d\nThe input follows this grammar (regex):\na+", "parameters": {
          "type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"], "additionalProperties": false}}}])"));
  EXPECT_EQ(r.custom_tools, std::set<std::string>{"g"});
  EXPECT_EQ(r.chat.strict_tools, std::vector<std::string>{"f"});
  EXPECT_EQ(r.chat.generation.ignored.text(), "tools[].web_search");
  EXPECT_EQ(r.echo["tools"].size(), 3U);
  const ResponseRequest some = read(std::string(kTools) + R"(, "tool_choice": {"type": "allowed_tools", "mode": "required",
      "tools": [{"type": "custom", "name": "g"}]})");
  EXPECT_EQ(Json::parse(some.chat.tools).size(), 1U);
  EXPECT_EQ(some.chat.tool_use, openai::ToolUse::required);
  EXPECT_EQ(read(std::string(kTools) + R"(, "tool_choice": "none")").chat.tools, "");
}

TEST(ResponseRequests, Refused) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("temperature": 1)", "input"},
      {R"("input": 3)", "input"},
      {R"("input": [3])", "input[0]"},
      {R"("input": [{"role": "robot", "content": "x"}])", "input[0].role"},
      {R"("input": [{"type": "computer_call"}])", "input[0].type"},
      {R"("input": [{"role": "user", "content": [{"type": "input_image"}]}])", "input[0].content[0].type"},
      {R"("input": "a", "max_output_tokens": 0)", "max_output_tokens"},
      {R"("input": "a", "text": {"format": {"type": "xml"}})", "text.format.type"},
      {R"("input": "a", "previous_response_id": "resp_x")", "previous_response_id"},
      {R"("input": "a", "prompt": {"id": "p"})", "prompt"},
      {R"("input": "a", "background": false)", "fine"},
      {R"("input": "a", "truncation": "some")", "truncation"},
      {R"("input": "a", "tools": [{"type": "function", "name": "a b"}])", "tools[0].name"},
      {R"("input": "a", "tools": [{"name": "f"}])", "tools[0].type"},
      {std::string(kTools) + R"(, "tool_choice": {"type": "function", "name": "h"})", "tool_choice"},
      {std::string(kTools) + R"(, "tool_choice": {"type": "mcp"})", "tool_choice"},
  };
  for (const auto& [body, param] : cases) EXPECT_EQ(verdict(body), param) << body;
}

Json response_of(const std::string& id, const std::string& text) {
  return {{"id", id}, {"output", Json::array({{{"id", "o" + id}, {"type", "message"}, {"content", text}}})}};
}

TEST(ResponseStore, KeepsConversations) {
  Store store;
  store.add("1", "k", nullptr, R"([{"n": 1}])", response_of("1", "a"));
  store.add("2", "k", store.find("1", "k"), R"([{"n": 2}])", response_of("2", "b"));
  EXPECT_EQ(store.find("2", "other"), nullptr);
  const Json items = store.find("2", "k")->conversation();
  ASSERT_EQ(items.size(), 4U);
  EXPECT_EQ(items[2]["n"], 2);
  EXPECT_EQ(items[3]["content"], "b");
  EXPECT_EQ(Json::parse(*store.find_item("o1", "k"))["content"], "a");
  EXPECT_FALSE(store.find_item("o1", "other"));
  EXPECT_FALSE(store.find_item("2", "k"));
  EXPECT_FALSE(store.remove("1", "other"));
  EXPECT_TRUE(store.remove("1", "k"));
  EXPECT_EQ(store.find("1", "k"), nullptr);
  EXPECT_FALSE(store.find_item("o1", "k"));
  EXPECT_EQ(store.find("2", "k")->conversation().size(), 4U);  // the turn before is still part of this one
  EXPECT_TRUE(store.remove("2", "k"));
  EXPECT_EQ(store.bytes(), 0U);
}

TEST(ResponseStore, IsBounded) {
  Store few({.turns = 3, .bytes = 1 << 20});
  for (int i = 0; i < 10; ++i) few.add(std::to_string(i), "", nullptr, "[]", response_of("x", "y"));
  EXPECT_EQ(few.find("6", ""), nullptr);
  EXPECT_NE(few.find("7", ""), nullptr);
  Store small({.turns = 1000, .bytes = 20000});
  for (int i = 0; i < 100; ++i) {
    small.add(std::to_string(i), "", nullptr, "[]", response_of("x", std::string(3000, 'y')));
    EXPECT_LE(small.bytes(), 20000U);
  }
  EXPECT_NE(small.find("99", ""), nullptr);
  small.add("large", "", nullptr, "[]", response_of("x", std::string(30000, 'y')));
  EXPECT_EQ(small.find("large", ""), nullptr);
  EXPECT_NE(small.find("99", ""), nullptr);
}

// A conversation is kept alive by its last turn; its end must not take a call for each turn.
TEST(ResponseStore, LongConversationsEnd) {
  Store store({.turns = 2, .bytes = std::uint64_t{1} << 40});
  for (int i = 0; i < 200000; ++i) {
    store.add(std::to_string(i), "", i > 0 ? store.find(std::to_string(i - 1), "") : nullptr, "[]", Json::object());
  }
  EXPECT_TRUE(store.remove("199999", ""));
  EXPECT_TRUE(store.remove("199998", ""));
  EXPECT_EQ(store.bytes(), 0U);
}

GeneratedToken token(std::string text) {
  GeneratedToken out;
  out.text = std::move(text);
  return out;
}

TEST(ResponseAnswer, EndsWithAnErrorOfItsOwn) {
  openai::ChatRequest request;
  request.generation.stream = true;
  std::string kept;
  ResponseAnswer answer(openai::PreparedChat{}, request,
                        {"resp_1", 7, {}, Json::object(), [&](const Json& response) { kept = response.dump(); }});
  std::string out = answer.begin();
  answer.add(token("x"), out);
  const std::string event = answer.failure(openai::ApiError(503, "busy"));
  EXPECT_EQ(event.find("event: response.failed\n"), 0U);
  EXPECT_NE(event.find(R"("error":{"code":"server_error","message":"busy"})"), std::string::npos);
  EXPECT_EQ(kept, "");
}

TEST(ResponseAnswer, CallsThatAreCutOffAreIncomplete) {
  openai::ChatRequest request;
  std::string kept, nowhere;
  ResponseAnswer answer(openai::PreparedChat{}, request,
                        {"resp_1", 7, {}, Json::object(), [&](const Json& response) { kept = response.dump(); }});
  answer.add(token("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1"), nowhere);
  Generation g;
  g.choices.emplace_back();
  g.choices[0].finish_reason = "length";
  const std::string text = answer.whole(g);
  EXPECT_EQ(text, kept);
  const Json whole = Json::parse(text);
  EXPECT_EQ(whole["status"], "incomplete");
  EXPECT_EQ(whole["output"][0]["type"], "function_call");
  EXPECT_EQ(whole["output"][0]["status"], "incomplete");
}

}  // namespace
}  // namespace sdx::serve::responses
