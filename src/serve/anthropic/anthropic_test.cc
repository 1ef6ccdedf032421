#include <gtest/gtest.h>

#include "serve/anthropic/error.h"
#include "serve/anthropic/message_answer.h"
#include "serve/anthropic/requests.h"

namespace sdx::serve::anthropic {
namespace {

using openai::Json;

MessageRequest read(const std::string& more, const std::string& messages = R"([{"role": "user", "content": "hi"}])") {
  return read_message_request(
      openai::read_body(R"({"model": "m", "max_tokens": 9, "messages": )" + messages + (more.empty() ? "" : ", " + more) + "}"));
}

// The field that is wrong, or "fine".
std::string verdict(const std::string& more, const std::string& messages = R"([{"role": "user", "content": "hi"}])") {
  try {
    read(more, messages);
    return "fine";
  } catch (const openai::ApiError& error) {
    EXPECT_EQ(error.status, 400);
    return error.param.value_or("-");
  }
}

constexpr const char* kTool = R"("tools": [{"name": "f", "input_schema": {"type": "object"}}])";
constexpr const char* kCalled = R"({"role": "user", "content": "q"}, {"role": "assistant", "content": [
    {"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "text", "text": "a"},
    {"type": "tool_use", "id": "1", "name": "f", "input": {"x": 1}}]})";

TEST(AnthropicRequests, BecomeChats) {
  const MessageRequest r = read(R"("system": [{"type": "text", "text": "s1"}, {"type": "text", "text": "s2"}], "top_k": 3,
                                   "stop_sequences": ["x"], "thinking": {"type": "enabled", "budget_tokens": 1024})",
                                std::string("[") + kCalled + R"(, {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "r1"}, {"type": "text", "text": "r2"}]},
          {"type": "text", "text": "more"}]}])");
  EXPECT_EQ(r.chat.messages, Json::parse(R"([
      {"role": "system", "content": "s1\ns2"}, {"role": "user", "content": "q"},
      {"role": "assistant", "content": "a", "reasoning_content": "t",
       "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}]},
      {"role": "tool", "content": "r1\nr2", "tool_call_id": "1"}, {"role": "user", "content": "more"}])"));
  EXPECT_EQ(r.chat.generation.max_tokens, 9);
  EXPECT_EQ(r.chat.generation.stop, std::vector<std::string>{"x"});
  EXPECT_EQ(r.chat.generation.sampling.top_k, 3);
  EXPECT_TRUE(r.thinking);
  EXPECT_EQ(r.chat.variables["enable_thinking"], true);
  EXPECT_EQ(read("").chat.variables["enable_thinking"], false);
}

TEST(AnthropicRequests, TheLastMessageMayBeTheAnswersBeginning) {
  const MessageRequest r =
      read("", R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": [{"type": "text", "text": "So"}]}])");
  EXPECT_EQ(r.chat.messages.size(), 1U);
  EXPECT_EQ(r.chat.continued, "So");
}

TEST(AnthropicRequests, Tools) {
  const auto tools = [](const std::string& choice) { return read(std::string(kTool) + choice).chat; };
  EXPECT_EQ(tools("").tools, R"([{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}])");
  EXPECT_EQ(tools("").tool_use, openai::ToolUse::automatic);
  EXPECT_EQ(tools(R"(, "tool_choice": {"type": "any"})").tool_use, openai::ToolUse::required);
  EXPECT_EQ(tools(R"(, "tool_choice": {"type": "tool", "name": "f"})").tool_name, "f");
  EXPECT_FALSE(tools(R"(, "tool_choice": {"type": "auto", "disable_parallel_tool_use": true})").parallel_calls);
  EXPECT_EQ(tools(R"(, "tool_choice": {"type": "none"})").tools, "");
}

TEST(AnthropicRequests, Refused) {
  const std::vector<std::pair<std::string, std::string>> fields = {
      {R"("system": 3)", "system"},
      {R"("system": [{"type": "image"}])", "system.0"},
      {R"("temperature": 3)", "temperature"},
      {R"("top_k": -1)", "top_k"},
      {R"("stop_sequences": [""])", "stop_sequences.0"},
      {R"("thinking": {"type": "maybe"})", "thinking.type"},
      {R"("tools": [{"type": "bash_20250124", "name": "bash"}])", "tools.0"},
      {R"("tools": [{"name": "a b", "input_schema": {}}])", "tools.0.name"},
      {R"("tools": [{"name": "a"}])", "tools.0.input_schema"},
      {R"("tool_choice": {"type": "any"})", "tool_choice"},
      {std::string(kTool) + R"(, "tool_choice": {"type": "tool", "name": "g"})", "tool_choice.name"},
      {std::string(kTool) + R"(, "output_config": {"format": {"type": "json_schema", "schema": {}}})", "fine"},
      {R"("mcp_servers": [{}])", "mcp_servers"},
      {R"("mcp_servers": [])", "fine"},
      {R"("unheard_of": 1)", "fine"},
  };
  for (const auto& [more, param] : fields) EXPECT_EQ(verdict(more), param) << more;
  const std::vector<std::pair<std::string, std::string>> messages = {
      {"[]", "messages"},
      {"[3]", "messages.0"},
      {R"([{"role": "robot", "content": "x"}])", "messages.0.role"},
      {R"([{"role": "user"}])", "messages.0.content"},
      {R"([{"role": "user", "content": [{"type": "image", "source": {}}]}])", "messages.0.content.0"},
      {R"([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]}])", "messages.0.content.0"},
      {std::string("[") + kCalled + "]", "messages.2"},
      {std::string("[") + kCalled + R"(, {"role": "user", "content": "no result"}])", "messages.2"},
  };
  for (const auto& [list, param] : messages) EXPECT_EQ(verdict("", list), param) << list;
  EXPECT_THROW(read_message_request(Json::parse(R"({"model": "m", "messages": [{"role": "user", "content": "x"}]})")),
               openai::ApiError);
  EXPECT_NO_THROW(read_message_request(Json::parse(R"({"model": "m", "messages": [{"role": "user", "content": "x"}]})"), true));
}

TEST(AnthropicErrors, HaveTypesByStatus) {
  EXPECT_EQ(error_json(400, "a\"b"), R"({"type":"error","error":{"type":"invalid_request_error","message":"a\"b"}})");
  EXPECT_EQ(error_shape(503, "x").status, 529);
  EXPECT_NE(error_shape(503, "x").body.find("overloaded_error"), std::string::npos);
  EXPECT_NE(error_json(401, "x").find("authentication_error"), std::string::npos);
  EXPECT_NE(error_json(418, "x").find("invalid_request_error"), std::string::npos);
  EXPECT_NE(error_json(500, "x").find("api_error"), std::string::npos);
}

GeneratedToken token(std::string text) {
  GeneratedToken out;
  out.text = std::move(text);
  return out;
}

Generation ended(std::string reason, std::string stop = {}) {
  Generation g;
  g.choices.emplace_back();
  g.choices[0].finish_reason = std::move(reason);
  g.choices[0].stop = std::move(stop);
  g.prompt_tokens = 7;
  g.completion_tokens = 3;
  g.cached_tokens = 2;
  return g;
}

MessageAnswer answer(bool stream, bool thinking) {
  openai::ChatRequest request;
  request.generation.stream = stream;
  openai::PreparedChat prepared;
  prepared.prompt_tokens = 7;
  return {prepared, request, {"msg_1", "m", thinking, false, false}};
}

TEST(MessageAnswer, EndsAnEmptyStreamWithABlock) {
  MessageAnswer a = answer(true, false);
  std::string out;
  EXPECT_TRUE(a.add(token("<think>hidden</think>"), out));
  EXPECT_EQ(out, "");
  a.finish(ended("stop"), out);
  EXPECT_EQ(out,
            "event: content_block_start\ndata: "
            "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
            "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
            "event: message_delta\ndata: "
            "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":"
            "{\"input_tokens\":5,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":2,\"output_tokens\":3}}\n\n"
            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

TEST(MessageAnswer, Whole) {
  MessageAnswer a = answer(false, true);
  std::string nowhere;
  a.add(token("<think>t</think>x<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}</tool_call>"), nowhere);
  EXPECT_EQ(nowhere, "");
  const Json whole = Json::parse(a.whole(ended("stop")));
  EXPECT_EQ(whole["stop_reason"], "tool_use");
  EXPECT_EQ(whole["content"].size(), 3U);
  EXPECT_EQ(whole["content"][0]["thinking"], "t");
  EXPECT_EQ(whole["content"][2]["input"], Json::parse(R"({"a": 1})"));
  MessageAnswer stopped = answer(false, true);
  stopped.add(token("x"), nowhere);
  const Json end = Json::parse(stopped.whole(ended("stop", "STOP")));
  EXPECT_EQ(end["stop_reason"], "stop_sequence");
  EXPECT_EQ(end["stop_sequence"], "STOP");
}

}  // namespace
}  // namespace sdx::serve::anthropic
