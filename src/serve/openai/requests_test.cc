#include "serve/openai/requests.h"

#include <gtest/gtest.h>

namespace sdx::serve::openai {
namespace {

enum class Path { chat, completion, embedding, rerank };

void read(Path path, std::string_view body) {
  const Json json = read_body(body);
  if (path == Path::chat) read_chat_request(json);
  if (path == Path::completion) read_completion_request(json);
  if (path == Path::embedding) read_embedding_request(json);
  if (path == Path::rerank) read_rerank_request(json);
}

// "param code", or "fine".
std::string verdict(Path path, const std::string& body) {
  try {
    read(path, body);
    return "fine";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, 400) << body;
    EXPECT_EQ(error.type, "invalid_request_error") << body;
    EXPECT_FALSE(error.message.empty()) << body;
    return error.param.value_or("-") + " " + error.code.value_or("-");
  }
}

std::string chat(const std::string& more) {
  return R"({"model": "m", "messages": [{"role": "user", "content": "hi"}])" + (more.empty() ? "" : ", " + more) + "}";
}
std::string chat_with(const std::string& messages) { return R"({"model": "m", "messages": )" + messages + "}"; }
std::string completion(const std::string& more) { return R"({"model": "m", "prompt": "a", )" + more + "}"; }

constexpr const char* kTool =
    R"("tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}])";

struct ChatCase {
  std::string body, verdict;
};

void expect_verdicts(std::initializer_list<ChatCase> cases) {
  for (const ChatCase& c : cases) EXPECT_EQ(verdict(Path::chat, c.body), c.verdict) << c.body.substr(0, 200);
}

TEST(OpenAiRequests, MalformedBodies) {
  expect_verdicts({
      {"", "- -"},
      {"{", "- -"},
      {"null", "- -"},
      {"[]", "- -"},
      {"\xff", "- -"},
      {R"({"model": "\ud800"})", "- -"},
      {"{} {}", "- -"},
      {std::string(100000, '['), "- -"},
      {"{\"a\":" + std::string(65, '[') + std::string(65, ']') + "}", "- -"},
      {"{}", "model missing_required_parameter"},
      {R"({"model": null})", "model missing_required_parameter"},
      {R"({"model": 3})", "model invalid_type"},
      {R"({"model": "m"})", "messages missing_required_parameter"},
      {chat_with("[]"), "messages empty_array"},
      {chat_with("\"hi\""), "messages invalid_type"},
      {chat_with("[3]"), "messages[0] invalid_type"},
      {chat_with("[{}]"), "messages[0].role missing_required_parameter"},
      {chat_with(R"([{"role": "king", "content": "x"}])"), "messages[0].role invalid_value"},
      {chat_with(R"([{"role": "user"}])"), "messages[0].content missing_required_parameter"},
      {chat_with(R"([{"role": "user", "content": 3}])"), "messages[0].content invalid_type"},
      {chat_with(R"([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}])"),
       "messages[0].content[0].type unsupported_content"},
      {chat_with(R"([{"role": "user", "content": [{"type": "smell"}]}])"), "messages[0].content[0].type invalid_value"},
      {chat_with(R"([{"role": "user", "content": [{"type": "text"}]}])"),
       "messages[0].content[0].text missing_required_parameter"},
      {chat_with(R"([{"role": "assistant"}])"), "messages[0].content invalid_type"},
      {chat_with(R"([{"role": "tool", "content": "x", "tool_call_id": "1"}])"), "messages[0].role invalid_value"},
      {chat_with(R"([{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f"}}]}])"),
       "messages[0].tool_calls[0].function.arguments missing_required_parameter"},
      {chat_with(R"([{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": ""}}]}])"),
       "messages[0].role invalid_value"},
  });
}

TEST(OpenAiRequests, MalformedFields) {
  expect_verdicts({
      {chat(R"("temperature": "hot")"), "temperature invalid_type"},
      {chat(R"("temperature": 2.1)"), "temperature decimal_above_max_value"},
      {chat(R"("temperature": -1)"), "temperature decimal_below_min_value"},
      {chat(R"("temperature": 1e400)"), "- -"},
      {chat(R"("top_p": 1.5)"), "top_p decimal_above_max_value"},
      {chat(R"("n": 0)"), "n integer_below_min_value"},
      {chat(R"("n": 129)"), "n integer_above_max_value"},
      {chat(R"("n": 1.5)"), "n invalid_type"},
      {chat(R"("seed": 1e30)"), "seed invalid_type"},
      {chat(R"("max_tokens": 0)"), "max_tokens integer_below_min_value"},
      {chat(R"("max_tokens": -2)"), "max_tokens integer_below_min_value"},
      {chat(R"("max_tokens": 1, "max_completion_tokens": 2)"), "max_tokens invalid_parameter_combination"},
      {chat(R"("structured_outputs": {"regex": "a", "json_object": true})"), "structured_outputs.json_object invalid_value"},
      {chat(R"("structured_outputs": {"choice": [1]})"), "structured_outputs.choice invalid_type"},
      {chat(R"("stop": [1])"), "stop[0] invalid_type"},
      {chat(R"("stop": "")"), "stop invalid_value"},
      {chat(R"("stop": {})"), "stop invalid_type"},
      {chat(R"("stop": ["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"])"), "stop array_above_max_length"},
      {chat(R"("logit_bias": {"x": 1})"), "logit_bias invalid_value"},
      {chat(R"("logit_bias": {"99999999999": 1})"), "logit_bias invalid_value"},
      {chat(R"("logit_bias": {"1": 101})"), "logit_bias invalid_value"},
      {chat(R"("logit_bias": {"1": "a"})"), "logit_bias.1 invalid_type"},
      {chat(R"("logit_bias": [1])"), "logit_bias invalid_type"},
      {chat(R"("logprobs": 3)"), "logprobs invalid_type"},
      {chat(R"("top_logprobs": 3)"), "top_logprobs invalid_value"},
      {chat(R"("logprobs": true, "top_logprobs": 21)"), "top_logprobs integer_above_max_value"},
      {chat(R"("stream": 1)"), "stream invalid_type"},
      {chat(R"("stream_options": {"include_usage": true})"), "stream_options invalid_value"},
      {chat(R"("response_format": "json")"), "response_format invalid_type"},
      {chat(R"("response_format": {"type": "xml"})"), "response_format.type invalid_value"},
      {chat(R"("response_format": {"type": "json_schema"})"), "response_format.json_schema missing_required_parameter"},
      {chat(R"("response_format": {"type": "json_schema", "json_schema": {"schema": {}}})"),
       "response_format.json_schema.name missing_required_parameter"},
      {chat(R"("response_format": {"type": "json_object"}, "guided_regex": "a")"), "guided_regex invalid_value"},
      {chat(R"("tool_choice": "auto")"), "tool_choice invalid_value"},
      {chat(R"("parallel_tool_calls": true)"), "parallel_tool_calls invalid_value"},
      {chat(R"("tools": [{"type": "retrieval"}])"), "tools[0].type invalid_value"},
      {chat(R"("tools": [{"type": "function"}])"), "tools[0].function missing_required_parameter"},
      {chat(R"("tools": [{"type": "function", "function": {"name": "a b"}}])"), "tools[0].function.name invalid_value"},
      {chat(std::string(kTool) + R"(, "tool_choice": "maybe")"), "tool_choice invalid_value"},
      {chat(std::string(kTool) + R"(, "tool_choice": {"type": "function", "function": {"name": "g"}})"),
       "tool_choice invalid_value"},
      {chat(std::string(kTool) + R"(, "tool_choice": "required", "ignore_eos": true)"),
       "ignore_eos invalid_parameter_combination"},
      {chat(R"("continue_final_message": true)"), "continue_final_message invalid_value"},
      {chat(R"("continue_final_message": true, "add_generation_prompt": true)"),
       "continue_final_message invalid_parameter_combination"},
      {chat(R"("functions": [{"name": "f"}])"), "functions unsupported_parameter"},
      {chat(R"("modalities": ["audio"])"), "modalities unsupported_value"},
      {chat(R"("ignore_eos": true, "grammar": "root ::= \"a\"")"), "ignore_eos invalid_value"},
  });
}

TEST(OpenAiRequests, MalformedOthers) {
  const struct {
    Path path;
    std::string body, verdict;
  } cases[] = {
      {Path::completion, R"({"model": "m"})", "prompt missing_required_parameter"},
      {Path::completion, R"({"model": "m", "prompt": []})", "prompt empty_array"},
      {Path::completion, R"({"model": "m", "prompt": [[]]})", "prompt[0] empty_array"},
      {Path::completion, R"({"model": "m", "prompt": ["a", 3]})", "prompt[1] invalid_type"},
      {Path::completion, R"({"model": "m", "prompt": [-3]})", "prompt invalid_value"},
      {Path::completion, R"({"model": "m", "prompt": [1, "a"]})", "prompt invalid_type"},
      {Path::completion, R"({"model": "m", "prompt": [4294967296]})", "prompt invalid_value"},
      {Path::completion, R"({"model": "m", "prompt": {}})", "prompt invalid_type"},
      {Path::completion, completion(R"("n": 2, "best_of": 1)"), "best_of invalid_value"},
      {Path::completion, completion(R"("best_of": 2, "stream": true)"), "best_of invalid_value"},
      {Path::completion, R"({"model": "m", "prompt": [1, 2], "suffix": "x"})", "prompt invalid_value"},
      {Path::completion, completion(R"("max_tokens": 0)"), "max_tokens integer_below_min_value"},
      {Path::completion, completion(R"("logprobs": true)"), "logprobs invalid_type"},
      {Path::embedding, R"({"model": "m"})", "input missing_required_parameter"},
      {Path::embedding, R"({"model": "m", "input": ""})", "input invalid_value"},
      {Path::embedding, R"({"model": "m", "input": ["a", ""]})", "input[1] invalid_value"},
      {Path::embedding, R"({"model": "m", "input": "a", "encoding_format": "hex"})", "encoding_format invalid_value"},
      {Path::embedding, R"({"model": "m", "input": "a", "dimensions": 0})", "dimensions integer_below_min_value"},
      {Path::rerank, R"({"model": "m", "query": "q"})", "documents missing_required_parameter"},
      {Path::rerank, R"({"model": "m", "query": "q", "documents": []})", "documents empty_array"},
      {Path::rerank, R"({"model": "m", "query": "q", "documents": [{}]})", "documents[0].text missing_required_parameter"},
      {Path::rerank, R"({"model": "m", "query": "q", "documents": ["a"], "top_n": 0})", "top_n integer_below_min_value"},
  };
  for (const auto& c : cases) EXPECT_EQ(verdict(c.path, c.body), c.verdict) << c.body;
}

std::string ignored_in_chat(const std::string& body) { return read_chat_request(read_body(body)).generation.ignored.text(); }

// Members that clients send but nothing reads: the answer names them, once for all messages.
TEST(OpenAiRequests, UnknownFieldsAreIgnoredAndNamed) {
  EXPECT_EQ(ignored_in_chat(chat(R"("foo": 1, "chat_id": null)")), "foo, chat_id");
  EXPECT_EQ(ignored_in_chat(chat("")), "");
  EXPECT_EQ(
      ignored_in_chat(chat_with(R"([{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {}}], "id": "1"},
      {"role": "assistant", "content": "{}", "refusal": null, "annotations": [], "audio": null, "function_call": null, "parsed": {},
       "tool_calls": null, "reasoning_details": [], "thinking_blocks": [], "provider_specific_fields": {}, "id": "2"},
      {"role": "user", "content": "y", "opts": {}}])")),
      "messages[].id, messages[].parsed, messages[].reasoning_details, messages[].thinking_blocks, "
      "messages[].provider_specific_fields, messages[].opts");
  // The form in which openai-python returns the message of its parse().
  EXPECT_EQ(ignored_in_chat(chat_with(R"([{"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function",
      "function": {"name": "f", "arguments": "{}", "parsed_arguments": {}}}]}, {"role": "tool", "tool_call_id": "1", "content": ""}])")),
            "messages[].tool_calls[].function.parsed_arguments");
  EXPECT_EQ(ignored_in_chat(chat(R"("stream": true, "stream_options": {"continuous_usage_stats": true}, "cache_prompt": true,
      "tools": [{"type": "function", "cache_control": {}, "function": {"name": "f"}}])")),
            "stream_options.continuous_usage_stats, tools[].cache_control, cache_prompt");
  EXPECT_EQ(read_completion_request(read_body(completion(R"("keep_alive": 5)"))).generation.ignored.text(), "keep_alive");
  EXPECT_EQ(read_embedding_request(read_body(R"({"model": "m", "input": "a", "input_type": "query"})")).ignored.text(),
            "input_type");
  EXPECT_EQ(read_rerank_request(read_body(R"({"model": "m", "query": "a", "documents": ["a"], "max_chunks": 1})")).ignored.text(),
            "max_chunks");
}

// They stand in a header.
TEST(OpenAiRequests, NamesOfIgnoredFieldsAreFitForAHeader) {
  EXPECT_EQ(ignored_in_chat(chat(R"("a\r\nSet-Cookie: b": 1, "ż,": 2)")), "a??Set-Cookie:?b, ???");
  std::string many;
  for (int i = 0; i < 30; ++i) many += (i == 0 ? "\"" : ", \"") + std::string(200, 'x') + std::to_string(i) + "\": 1";
  EXPECT_EQ(ignored_in_chat(chat(many)), std::string(80, 'x'));
  many.clear();
  for (int i = 0; i < 30; ++i) many += (i == 0 ? "\"y" : ", \"y") + std::to_string(i) + "\": 1";
  EXPECT_TRUE(ignored_in_chat(chat(many)).ends_with("y19, ..."));
}

TEST(OpenAiRequests, AnAnswerMayBeAsLongAsFits) {
  const auto most = [](const std::string& body) {
    const GenerationFields g = read_chat_request(read_body(body)).generation;
    return g.max_tokens ? std::to_string(*g.max_tokens) : "all";
  };
  EXPECT_EQ(most(chat("")), "all");
  EXPECT_EQ(most(chat(R"("max_tokens": -1)")), "all");
  EXPECT_EQ(most(chat(R"("max_completion_tokens": -1)")), "all");
  EXPECT_EQ(most(chat(R"("max_tokens": 32000)")), "32000");
  EXPECT_EQ(most(chat(R"("max_tokens": 7, "max_completion_tokens": 7)")), "7");
  const auto completes = [](const char* more) {
    return read_completion_request(read_body(completion(more))).generation.max_tokens;
  };
  EXPECT_FALSE(completes(R"("max_tokens": -1)"));
  EXPECT_EQ(completes(R"("echo": true)"), 16);
}

TEST(OpenAiRequests, WhatFollowsIsIgnored) {
  EXPECT_EQ(verdict(Path::chat, chat(R"("user": "u", "metadata": {"a": "b"}, "store": true, "service_tier": "auto", "seed": null,
                                      "reasoning_effort": "low", "functions": null, "modalities": ["text"], "verbosity": "low")")),
            "fine");
  EXPECT_EQ(verdict(Path::completion, completion(R"("user": "u", "suffix": null)")), "fine");
}

TEST(OpenAiRequests, TooManyMembersAreRefused) {
  std::string body = "{";
  for (int i = 0; i < 1025; ++i) body += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
  EXPECT_EQ(verdict(Path::chat, body + "}"), "- -");
}

TEST(OpenAiRequests, TooManyListsAreRefused) {
  const auto nested = [](int lists) {
    std::string body = "[[]";
    for (int i = 2; i < lists; ++i) body += ",[]";
    return body + "]";
  };
  EXPECT_TRUE(read_json(nested(262144)));
  EXPECT_THROW(read_json(nested(262145)), ApiError);
}

TEST(OpenAiRequests, AWholeChat) {
  const ChatRequest r = read_chat_request(read_body(
      R"({"model": "m", "stream": true, "stream_options": {"include_usage": true}, "temperature": 0.5, "top_k": -1, "seed": -1, "n": 2,
          "max_completion_tokens": 7, "stop": "x", "logit_bias": {"5": -100}, "logprobs": true, "top_logprobs": 2,
          "tools": [{"type": "function", "function": {"name": "f", "description": "d", "strict": true}}],
          "tool_choice": {"type": "function", "function": {"name": "f"}}, "parallel_tool_calls": false,
          "chat_template_kwargs": {"enable_thinking": false}, "messages": [
            {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": null, "reasoning_content": "hm",
             "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"z\": 1, \"a\": 2}"}},
                            {"id": "2", "type": "function", "function": {"name": "f", "arguments": "{broken"}}]},
            {"role": "tool", "tool_call_id": "2", "content": "two"}, {"role": "tool", "tool_call_id": "1", "content": "one"}]})"));
  EXPECT_TRUE(r.generation.stream && r.generation.include_usage && !r.parallel_calls);
  EXPECT_EQ(r.generation.n, 2);
  EXPECT_EQ(r.generation.max_tokens, 7);
  EXPECT_EQ(r.generation.stop, std::vector<std::string>{"x"});
  EXPECT_EQ(r.logprobs, 2);
  EXPECT_EQ(r.tool_use, ToolUse::required);
  EXPECT_EQ(r.tool_name, "f");
  EXPECT_EQ(r.tools,
            R"([{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{}}}}])");
  EXPECT_EQ(r.variables.dump(), R"({"enable_thinking":false})");
  EXPECT_EQ(r.messages.dump(),
            R"([{"role":"developer","content":"a\nb"},{"role":"assistant","content":"","reasoning_content":"hm","tool_calls":[)"
            R"({"id":"1","type":"function","function":{"name":"f","arguments":{"z":1,"a":2}}},)"
            R"({"id":"2","type":"function","function":{"name":"f","arguments":"{broken"}}]},)"
            R"({"role":"tool","content":"two","tool_call_id":"2"},{"role":"tool","content":"one","tool_call_id":"1"}])");
}

TEST(OpenAiRequests, TheBeginningOfAnAnswer) {
  const auto read = [](const std::string& last, const std::string& more) {
    return read_chat_request(
        read_body(R"({"model": "m", "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b")" + last +
                  "}]" + more + "}"));
  };
  const ChatRequest plain = read("", "");
  EXPECT_EQ(plain.messages.size(), 2U);
  EXPECT_TRUE(plain.continued.empty() && plain.add_generation_prompt);
  for (const ChatRequest& r : {read("", R"(, "continue_final_message": true)"), read(R"(, "prefix": true)", ""),
                               read("", R"(, "continue_final_message": true, "add_generation_prompt": false)")}) {
    EXPECT_EQ(r.messages.size(), 1U);
    EXPECT_EQ(r.continued, "b");
    EXPECT_TRUE(r.add_generation_prompt);
  }
  EXPECT_FALSE(read("", R"(, "add_generation_prompt": false)").add_generation_prompt);
}

TEST(OpenAiRequests, FormsOfAnswers) {
  const auto format = [](const std::string& more) {
    const ChatRequest r = read_chat_request(read_body(chat(more)));
    return r.generation.format ? std::to_string(static_cast<int>(r.generation.format->format)) + r.generation.format->text
                               : "none";
  };
  EXPECT_EQ(format(R"("response_format": {"type": "text"})"), "none");
  EXPECT_EQ(format(R"("response_format": {"type": "json_object"})"), "4");
  EXPECT_EQ(
      format(
          R"("response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": {"z": 1, "a": 2}}})"),
      R"(0{"z":1,"a":2})");
  EXPECT_EQ(format(R"("response_format": {"type": "json_object", "schema": {"type": "null"}})"), R"(0{"type":"null"})");
  EXPECT_EQ(format(R"("guided_json": {"type": "object"})"), R"(0{"type":"object"})");
  EXPECT_EQ(format(R"("guided_regex": "a+")"), "2a+");
  EXPECT_EQ(format(R"("structured_outputs": {"json": {"type": "object"}})"), R"(0{"type":"object"})");
  EXPECT_EQ(format(R"("structured_outputs": {"regex": "a+", "disable_any_whitespace": true})"), "2a+");
  EXPECT_EQ(format(R"("structured_outputs": {"choice": ["a.b", "c"]})"), "2a\\.b|c");
  EXPECT_EQ(format(R"("structured_outputs": {"grammar": "root ::= \"a\""})"), "1root ::= \"a\"");
  EXPECT_EQ(format(R"("grammar": "root ::= \"a\"")"), "1root ::= \"a\"");
  EXPECT_EQ(format(R"("guided_choice": ["a.b", "c"])"), "2a\\.b|c");
  EXPECT_EQ(format(std::string(kTool) + R"(, "tool_choice": "none", "response_format": {"type": "json_object"})"), "4");
}

TEST(OpenAiRequests, SamplingGoesOverTheModelsOwn) {
  SamplingSettings own;
  own.greedy = true;
  own.temperature = 0.6F;
  own.top_k = 20;
  EXPECT_TRUE(SamplingFields{}.over(own).greedy);
  SamplingFields warm;
  warm.temperature = 0.9;
  const SamplingSettings s = warm.over(own);
  EXPECT_FALSE(s.greedy);
  EXPECT_FLOAT_EQ(s.temperature, 0.9F);
  EXPECT_EQ(s.top_k, 20);
  SamplingFields all;
  all.top_k = -1;
  EXPECT_EQ(all.over(own).top_k, 0);
  SamplingFields likeliest;
  likeliest.top_p = 0;
  EXPECT_TRUE(likeliest.over(own).greedy);
}

TEST(OpenAiRequests, PromptsAndInputs) {
  const auto count = [](const std::string& value) { return read_texts(Json::parse(value), "prompt", 3).size(); };
  EXPECT_EQ(count("\"a\""), 1U);
  EXPECT_EQ(count(R"(["a", "b"])"), 2U);
  EXPECT_EQ(count("[1, 2, 3, 4, 5]"), 1U);
  EXPECT_EQ(count("[[1, 2], [3]]"), 2U);
  EXPECT_THROW(count("[[1], [2], [3], [4]]"), ApiError);
  EXPECT_EQ(std::get<TokenList>(read_texts(Json::parse("[[1, 2], [3]]"), "prompt", 3)[0]), (TokenList{1, 2}));
}

TEST(OpenAiErrors, Shape) {
  ApiError error(404, "no \"m\"");
  error.param = "model";
  EXPECT_EQ(error_json(error), R"({"error":{"message":"no \"m\"","type":"invalid_request_error","param":"model","code":null}})");
  const Response full = error_response(api_error(Error(ErrorCode::out_of_memory, "256 requests wait")));
  EXPECT_EQ(full.status, 503);
  EXPECT_EQ(header(full.headers, "retry-after"), "1");
  EXPECT_EQ(api_error(Error(ErrorCode::invalid_argument, "x")).status, 400);
  EXPECT_EQ(api_error(Error(ErrorCode::deadline_exceeded, "x")).status, 504);
  EXPECT_EQ(api_error(Error(ErrorCode::internal, "x")).status, 500);
}

}  // namespace
}  // namespace sdx::serve::openai
