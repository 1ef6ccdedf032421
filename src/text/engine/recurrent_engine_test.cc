// Texts with states in slots: alone and together, forked, taken back, preempted. The model is Qwen3.5's network with random
// weights.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <sdx/generation_engine.hpp>

#include "base/error.h"
#include "support/generation.h"
#include "support/gguf_bytes.h"
#include "support/language_models.h"
#include "support/temporary_folder.h"
#include "text/model/block_pool.h"

namespace sdx::text {
namespace {

using Ids = std::vector<TokenId>;
constexpr std::uint32_t kVocabulary = 90, kWidth = 32, kHeads = 4, kKeyHeads = 2, kSize = 16;

class Weights {
 public:
  std::string bytes() {
    g_.text("general.architecture", "qwen35");
    for (const auto& [name, value] : {std::pair("context_length", 4096),
                                      {"embedding_length", 32},
                                      {"block_count", 3},
                                      {"feed_forward_length", 48},
                                      {"attention.head_count", 2},
                                      {"attention.head_count_kv", 1},
                                      {"attention.key_length", 16},
                                      {"attention.value_length", 16},
                                      {"rope.dimension_count", 8},
                                      {"ssm.conv_kernel", 4},
                                      {"ssm.state_size", 16},
                                      {"ssm.group_count", 2},
                                      {"ssm.time_step_rank", 4},
                                      {"ssm.inner_size", 64},
                                      {"full_attention_interval", 3}}) {
      g_.u32(std::string("qwen35.") + name, static_cast<std::uint32_t>(value));
    }
    add("token_embd.weight", {kWidth, kVocabulary}, 1.0F);
    add("output.weight", {kWidth, kVocabulary}, 0.4F);
    add("output_norm.weight", {kWidth}, 0.1F, 1.0F);
    for (int i = 0; i < 3; ++i) layer("blk." + std::to_string(i) + ".", i == 1);
    return g_.bytes();
  }

 private:
  void layer(const std::string& of, bool attention) {
    for (const char* norm : {"attn_norm.weight", "post_attention_norm.weight"}) add(of + norm, {kWidth}, 0.1F, 1.0F);
    for (const char* part : {"ffn_gate.weight", "ffn_up.weight"}) add(of + part, {kWidth, 48}, 0.3F);
    add(of + "ffn_down.weight", {48, kWidth}, 0.3F);
    if (attention) {
      add(of + "attn_q.weight", {kWidth, 64}, 0.3F);
      for (const char* part : {"attn_k.weight", "attn_v.weight"}) add(of + part, {kWidth, kSize}, 0.3F);
      for (const char* norm : {"attn_q_norm.weight", "attn_k_norm.weight"}) add(of + norm, {kSize}, 0.1F, 1.0F);
      add(of + "attn_output.weight", {kWidth, kWidth}, 0.3F);
      return;
    }
    constexpr std::uint32_t kChannels = 2 * kKeyHeads * kSize + kHeads * kSize;
    add(of + "attn_qkv.weight", {kWidth, kChannels}, 0.3F);
    add(of + "attn_gate.weight", {kWidth, kHeads * kSize}, 0.3F);
    for (const char* part : {"ssm_alpha.weight", "ssm_beta.weight"}) add(of + part, {kWidth, kHeads}, 0.3F);
    add(of + "ssm_a", {kHeads}, 0.05F, -0.2F);
    add(of + "ssm_dt.bias", {kHeads}, 0.3F);
    add(of + "ssm_conv1d.weight", {4, kChannels}, 0.5F);
    add(of + "ssm_norm.weight", {kSize}, 0.1F, 1.0F);
    add(of + "ssm_out.weight", {kHeads * kSize, kWidth}, 0.3F);
  }
  void add(const std::string& name, const std::vector<std::uint64_t>& extents, float spread, float about = 0.0F) {
    std::normal_distribution<float> normal(about, spread);
    std::size_t count = 1;
    for (const std::uint64_t e : extents) count *= static_cast<std::size_t>(e);
    std::vector<float> values(count);
    for (float& v : values) v = normal(rng_);
    std::string raw(count * sizeof(float), '\0');
    std::memcpy(raw.data(), values.data(), raw.size());
    g_.tensor(name, 0, extents, raw);
  }

  std::mt19937 rng_{7};
  test::GgufBytes g_;
};

Ids prompt_of(std::size_t length, std::uint32_t seed) {
  Ids ids;
  for (std::uint32_t i = 0; i < length; ++i) ids.push_back((i * i * 31 + i * 7 + seed * 13) % kVocabulary);
  return ids;
}

class Recurrent : public ::testing::Test {
 protected:
  Recurrent() { folder_.write("model.gguf", Weights().bytes()); }
  LanguageModel load(int threads) const { return text::load(folder_.path() / "model.gguf", threads); }
  // Logits of all tokens, computed at once.
  static Tensor fresh(const LanguageModel& m, const Ids& ids) { return m.new_state().append(ids, true); }
  static void expect_rows(const Tensor& made, const Tensor& all, std::int64_t first) {
    ASSERT_EQ(made.dim(1), all.dim(1));
    for (std::int64_t i = 0; i < made.size(); ++i) {
      EXPECT_NEAR(made.values<float>()[static_cast<std::size_t>(i)],
                  all.values<float>()[static_cast<std::size_t>(first * all.dim(1) + i)], 2e-4F)
          << i;
    }
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(Recurrent, PartsAreTheWhole) {
  for (const int threads : {1, 2}) {
    const LanguageModel m = load(threads);
    const Ids ids = prompt_of(700, 1);  // more than are computed at once
    const Tensor all = fresh(m, ids);
    for (const std::size_t part : {1, 2, 3, 65, 600}) {
      TextState state = m.new_state();
      for (std::size_t at = 0; at < ids.size() && at < 8 * part; at += part) {
        const std::size_t count = std::min(part, ids.size() - at);
        expect_rows(state.append(std::span(ids).subspan(at, count), true), all, static_cast<std::int64_t>(at));
      }
    }
  }
}

TEST_F(Recurrent, WhatIsTakenBackIsComputedAgain) {
  const LanguageModel m = load(1);
  const Ids ids = prompt_of(650, 2);
  const Tensor all = fresh(m, ids);
  TextState state = m.new_state();
  state.append(ids);
  for (const std::size_t kept : {646, 640, 300, 512, 299, 1, 0, 7}) {
    if (kept > state.tokens().size()) state.append(std::span(ids).subspan(state.tokens().size()));
    state.rewind(kept);
    EXPECT_EQ(state.tokens().size(), kept);
    expect_rows(state.append(std::span(ids).subspan(kept, 3), true), all, static_cast<std::int64_t>(kept));
    expect_rows(state.append(std::span(ids).subspan(kept + 3, 1), true), all, static_cast<std::int64_t>(kept + 3));
  }
}

TEST_F(Recurrent, AnswersTogetherAreThoseAlone) {
  for (const int threads : {1, 2}) {
    const LanguageModel m = load(threads);
    std::vector<Ids> prompts, expected;
    for (const std::size_t length : {1, 2, 64, 65, 130, 33, 200}) {
      prompts.push_back(prompt_of(length, 3));
      expected.push_back(m.generate(prompts.back(), greedy(30)).choices[0].tokens);
    }
    for (const std::int64_t step : {0, 5}) {
      GenerationEngine engine(m, {.max_sequences = 4, .max_step_tokens = step});
      EXPECT_TRUE(engine.status().batches) << engine.status().why_not;
      std::vector<GenerationTask> tasks;
      for (const Ids& prompt : prompts) tasks.push_back(engine.submit(asking(prompt, greedy(30))));
      for (std::size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(tasks[i].wait().choices.at(0).tokens, expected[i]) << i;
      EXPECT_EQ(engine.status().cache_in_use, 0U);
    }
  }
}

TEST_F(Recurrent, SeveralAnswersBeginWithOnePrompt) {
  const LanguageModel m = load(1);
  GenerationSettings s = greedy(20);
  s.sampling.greedy = false;
  s.sampling.seed = 5;
  s.n = 5;
  const Ids prompt = prompt_of(70, 4);
  const Generation expected = m.generate(prompt, s);
  for (const int most : {1, 3, 16}) {
    GenerationEngine engine(m, {.max_sequences = most});
    const Generation made = engine.submit(asking(prompt, s)).wait();
    ASSERT_EQ(made.choices.size(), 5U);
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(made.choices[i].tokens, expected.choices[i].tokens) << most << " " << i;
  }
  for (std::size_t i = 1; i < 5; ++i) EXPECT_NE(expected.choices[i].tokens, expected.choices[0].tokens);
}

TEST_F(Recurrent, TheyGoOnWhereTheCacheIsFull) {
  const LanguageModel m = load(1);
  // Two layers have states: the last three rows of a convolution, and a matrix for each head.
  constexpr std::uint64_t kState = 2 * sizeof(float) * (3 * (2 * kKeyHeads + kHeads) * kSize + kHeads * kSize * kSize);
  constexpr std::uint64_t kBlock = 2 * sizeof(float) * CacheLayout::kBlockTokens * kSize;
  GenerationEngine engine(m, {.max_sequences = 6, .cache_bytes = 14 * kState + 8 * kBlock});
  std::vector<Ids> prompts;
  for (std::uint32_t i = 0; i < 6; ++i) prompts.push_back(prompt_of(110, 10 + i));
  const std::vector<Generation> made = answers_together(engine, prompts, greedy(100));
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(made[i].choices.at(0).tokens, m.generate(prompts[i], greedy(100)).choices[0].tokens) << i;
  }
  EXPECT_GT(engine.status().preempted, 0U);
  EXPECT_EQ(engine.status().cache_in_use, 0U);
}

TEST_F(Recurrent, GuessesAndBeamsChangeNothing) {
  const LanguageModel m = load(1);
  const Ids prompt = prompt_of(40, 6);
  const Ids expected = m.generate(prompt, greedy(120)).choices[0].tokens;
  GenerationSettings lookup = greedy(120);
  lookup.lookup = 6;
  EXPECT_EQ(m.generate(prompt, lookup).choices[0].tokens, expected);
  GenerationSettings beams = greedy(12);
  beams.beams = 3;
  const Generation found = m.generate(prompt, beams);
  Ids all = prompt;
  all.insert(all.end(), found.choices.at(0).tokens.begin(), found.choices[0].tokens.end());
  EXPECT_EQ(found.choices[0].tokens.size(), 12U);
  // The best of three is no worse than the greedy one.
  const auto score = [&](const Ids& answer) {
    Ids text = prompt;
    text.insert(text.end(), answer.begin(), answer.end());
    const Tensor logits = fresh(m, text);
    double sum = 0;
    for (std::size_t i = prompt.size(); i < text.size(); ++i) {
      const auto row = logits.values<float>().subspan((i - 1) * kVocabulary, kVocabulary);
      double total = 0;
      for (const float v : row) total += std::exp(static_cast<double>(v));
      sum += static_cast<double>(row[text[i]]) - std::log(total);
    }
    return sum;
  };
  EXPECT_GE(score(found.choices[0].tokens), score(Ids(expected.begin(), expected.begin() + 12)) - 1e-3);
}

}  // namespace
}  // namespace sdx::text
