#include <gtest/gtest.h>

#include "serve/vllm/requests.h"

namespace sdx::serve::vllm {
namespace {

using openai::Json;

// The field that is wrong, or "fine".
template <class Read>
std::string verdict(Read read, const char* body) {
  try {
    read(openai::read_body(body));
    return "fine";
  } catch (const openai::ApiError& error) {
    EXPECT_EQ(error.status, 400);
    return error.param.value_or("-");
  }
}

TEST(VllmRequests, Scores) {
  const ScoreRequest r = read_score(Json::parse(R"({"model": "m", "text_1": "a", "text_2": ["b", "c"], "priority": 1, "x": 2})"));
  EXPECT_EQ(r.first, std::vector<std::string>{"a"});
  EXPECT_EQ(r.second, (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(r.ignored.text(), "x");
  EXPECT_FALSE(r.cut);
  EXPECT_EQ(verdict(read_score, R"({"model": "m", "queries": ["a", "b"], "documents": ["c", "d"]})"), "fine");
  EXPECT_EQ(verdict(read_score, R"({"model": "m", "data_1": "a", "data_2": "b"})"), "fine");
  EXPECT_EQ(verdict(read_score, R"({"model": "m", "text_1": ["a", "b"], "text_2": "c"})"), "text_1");
  EXPECT_EQ(verdict(read_score, R"({"model": "m", "text_2": "c"})"), "text_1");
  EXPECT_EQ(verdict(read_score, R"({"model": "m", "text_1": "c"})"), "text_2");
  EXPECT_EQ(verdict(read_score, R"({"model": "m", "text_1": [], "text_2": "c"})"), "text_1");
  EXPECT_EQ(verdict(read_score, R"({"model": "m", "text_1": "a", "text_2": ["c", 3]})"), "text_2[1]");
  EXPECT_EQ(verdict(read_score, R"({"model": "m", "text_1": {"content": []}, "text_2": "c"})"), "text_1");
  EXPECT_EQ(verdict(read_score, R"({"text_1": "a", "text_2": "c"})"), "model");
}

TEST(VllmRequests, Classes) {
  EXPECT_EQ(read_classify(Json::parse(R"({"model": "m", "input": "a"})")).texts, std::vector<std::string>{"a"});
  EXPECT_EQ(verdict(read_classify, R"({"model": "m", "input": ["a", "b"], "truncate_prompt_tokens": -1})"), "fine");
  EXPECT_EQ(verdict(read_classify, R"({"model": "m", "input": ["a", [1]]})"), "input[1]");
  EXPECT_EQ(verdict(read_classify, R"({"model": "m"})"), "input");
}

}  // namespace
}  // namespace sdx::serve::vllm
