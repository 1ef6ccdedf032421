// Guesses, beams, a context that slides, conversations. Needs SDX_TEST_MODELS.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sdx/generation_engine.hpp>
#include <sdx/text.hpp>

#include "base/error.h"
#include "support/errors.h"
#include "text/generation/guesses.h"
#include "text/model/sampler.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<TokenId>;

LanguageModel load(const char* variant, std::int64_t context = 0) {
  LanguageModelOptions options;
  options.max_context = context;
  options.session.threads = 1;
  const char* models = std::getenv("SDX_TEST_MODELS");
  return LanguageModel::load(fs::path(models == nullptr ? "" : models) / "llm_stories260k" / variant, options);
}

class GrowingStories : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* models = std::getenv("SDX_TEST_MODELS");
    if (models == nullptr || !fs::exists(fs::path(models) / "llm_stories260k"))
      GTEST_SKIP() << "no model files (SDX_TEST_MODELS)";
  }
};

GenerationSettings greedy(std::int64_t count) {
  GenerationSettings s;
  s.sampling.greedy = true;
  s.max_tokens = count;
  return s;
}

// A refusal must name the setting.
void refuses(const LanguageModel& model, const GenerationSettings& settings, const char* name) {
  testing::expect_error(ErrorCode::invalid_argument, [&] { model.generate(Ids{1, 403}, settings); }, {name});
}

TEST(LookupGuesser, TakesWhatFollowedLast) {
  LookupGuesser guesser(4);
  const Ids text{1, 2, 3, 4, 5, 9, 2, 3, 7, 8, 9, 2, 3};
  EXPECT_EQ(guesser.guess(text, 10), (Ids{7, 8, 9, 2}));  // 9 2 3
  EXPECT_EQ(guesser.guess(text, 2), (Ids{7, 8}));
  Ids more = text;
  more.insert(more.end(), {4, 5});
  EXPECT_EQ(guesser.guess(more, 3), (Ids{9, 2, 3}));  // 3 4 5
  EXPECT_EQ(guesser.guess(Ids{5, 6}, 3), Ids{});      // another text
  EXPECT_EQ(guesser.guess(Ids{5, 6, 7, 5, 6}, 3), (Ids{7, 5, 6}));
}

TEST_F(GrowingStories, GuessesChangeNothing) {
  const LanguageModel with_words = load("genai_fp32");
  const Tokenizer& words = with_words.tokenizer();
  const Ids prompt = words.encode("Once upon a time").ids;
  for (const char* variant : {"genai_fp32", "genai_int4", "optimum"}) {
    const LanguageModel model = load(variant);
    GenerationSettings chance = greedy(150);
    chance.sampling.greedy = false;
    chance.sampling.temperature = 0.7F;
    chance.sampling.top_k = 8;
    chance.sampling.repetition_penalty = 1.1F;
    chance.sampling.seed = 5;
    chance.n = 2;
    chance.logprobs = 2;
    for (GenerationSettings s : {greedy(150), chance}) {
      s.detokenize = [&](std::span<const TokenId> ids) { return words.decode(ids); };
      const Generation plain = model.generate(prompt, s);
      EXPECT_EQ(plain.drafted_tokens, 0);
      s.lookup = 5;
      const Generation looked = model.generate(prompt, s);
      s.lookup = 0;
      s.draft = std::make_shared<const LanguageModel>(load(std::string(variant) == "genai_int4" ? "genai_fp32" : "genai_int4"));
      const Generation drafted = model.generate(prompt, s);
      for (std::size_t i = 0; i < plain.choices.size(); ++i) {
        EXPECT_EQ(looked.choices[i].tokens, plain.choices[i].tokens) << variant;
        EXPECT_EQ(looked.choices[i].text, plain.choices[i].text);
        EXPECT_EQ(looked.choices[i].logprobs.size(), plain.choices[i].logprobs.size());
        EXPECT_EQ(drafted.choices[i].tokens, plain.choices[i].tokens) << variant;
        EXPECT_EQ(drafted.choices[i].finish_reason, plain.choices[i].finish_reason);
      }
      EXPECT_GT(looked.drafted_tokens, 0);
      EXPECT_GT(drafted.accepted_tokens, drafted.drafted_tokens / 4) << variant;
      EXPECT_LE(drafted.accepted_tokens, drafted.drafted_tokens);
    }
  }
}

TEST_F(GrowingStories, GuessesHeedMasksStopsAndTheContext) {
  const LanguageModel model = load("genai_fp32", 60);
  GenerationSettings s = greedy(200);
  const Generation plain = model.generate("Once upon a time", s);
  s.lookup = 8;
  EXPECT_EQ(model.generate("Once upon a time", s).choices[0].tokens, plain.choices[0].tokens);
  s.draft = std::make_shared<const LanguageModel>(load("genai_int4", 40));
  refuses(model, s, "lookup");
  s.lookup = 0;
  EXPECT_EQ(model.generate("Once upon a time", s).choices[0].tokens, plain.choices[0].tokens);
  s.mask = model.constrain(OutputFormat::regex, "( there was a b[a-z]+ )+x");
  const Generation held = model.generate("Once upon a time", s);
  s.draft = nullptr;
  EXPECT_EQ(held.choices[0].text, model.generate("Once upon a time", s).choices[0].text);
  s.mask = nullptr;
  s.stop = {"girl"};
  const std::string stopped = model.generate("Once upon a time", s).choices[0].text;
  s.lookup = 8;
  TextState state = model.new_state();
  const Generation g = model.generate(state, "Once upon a time", s);
  EXPECT_EQ(g.choices[0].text, stopped);
  // The state ends before the last token of the answer.
  Ids all = model.tokenizer().encode("Once upon a time").ids;
  all.insert(all.end(), g.choices[0].tokens.begin(), g.choices[0].tokens.end() - 1);
  EXPECT_EQ(state.tokens(), all);
}

TEST_F(GrowingStories, DraftsMustHaveTheSameVocabulary) {
  const LanguageModel model = load("genai_fp32");
  GenerationSettings s = greedy(4);
  s.draft_tokens = 0;
  refuses(model, s, "draft_tokens");
  s.draft_tokens = 4;
  s.lookup = 65;
  refuses(model, s, "lookup");
}

// Beam search in full: every step from the beginning, all candidates sorted.
std::vector<std::pair<double, Ids>> searched(const LanguageModel& model, const Ids& prompt, std::size_t beams, std::int64_t most,
                                             double penalty, bool early) {
  const TokenId end = model.info().eos.empty() ? 0xFFFFFFFF : model.info().eos[0];
  std::vector<std::pair<double, Ids>> alive{{0.0, {}}}, ended;
  const auto score = [&](double sum, std::size_t n) { return sum / std::pow(static_cast<double>(n), penalty); };
  const auto put = [&](double s, const Ids& tokens) {
    ended.emplace_back(s, tokens);
    std::stable_sort(ended.begin(), ended.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    if (ended.size() > beams) ended.pop_back();
  };
  for (std::int64_t length = 1; length <= most; ++length) {
    std::vector<std::pair<double, Ids>> all;
    for (const auto& [sum, tokens] : alive) {
      TextState state = model.new_state();
      Ids text = prompt;
      text.insert(text.end(), tokens.begin(), tokens.end());
      const Tensor logits = state.append(text);
      double total = 0;
      for (const float x : logits.values<float>()) total += std::exp(static_cast<double>(x));
      for (std::size_t i = 0; i < logits.values<float>().size(); ++i) {
        Ids grown = tokens;
        grown.push_back(static_cast<TokenId>(i));
        all.emplace_back(sum + static_cast<double>(logits.values<float>()[i]) - std::log(total), std::move(grown));
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    all.resize(2 * beams);
    alive.clear();
    for (std::size_t rank = 0; rank < all.size() && alive.size() < beams; ++rank) {
      if (all[rank].second.back() != end) {
        alive.push_back(all[rank]);
      } else if (rank < beams) {
        put(score(all[rank].first, static_cast<std::size_t>(length)), all[rank].second);
      }
    }
    if (ended.size() == beams && (early || ended.back().first >= score(all[0].first, static_cast<std::size_t>(length))))
      return ended;
  }
  for (const auto& [sum, tokens] : alive) put(score(sum, tokens.size()), tokens);
  return ended;
}

TEST_F(GrowingStories, BeamsAreThoseOfAPlainSearch) {
  const LanguageModel with_words = load("genai_fp32");
  const Tokenizer& words = with_words.tokenizer();
  for (const char* variant : {"genai_fp32", "optimum"}) {
    const LanguageModel model = load(variant);
    for (const auto& [beams, penalty, early] : {std::tuple(3, 1.0F, true), {4, 0.0F, false}, {2, 2.0F, false}}) {
      const Ids prompt = words.encode("Lily and Tom went to the").ids;
      GenerationSettings s;
      s.beams = beams;
      s.n = beams;
      s.length_penalty = penalty;
      s.early_stopping = early;
      s.max_tokens = 14;
      std::string told;
      TextState state = model.new_state();
      s.detokenize = [&](std::span<const TokenId> ids) { return words.decode(ids); };
      const Generation g = model.generate(state, prompt, s, [&](const GeneratedToken& t) {
        if (t.choice == 0) told += t.text;
        return true;
      });
      const auto expected = searched(model, prompt, static_cast<std::size_t>(beams), 14, static_cast<double>(penalty), early);
      ASSERT_EQ(g.choices.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(g.choices[i].tokens, expected[i].second) << variant << " " << beams << " " << i;
        EXPECT_NEAR(g.choices[i].score, expected[i].first, 1e-4);
      }
      EXPECT_EQ(told, g.choices[0].text);
      EXPECT_EQ(state.tokens(), prompt);
    }
  }
}

TEST_F(GrowingStories, BeamsThatEnd) {
  const LanguageModel model = load("genai_fp32");
  const Ids prompt = model.tokenizer().encode("The end.").ids;
  GenerationSettings s;
  s.beams = 4;
  s.max_tokens = 60;
  // A full stop ends an answer: texts of many lengths compete.
  const TokenId stop = model.tokenizer().encode("a.").ids.back();
  s.stop_tokens = {stop};
  s.early_stopping = false;
  const Generation g = model.generate(prompt, s);
  ASSERT_EQ(g.choices.size(), 1U);
  EXPECT_EQ(g.choices[0].finish_reason, "stop");
  EXPECT_EQ(g.choices[0].tokens.back(), stop);
  s.min_tokens = static_cast<std::int64_t>(g.choices[0].tokens.size()) + 3;
  EXPECT_GT(model.generate(prompt, s).choices[0].tokens.size(), g.choices[0].tokens.size() + 3);
}

TEST_F(GrowingStories, WhatDoesNotGoTogetherIsRefusedByName) {
  const LanguageModel model = load("genai_fp32");
  const auto beams = [](auto change) {
    GenerationSettings s;
    s.beams = 2;
    change(s);
    return s;
  };
  refuses(model, beams([](auto& s) { s.beams = 65; }), "beams");
  refuses(model, beams([](auto& s) { s.n = 3; }), "beams");
  refuses(model, beams([](auto& s) { s.lookup = 2; }), "lookup");
  refuses(model, beams([](auto& s) { s.logprobs = 0; }), "logprobs");
  refuses(model, beams([](auto& s) { s.sampling.repetition_penalty = 1.1F; }), "repetition_penalty");
  refuses(model, beams([](auto& s) { s.sampling.logit_bias = {{1, 1.0F}}; }), "logit_bias");
  refuses(model, beams([&](auto& s) { s.mask = model.constrain(OutputFormat::json); }), "grammar");
  refuses(model, beams([](auto& s) { s.length_penalty = NAN; }), "length_penalty");
  refuses(model, beams([](auto& s) { s.overflow = ContextOverflow::slide; }), "slides");
  GenerationSettings slide = greedy(4);
  slide.overflow = ContextOverflow::slide;
  slide.keep = model.info().context;
  refuses(model, slide, "keep");
  GenerationEngine engine(model);
  GenerationRequest request;
  request.prompt = {1};
  request.settings = beams([](auto&) {});
  EXPECT_THROW(engine.submit(request), Error);
}

TEST_F(GrowingStories, TheContextSlides) {
  const LanguageModel model = load("genai_fp32", 32);
  GenerationSettings s = greedy(100);
  s.ignore_end = true;
  const Ids prompt = model.tokenizer().encode("Once upon a time").ids;
  EXPECT_EQ(model.generate(prompt, s).choices[0].finish_reason, "length");
  EXPECT_LT(model.generate(prompt, s).choices[0].tokens.size(), 33U);
  s.overflow = ContextOverflow::slide;
  s.keep = 4;
  TextState state = model.new_state();
  const Generation g = model.generate(state, prompt, s);
  const Ids& answer = g.choices[0].tokens;
  EXPECT_EQ(answer.size(), 100U);
  EXPECT_GT(g.slides, 3);
  EXPECT_LE(state.tokens().size(), 32U);
  EXPECT_TRUE(std::equal(prompt.begin(), prompt.begin() + 4, state.tokens().begin()));
  EXPECT_TRUE(std::equal(state.tokens().rbegin(), state.tokens().rend() - 4, answer.rbegin() + 1));
  // Computed by hand: the same text from the beginning each time.
  Ids text = prompt, expected;
  while (expected.size() < answer.size()) {
    if (text.size() > 32) text.erase(text.begin() + 4, text.end() - 14);
    TextState fresh = model.new_state();
    expected.push_back(largest(fresh.append(text).values<float>()));
    text.push_back(expected.back());
  }
  EXPECT_EQ(answer, expected);
  s.lookup = 6;
  EXPECT_EQ(model.generate(prompt, s).choices[0].tokens, expected);
  // A prompt that is too long keeps its beginning and its end.
  Ids long_prompt(100, 403);
  long_prompt[0] = 1;
  s.max_tokens = 3;
  EXPECT_EQ(model.generate(long_prompt, s).prompt_tokens, 100);
  EXPECT_EQ(model.generate(long_prompt, s).choices[0].tokens.size(), 3U);
}

TEST_F(GrowingStories, UnloadedModelsSaySo) {
  LanguageModel model = load("genai_fp32");
  const LanguageModel copy = model;
  EXPECT_EQ(model.state(), ModelState::loaded);
  model.unload();
  EXPECT_EQ(model.state(), ModelState::unloaded);
  EXPECT_THROW(model.info(), Error);
  EXPECT_THROW(model.generate("a", greedy(1)), Error);
  EXPECT_THROW(model.new_state(), Error);
  EXPECT_THROW(model.tokenizer(), Error);
  EXPECT_EQ(copy.generate("Once", greedy(2)).choices[0].tokens.size(), 2U);
  const std::vector<std::string> texts{"a"};
  testing::expect_error([&] { copy.embed(texts); }, {"TextEmbedder"});
}

constexpr const char* kTools = R"([{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object",
  "properties": {"city": {"type": "string", "maxLength": 12}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
  "required": ["city", "days"], "additionalProperties": false}}}])";

TEST(Conversation, GoesOnWhereItWas) {
  const char* file = std::getenv("SDX_TEST_SMOLLM2");
  if (file == nullptr) GTEST_SKIP() << "no SmolLM2 (SDX_TEST_SMOLLM2)";
  const LanguageModel model = LanguageModel::load(file);
  ChatInput input;
  input.messages = R"([{"role": "user", "content": "What is the capital of France?"}])";
  TextState state = model.new_state();
  const Generation first = model.generate(state, input, greedy(12));
  EXPECT_NE(first.choices[0].text.find("Paris"), std::string::npos) << first.choices[0].text;
  input.add_generation_prompt = true;
  const Ids ids = model.tokenizer().encode(model.chat_template().render(input), false).ids;
  EXPECT_EQ(model.generate(ids, greedy(12)).choices[0].tokens, first.choices[0].tokens);
  const Generation again = model.generate(state, input, greedy(12));
  EXPECT_EQ(again.choices[0].tokens, first.choices[0].tokens);
  EXPECT_EQ(again.cached_tokens, static_cast<std::int64_t>(ids.size()) - 1);
}

TEST(Conversation, CallsAreForced) {
  const char* file = std::getenv("SDX_TEST_SMOLLM2");
  if (file == nullptr) GTEST_SKIP() << "no SmolLM2 (SDX_TEST_SMOLLM2)";
  const LanguageModel model = LanguageModel::load(file);
  ChatInput input;
  input.messages = R"([{"role": "user", "content": "How is the weather in Rome?"}])";
  input.tools = kTools;
  for (const ToolCallFormat calls :
       {ToolCallFormat::hermes, ToolCallFormat::qwen_xml, ToolCallFormat::mistral, ToolCallFormat::llama}) {
    AnswerFormat format = answer_format(model.chat_template());
    format.calls = calls;
    GenerationSettings s = greedy(120);
    s.mask = model.constrain_calls(format, kTools, {.name = "get_weather"});
    s.lookup = 4;
    const Generation g = model.generate(input, s);
    const ParsedAnswer answer = parse_answer(g.choices[0].text, format, kTools);
    ASSERT_EQ(answer.calls.size(), 1U) << g.choices[0].text;
    EXPECT_EQ(answer.calls[0].name, "get_weather");
    EXPECT_TRUE(answer.calls[0].complete) << g.choices[0].text;
    EXPECT_EQ(answer.content, "");
    EXPECT_EQ(g.choices[0].finish_reason, "stop");
  }
}

}  // namespace
}  // namespace sdx::text
