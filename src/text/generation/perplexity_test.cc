// Perplexities beside sums over the logits of each window. Needs SDX_TEST_MODELS.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sdx/text.hpp>

#include "base/error.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;

constexpr const char* kText =
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she saw a big, red "
    "ball. She wanted to play with it, but it was too high. Her mom said: \"Lily, let's go to the park.\" Lily was sad. Then a "
    "bird came and sat on the tree.";

class PerplexityTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* models = std::getenv("SDX_TEST_MODELS");
    const fs::path folder = fs::path(models == nullptr ? "" : models) / "llm_stories260k" / "genai_fp32";
    if (!fs::exists(folder)) GTEST_SKIP() << "no model files (SDX_TEST_MODELS)";
    model_ = std::make_unique<LanguageModel>(LanguageModel::load(folder));
    tokens_ = model_->tokenizer().encode(kText).ids;
  }

  // The loop of Hugging Face's page, with labels of -100 for tokens that an earlier window scored.
  double by_hand(std::size_t window, std::size_t stride, std::int64_t* scored) const {
    double sum = 0;
    *scored = 0;
    std::size_t previous_end = 0;
    for (std::size_t begin = 0; begin < tokens_.size(); begin += stride) {
      const std::size_t end = std::min(begin + window, tokens_.size()), fresh = end - previous_end;
      TextState state = model_->new_state();
      const std::vector<TokenId> part(tokens_.begin() + static_cast<std::ptrdiff_t>(begin),
                                      tokens_.begin() + static_cast<std::ptrdiff_t>(end));
      const Tensor logits = state.append(part, true);
      const auto width = static_cast<std::size_t>(logits.dim(1));
      for (std::size_t i = 1; i < part.size(); ++i) {
        if (i < part.size() - fresh) continue;
        const auto row = logits.values<float>().subspan((i - 1) * width, width);
        double all = 0;
        for (const float x : row) all += std::exp(static_cast<double>(x));
        sum += std::log(all) - static_cast<double>(row[part[i]]);
        ++*scored;
      }
      previous_end = end;
      if (end == tokens_.size()) break;
    }
    return sum / static_cast<double>(*scored);
  }

  std::unique_ptr<LanguageModel> model_;
  std::vector<TokenId> tokens_;
};

TEST_F(PerplexityTest, WindowsAreThoseOfTheLogits) {
  ASSERT_GT(tokens_.size(), 90U);
  for (const auto& [window, stride] : {std::pair(512, 512), {512, 1}, {32, 16}, {32, 32}, {33, 7}, {2, 1}, {2, 2}, {91, 90}}) {
    std::int64_t scored = 0;
    const double expected = by_hand(static_cast<std::size_t>(window), static_cast<std::size_t>(stride), &scored);
    PerplexitySettings settings;
    settings.window = window;
    settings.stride = stride;
    std::int64_t told = 0;
    settings.progress = [&](std::int64_t done, std::int64_t all) {
      EXPECT_GT(done, told);
      EXPECT_EQ(all, static_cast<std::int64_t>(tokens_.size()));
      told = done;
    };
    const Perplexity p = model_->perplexity(tokens_, settings);
    EXPECT_EQ(p.scored, scored) << window << " " << stride;
    EXPECT_NEAR(p.nll, expected, 1e-5) << window << " " << stride;
    EXPECT_DOUBLE_EQ(p.perplexity, std::exp(p.nll));
    EXPECT_EQ(told, p.tokens);
    EXPECT_TRUE(stride == window || p.scored == p.tokens - 1);
  }
}

TEST_F(PerplexityTest, TextsAndLimits) {
  const Perplexity whole = model_->perplexity(kText);
  EXPECT_EQ(whole.tokens, static_cast<std::int64_t>(tokens_.size()));
  EXPECT_EQ(whole.windows, 1);
  EXPECT_GT(model_->perplexity("Zebra quantum 7731 ;;; xq").perplexity, whole.perplexity);
  PerplexitySettings settings;
  settings.window = model_->info().context + 1;
  EXPECT_THROW(model_->perplexity(kText, settings), Error);
  settings.window = 16;
  settings.stride = 17;
  EXPECT_THROW(model_->perplexity(kText, settings), Error);
  settings.stride = -1;
  EXPECT_THROW(model_->perplexity(kText, settings), Error);
  EXPECT_THROW(model_->perplexity(std::span<const TokenId>(tokens_).first(1)), Error);
  // The last token is never computed, only foretold.
  EXPECT_THROW(model_->perplexity(std::vector<TokenId>{1, 4000000000}), Error);
  EXPECT_THROW(model_->perplexity(std::vector<TokenId>{1, static_cast<TokenId>(model_->info().vocabulary)}), Error);
}

}  // namespace
}  // namespace sdx::text
