#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "serve/openai/chat_answer.h"
#include "serve/openai/completion_answer.h"

namespace sdx::serve::openai {
namespace {

using nlohmann::json;

// Tokens 0 to 4: "a", " b", two halves of "é", the end.
Tokenizer letters() {
  return Tokenizer::from_json(R"({"version": "1.0", "added_tokens": [
      {"id": 4, "content": "<end>", "special": true, "normalized": false, "single_word": false, "lstrip": false, "rstrip": false}],
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
      "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
      "model": {"type": "BPE", "vocab": {"a": 0, "Ġb": 1, "Ã": 2, "©": 3}, "merges": []}})");
}

GeneratedToken token(TokenId id, std::string text, float logprob = -0.5F) {
  GeneratedToken out;
  out.id = id;
  out.text = std::move(text);
  out.logprob = TokenLogprob{id, logprob};
  out.top = {{0, -0.25F}};
  return out;
}

Generation one_answer(std::string text, std::string reason) {
  Generation g;
  Choice choice;
  choice.text = std::move(text);
  choice.finish_reason = std::move(reason);
  g.choices.push_back(std::move(choice));
  g.prompt_tokens = 5;
  g.completion_tokens = 3;
  g.cached_tokens = 2;
  return g;
}

// The events that a client reads, without the last, which must be [DONE].
std::vector<json> events_of(const std::string& stream) {
  std::vector<json> out;
  std::size_t at = 0;
  bool done = false;
  while (at < stream.size()) {
    const std::size_t end = stream.find("\n\n", at);
    EXPECT_NE(end, std::string::npos);
    EXPECT_EQ(stream.compare(at, 6, "data: "), 0);
    EXPECT_FALSE(done);
    const std::string data = stream.substr(at + 6, end - at - 6);
    EXPECT_EQ(data.find('\n'), std::string::npos);
    done = data == "[DONE]";
    if (!done) out.push_back(json::parse(data));
    at = end + 2;
  }
  EXPECT_TRUE(done);
  return out;
}

AnswerHead head() { return {"chatcmpl-1", 7, "m\"x", "fp_1"}; }

TEST(TokenTexts, ShowsBytesThatAreNoCharacters) {
  const TokenTexts texts(letters());
  EXPECT_EQ(texts.shown(1), " b");
  EXPECT_EQ(texts.shown(2), "\\xc3");
  EXPECT_EQ(texts.shown(4), "<end>");
  EXPECT_EQ(texts.bytes(4), "");
  EXPECT_EQ(texts.shown(99), "");
  std::string out;
  texts.append_logprobs(out, {3, -INFINITY}, {{0, -1.5F}});
  EXPECT_EQ(out,
            R"({"token":"\\xa9","logprob":-9999.0,"bytes":[169],"top_logprobs":[{"token":"a","logprob":-1.5,"bytes":[97]}]})");
}

TEST(CompletionAnswer, Whole) {
  CompletionAnswerOptions options;
  options.head = head();
  options.texts = std::make_shared<const TokenTexts>(letters());
  options.ends = {4};
  options.echo = {{"é", {{2, 0}, {3, -2}}, {{}, {{3, -2}}}}};
  CompletionAnswer answer(std::move(options));
  std::string none;
  answer.add(0, token(1, " b"), none);
  answer.add(0, token(4, ""), none);
  answer.finish(0, one_answer(" b", "stop"), none);
  EXPECT_TRUE(none.empty() && answer.complete());
  const json whole = json::parse(answer.whole());
  EXPECT_EQ(whole["object"], "text_completion");
  EXPECT_EQ(whole["model"], "m\"x");
  EXPECT_EQ(whole["usage"]["total_tokens"], 8);
  EXPECT_EQ(whole["usage"]["prompt_tokens_details"]["cached_tokens"], 2);
  const json& choice = whole["choices"][0];
  EXPECT_EQ(choice["text"], "é b");
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["logprobs"]["tokens"], json::parse(R"(["\\xc3", "\\xa9", " b"])"));
  EXPECT_EQ(choice["logprobs"]["token_logprobs"], json::parse("[null, -2.0, -0.5]"));
  EXPECT_EQ(choice["logprobs"]["top_logprobs"], json::parse(R"([null, {"\\xa9": -2.0}, {"a": -0.25, " b": -0.5}])"));
  EXPECT_EQ(choice["logprobs"]["text_offset"], json::parse("[0, 1, 1]"));
}

TEST(CompletionAnswer, StreamOfTwoPrompts) {
  CompletionAnswerOptions options;
  options.head = head();
  options.prompts = 2;
  options.stream = options.include_usage = true;
  CompletionAnswer answer(std::move(options));
  std::string out = answer.begin();
  answer.add(1, token(0, "x"), out);
  answer.add(0, token(2, ""), out);
  answer.finish(1, one_answer("x", "length"), out);
  EXPECT_FALSE(answer.complete());
  answer.finish(0, one_answer("", "stop"), out);
  EXPECT_TRUE(answer.complete());
  const std::vector<json> events = events_of(out + answer.end());
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0]["choices"][0], json::parse(R"({"text": "x", "index": 1, "logprobs": null, "finish_reason": null})"));
  EXPECT_EQ(events[0]["usage"], nullptr);
  EXPECT_EQ(events[1]["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(events[2]["choices"][0]["index"], 0);
  EXPECT_EQ(events[3]["choices"], json::array());
  EXPECT_EQ(events[3]["usage"]["completion_tokens"], 6);
}

TEST(CompletionAnswer, TheBestOfSeveral) {
  CompletionAnswerOptions options;
  options.head = head();
  options.best_of = 3;
  CompletionAnswer answer(std::move(options));
  Generation g = one_answer("", "stop");
  g.choices.resize(3);
  std::string none;
  const float shares[] = {-3, -1, -2};
  for (int i = 0; i < 3; ++i) {
    GeneratedToken t = token(0, "", shares[i]);
    t.choice = i;
    answer.add(0, t, none);
    g.choices[static_cast<std::size_t>(i)].text = std::to_string(i);
    g.choices[static_cast<std::size_t>(i)].finish_reason = "stop";
  }
  answer.finish(0, std::move(g), none);
  const json whole = json::parse(answer.whole());
  ASSERT_EQ(whole["choices"].size(), 1U);
  EXPECT_EQ(whole["choices"][0]["text"], "1");
}

ChatAnswerOptions chat_options(bool stream) {
  ChatAnswerOptions options;
  options.head = head();
  options.format.calls = ToolCallFormat::hermes;
  options.tools = R"([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}])";
  options.stream = stream;
  return options;
}

constexpr const char* kPieces[] = {"<think>hm",
                                   "m</think>",
                                   "Well. ",
                                   "<tool_call>\n{\"name\": \"f\", \"argu",
                                   "ments\": {\"x\": ",
                                   "1}}\n</tool_call>",
                                   "\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>"};

TEST(ChatAnswer, Whole) {
  ChatAnswer answer(chat_options(false));
  std::string none;
  for (const char* piece : kPieces) EXPECT_TRUE(answer.add(token(0, piece), none));
  EXPECT_TRUE(none.empty());
  const json whole = json::parse(answer.whole(one_answer("", "stop")));
  EXPECT_EQ(whole["object"], "chat.completion");
  EXPECT_EQ(whole["system_fingerprint"], "fp_1");
  const json& choice = whole["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["logprobs"], nullptr);
  EXPECT_EQ(choice["message"]["reasoning_content"], "hmm");
  EXPECT_EQ(choice["message"]["tool_calls"].size(), 2U);
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["name"], "f");
  EXPECT_EQ(json::parse(choice["message"]["tool_calls"][0]["function"]["arguments"].get<std::string>()),
            json::parse(R"({"x": 1})"));
  EXPECT_EQ(whole["usage"]["completion_tokens_details"]["reasoning_tokens"], 2);
}

TEST(ChatAnswer, Stream) {
  ChatAnswerOptions options = chat_options(true);
  options.include_usage = true;
  options.texts = std::make_shared<const TokenTexts>(letters());
  ChatAnswer answer(std::move(options));
  std::string out = answer.begin();
  for (const char* piece : kPieces) EXPECT_TRUE(answer.add(token(0, piece), out));
  answer.finish(one_answer("", "stop"), out);
  const std::vector<json> events = events_of(out);
  EXPECT_EQ(events[0]["choices"][0]["delta"], json::parse(R"({"role": "assistant", "content": "", "refusal": null})"));
  std::string content, reasoning, arguments, names;
  std::size_t logprobs = 0;
  for (const json& e : events) {
    EXPECT_EQ(e["object"], "chat.completion.chunk");
    if (e["choices"].empty()) continue;
    const json& delta = e["choices"][0]["delta"];
    if (!e["choices"][0]["logprobs"].is_null()) logprobs += e["choices"][0]["logprobs"]["content"].size();
    content += delta.value("content", "");
    reasoning += delta.value("reasoning_content", "");
    for (const json& call : delta.value("tool_calls", json::array())) {
      names += call["function"].value("name", "");
      if (call["index"] == 0) arguments += call["function"].value("arguments", "");
    }
  }
  EXPECT_EQ(reasoning, "hmm");
  EXPECT_EQ(names, "ff");
  EXPECT_EQ(json::parse(arguments), json::parse(R"({"x": 1})"));
  EXPECT_EQ(logprobs, std::size(kPieces));
  EXPECT_EQ(events[events.size() - 2]["choices"][0]["finish_reason"], "tool_calls");
  EXPECT_EQ(events.back()["usage"]["total_tokens"], 8);
}

TEST(ChatAnswer, OneCallWhereOnlyOneMayBe) {
  ChatAnswerOptions options = chat_options(false);
  options.parallel_calls = false;
  ChatAnswer answer(std::move(options));
  std::string none;
  bool more = true;
  for (const char* piece : kPieces) more = more && answer.add(token(0, piece), none);
  EXPECT_FALSE(more);
  const Generation cancelled = one_answer("", "cancelled");
  EXPECT_FALSE(answer.cut_short(cancelled));
  const json whole = json::parse(answer.whole(cancelled));
  EXPECT_EQ(whole["choices"][0]["message"]["tool_calls"].size(), 1U);
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "tool_calls");
}

TEST(ChatAnswer, AnEngineThatStopsIsNoAnswer) {
  ChatAnswer answer(chat_options(false));
  EXPECT_TRUE(answer.cut_short(one_answer("", "cancelled")));
}

}  // namespace
}  // namespace sdx::serve::openai
