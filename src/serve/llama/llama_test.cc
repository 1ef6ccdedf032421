#include <gtest/gtest.h>

#include <cmath>

#include "serve/llama/completion_answer.h"
#include "serve/llama/requests.h"

namespace sdx::serve::llama {
namespace {

using openai::Json;

std::string verdict(const std::string& body) {
  try {
    std::vector<PromptPart> prompt;
    read_completion(openai::read_body(body), prompt);
    return "fine";
  } catch (const openai::ApiError& error) {
    EXPECT_EQ(error.status, 400);
    return error.param.value_or("-");
  }
}

TEST(LlamaRequests, Completions) {
  std::vector<PromptPart> prompt;
  const CompletionRequest r = read_completion(
      Json::parse(R"({"prompt": [1, 2, "a", 3], "n_predict": 5, "temperature": 0.5, "top_k": 3, "repeat_penalty": 1.1, "seed": -1,
                      "stop": ["x", ""], "logit_bias": [[4, 1.5], [5, false]], "json_schema": {}, "stream": true, "return_tokens": true,
                      "cache_prompt": true, "n_probs": 4, "mirostat": 2})"),
      prompt);
  const openai::GenerationFields& g = r.chat.generation;
  EXPECT_EQ(prompt, (std::vector<PromptPart>{openai::TokenList{1, 2}, std::string("a"), openai::TokenList{3}}));
  EXPECT_EQ(g.max_tokens, 5);
  EXPECT_EQ(g.sampling.temperature, 0.5);
  EXPECT_FALSE(g.sampling.seed);
  EXPECT_EQ(g.stop, std::vector<std::string>{"x"});
  EXPECT_EQ(g.sampling.logit_bias[0].second, 1.5F);
  EXPECT_TRUE(std::isinf(g.sampling.logit_bias[1].second));
  EXPECT_EQ(g.format->text, "{}");
  EXPECT_TRUE(g.stream && r.return_tokens);
  EXPECT_EQ(r.chat.logprobs, 4);
  EXPECT_EQ(g.ignored.text(), "mirostat");
}

TEST(LlamaRequests, Refused) {
  EXPECT_EQ(verdict(R"({"n_predict": 3})"), "prompt");
  EXPECT_EQ(verdict(R"({"prompt": {"prompt_string": "x"}})"), "prompt");
  EXPECT_EQ(verdict(R"({"prompt": ["a", "b"]})"), "prompt");
  EXPECT_EQ(verdict(R"({"prompt": [-1]})"), "prompt");
  EXPECT_EQ(verdict(R"({"prompt": [1e30]})"), "prompt");
  EXPECT_EQ(verdict(R"({"prompt": [4294967296]})"), "prompt");
  EXPECT_EQ(verdict(R"({"prompt": ""})"), "fine");
  EXPECT_EQ(verdict(R"({"prompt": "a", "n_predict": 0})"), "n_predict");
  EXPECT_EQ(verdict(R"({"prompt": "a", "n_predict": -1})"), "fine");
  EXPECT_EQ(verdict(R"({"prompt": "a", "n_probs": 0})"), "fine");
  EXPECT_EQ(verdict(R"({"prompt": "a", "n_probs": 1001})"), "n_probs");
  EXPECT_EQ(verdict(R"({"prompt": "a", "post_sampling_probs": true})"), "post_sampling_probs");
  EXPECT_EQ(verdict(R"({"prompt": "a", "logit_bias": {"x": 1}})"), "logit_bias");
  EXPECT_EQ(verdict(R"({"prompt": "a", "logit_bias": [[1]]})"), "logit_bias");
  EXPECT_EQ(verdict(R"({"prompt": "a", "stop": [3]})"), "stop");
  EXPECT_EQ(verdict(R"({"prompt": "a", "grammar": "root ::= \"a\"", "json_schema": {}})"), "json_schema");
  EXPECT_EQ(verdict(R"({"prompt": "a", "grammar": "root ::= \"a\"", "ignore_eos": true})"), "ignore_eos");
  EXPECT_THROW(read_tokenize(Json::parse("{}")), openai::ApiError);
  EXPECT_THROW(read_tokenize(Json{{"content", std::string((1 << 20) + 1, 'x')}}), openai::ApiError);
  EXPECT_THROW(read_tokenize(Json::parse(R"({"content": "x", "parse_special": false})")), openai::ApiError);
  EXPECT_THROW(read_detokenize(Json::parse(R"({"tokens": ["x"]})")), openai::ApiError);
  EXPECT_EQ(read_detokenize(Json::parse(R"({"tokens": [1, 2]})")).tokens, (openai::TokenList{1, 2}));
  EXPECT_EQ(read_embedding(Json::parse(R"({"content": "a", "embd_normalize": 2})")).input.size(), 1U);
  EXPECT_EQ(read_embedding(Json::parse(R"({"input": ["a", "b"], "content": "c"})")).input.size(), 2U);
  for (const char* wrong : {R"({})", R"({"content": 3})", R"({"content": []})", R"({"content": "a", "embd_normalize": -1})"}) {
    EXPECT_THROW(read_embedding(Json::parse(wrong)), openai::ApiError) << wrong;
  }
}

TEST(LlamaAnswers, NameSettings) {
  GenerationSettings settings;
  settings.max_tokens = 7;
  settings.sampling.greedy = true;
  settings.stop = {"x"};
  const Json json = settings_json(settings);
  EXPECT_EQ(json["n_predict"], 7);
  EXPECT_EQ(json["temperature"], 0.0);
  EXPECT_EQ(json["seed"], -1);
  EXPECT_EQ(json["stop"], Json::array({"x"}));
}

}  // namespace
}  // namespace sdx::serve::llama
