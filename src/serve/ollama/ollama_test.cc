#include <gtest/gtest.h>

#include "serve/ollama/error.h"
#include "serve/ollama/requests.h"
#include "serve/ollama/text_answer.h"

namespace sdx::serve::ollama {
namespace {

using openai::Json;

// The field that is wrong, or "fine".
template <class Read>
std::string verdict(Read read, const std::string& body) {
  try {
    read(openai::read_body(body));
    return "fine";
  } catch (const openai::ApiError& error) {
    EXPECT_EQ(error.status, 400);
    EXPECT_FALSE(error.message.empty());
    return error.param.value_or("-");
  }
}

TEST(OllamaRequests, OptionsBecomeSettings) {
  const openai::ChatRequest chat = read_chat(Json::parse(R"({"model": "m", "messages": [{"role": "user", "content": "hi"}],
      "options": {"temperature": 0.5, "top_k": 7, "repeat_penalty": 1.1, "num_predict": 9, "stop": ["a", "b"], "seed": 3, "num_ctx": 5},
      "think": "low", "format": {"type": "object"}, "keep_alive": "5m", "odd": 1})"))
                                       .chat;
  const openai::GenerationFields& g = chat.generation;
  EXPECT_EQ(g.sampling.temperature, 0.5);
  EXPECT_EQ(g.sampling.top_k, 7);
  EXPECT_EQ(g.sampling.repetition_penalty, 1.1);
  EXPECT_EQ(g.sampling.seed, 3);
  EXPECT_EQ(g.max_tokens, 9);
  EXPECT_EQ(g.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(g.stream);  // unless the request says otherwise
  EXPECT_EQ(g.format->text, R"({"type":"object"})");
  EXPECT_EQ(chat.variables, Json::parse(R"({"enable_thinking": true, "reasoning_effort": "low"})"));
  EXPECT_EQ(g.ignored.text(), "odd");
  for (const char* all : {"-1", "-2", "0"}) {
    const openai::GenerationFields one =
        read_chat(Json::parse(std::string(R"({"model": "m", "messages": [], "options": {"num_predict": )") + all + "}}"))
            .chat.generation;
    EXPECT_FALSE(one.max_tokens) << all;
    EXPECT_TRUE(one.unlimited) << all;
  }
}

TEST(OllamaRequests, ResultsFindTheirCalls) {
  const openai::ChatRequest chat = read_chat(Json::parse(R"({"model": "m", "messages": [{"role": "user", "content": "q"},
      {"role": "assistant", "thinking": "t", "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}},
                                                            {"id": "mine", "function": {"name": "g", "arguments": "{\"y\": 2}"}}]},
      {"role": "tool", "content": "of g", "tool_name": "g"}, {"role": "tool", "content": "of f"}, {"role": "tool", "content": "of none"}]})"))
                                       .chat;
  EXPECT_EQ(chat.messages[1], Json::parse(R"({"role": "assistant", "content": "", "reasoning_content": "t", "tool_calls": [
      {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}},
      {"id": "mine", "type": "function", "function": {"name": "g", "arguments": {"y": 2}}}]})"));
  EXPECT_EQ(chat.messages[2], Json::parse(R"({"role": "tool", "content": "of g", "name": "g", "tool_call_id": "mine"})"));
  EXPECT_EQ(chat.messages[3], Json::parse(R"({"role": "tool", "content": "of f", "tool_call_id": "call_0", "name": "f"})"));
  EXPECT_EQ(chat.messages[4], Json::parse(R"({"role": "tool", "content": "of none"})"));
}

TEST(OllamaRequests, Prompts) {
  const TextRequest r = read_generate(Json::parse(R"({"model": "m", "prompt": "p", "system": "s", "stream": false})"));
  EXPECT_EQ(r.chat.messages, Json::parse(R"([{"role": "system", "content": "s"}, {"role": "user", "content": "p"}])"));
  EXPECT_FALSE(r.chat.raw || r.empty || r.chat.generation.stream);
  EXPECT_EQ(read_generate(Json::parse(R"({"model": "m", "prompt": "p", "raw": true})")).chat.raw, openai::PromptText("p"));
  EXPECT_TRUE(read_generate(Json::parse(R"({"model": "m"})")).empty);
  EXPECT_TRUE(read_chat(Json::parse(R"({"model": "m"})")).empty);
  const TextRequest begun = read_chat(
      Json::parse(R"({"model": "m", "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "So"}]})"));
  EXPECT_EQ(begun.chat.continued, "So");
  EXPECT_EQ(begun.chat.messages.size(), 1U);
}

TEST(OllamaRequests, Refused) {
  const auto chat = [](const std::string& more) {
    return verdict(read_chat, R"({"model": "m", "messages": [{"role": "user", "content": "x"}], )" + more + "}");
  };
  EXPECT_EQ(chat(R"("options": 3)"), "options");
  EXPECT_EQ(chat(R"("options": {"temperature": -1})"), "options.temperature");
  EXPECT_EQ(chat(R"("options": {"stop": [""]})"), "options.stop");
  EXPECT_EQ(chat(R"("options": {"stop": 3})"), "options.stop");
  EXPECT_EQ(chat(R"("format": "yaml")"), "format");
  EXPECT_EQ(chat(R"("format": "")"), "fine");
  EXPECT_EQ(chat(R"("think": "very")"), "think");
  EXPECT_EQ(chat(R"("tools": [{"type": "function", "function": {"name": "f"}}], "format": "json")"), "fine");
  EXPECT_EQ(verdict(read_chat, R"({"messages": []})"), "model");
  EXPECT_EQ(verdict(read_chat, R"({"model": "m", "messages": [{"role": "robot"}]})"), "messages[0].role");
  EXPECT_EQ(verdict(read_chat, R"({"model": "m", "messages": [{"role": "user", "content": "x", "images": ["aa"]}]})"),
            "messages[0].images");
  EXPECT_EQ(
      verdict(
          read_chat,
          R"({"model": "m", "messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": 3}}]}]})"),
      "messages[0].tool_calls[0].function.arguments");
  EXPECT_EQ(verdict(read_generate, R"({"model": "m", "prompt": "p", "suffix": "s"})"), "fine");
  EXPECT_EQ(verdict(read_generate, R"({"model": "m", "prompt": "p", "context": [1]})"), "context");
  EXPECT_EQ(verdict(read_embed, R"({"model": "m", "input": [1, 2]})"), "input");
  EXPECT_EQ(verdict(read_embed, R"({"model": "m", "input": 3})"), "input");
  EXPECT_EQ(verdict(read_embed, R"({"model": "m", "input": []})"), "fine");
  EXPECT_EQ(verdict(read_embeddings, R"({"name": "m", "prompt": "p"})"), "fine");
}

GeneratedToken token(std::string text) {
  GeneratedToken out;
  out.text = std::move(text);
  return out;
}

TEST(TextAnswer, CallsAreWholeLines) {
  openai::ChatRequest request;
  request.generation.stream = true;
  request.generation.model = "m\"x";
  TextAnswer answer(openai::PreparedChat{}, request, Kind::chat, TextAnswer::Clock::now());
  std::string out;
  answer.add(token("<think>t</think>a<tool_call>{\"name\": \"f\", \"argu"), out);
  answer.add(token("ments\":\n{\"a\":\n1}}</tool_call>"), out);
  Generation g;
  g.choices.emplace_back();
  g.choices[0].finish_reason = "length";
  answer.finish(g, out);
  std::vector<Json> lines;
  for (std::size_t at = 0; at < out.size();) {
    const std::size_t end = out.find('\n', at);
    ASSERT_NE(end, std::string::npos);
    lines.push_back(Json::parse(out.substr(at, end - at)));
    at = end + 1;
  }
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0]["message"], Json::parse(R"({"role": "assistant", "content": "", "thinking": "t"})"));
  EXPECT_EQ(lines[1]["message"], Json::parse(R"({"role": "assistant", "content": "a"})"));
  EXPECT_EQ(lines[2]["message"]["tool_calls"][0]["function"], Json::parse(R"({"index": 0, "name": "f", "arguments": {"a": 1}})"));
  EXPECT_EQ(lines[3]["done"], true);
  EXPECT_EQ(lines[3]["done_reason"], "length");
  EXPECT_EQ(lines[3]["model"], "m\"x");
}

TEST(OllamaErrors, AreTexts) {
  EXPECT_EQ(error_json("a\"b"), R"({"error":"a\"b"})");
  EXPECT_EQ(reply_form().error_event(openai::ApiError(400, "x")), "{\"error\":\"x\"}\n");
}

}  // namespace
}  // namespace sdx::serve::ollama
