#include "session/failover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <sdx/sdx.hpp>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/suggest.h"
#include "support/errors.h"
#include "support/graph_text.h"
#include "support/session.h"
#include "support/temporary_folder.h"

namespace sdx::session {
namespace {

using Floats = std::vector<float>;
using Settings = std::vector<std::pair<std::string, std::string>>;
using std::chrono::milliseconds;

constexpr const char* kModel = R"(
  input x: float32[2]
  constant k: float32[2] 10 100
  y = Mul(x, k)
  output y
)";

// Sessions on a chain of the test provider and cpu.
class ServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("SDX_TEST_PROVIDER", "1", 1);
    log::set_sink([this](log::Level level, std::string_view text) {
      const std::lock_guard lock(mutex_);
      if (level == log::Level::warning) warnings_.emplace_back(text);
    });
  }
  void TearDown() override {
    log::set_sink(nullptr);
    unsetenv("SDX_TEST_PROVIDER");
  }

  static SessionOptions options(Settings settings) {
    SessionOptions o;
    o.providers = {"fault", "cpu"};
    o.provider_options = {{"fault", std::move(settings)}};
    return o;
  }
  static Session open(const SessionOptions& o, const std::string& text = kModel) { return testing::open(text, o); }
  // Whether the run returned the right answer.
  static bool right(const Session& session, float a, float b) {
    const Tensor x = Tensor::of<float>({2}, {a, b});
    const NamedValues out = session.run({{"x", x}});
    const auto y = out.tensor("y").values<float>();
    return y.size() == 2 && y[0] == 10 * a && y[1] == 100 * b;
  }
  std::vector<std::string> warnings() {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }
  static std::uint64_t answered(const Report& r) {
    std::uint64_t sum = 0;
    for (const ChainReport& c : r.chains) sum += c.runs;
    return sum;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> warnings_;
};

TEST_F(ServiceTest, WithoutFaultsTheFirstOfTheChainAnswers) {
  const Session s = open(options({}));
  EXPECT_TRUE(right(s, 1, 2));
  const Report r = s.report();
  EXPECT_EQ(r.providers, std::vector<std::string>{"fault"});
  EXPECT_EQ(r.runtime, "native");
  EXPECT_TRUE(r.events.empty()) << join(r.events);
  ASSERT_EQ(r.chains.size(), 1U);
  EXPECT_EQ(r.chains[0].runs, 1U);
  EXPECT_EQ(r.chains[0].state, "in use");
  EXPECT_TRUE(warnings().empty());
}

TEST_F(ServiceTest, AProviderThatIsNotAvailableIsLeftOutWithItsReason) {
  const Session s = open(options({{"fail_probe", "the device is on fire"}}));
  EXPECT_TRUE(right(s, 1, 2));
  const Report r = s.report();
  ASSERT_EQ(r.fallbacks.size(), 1U);
  EXPECT_EQ(r.fallbacks[0], "requested fault, using cpu: the device is on fire");
  EXPECT_EQ(warnings(), r.fallbacks);
  SessionOptions strict = options({{"fail_probe", "the device is on fire"}});
  strict.strict = true;
  EXPECT_THROW(open(strict), Error);
}

TEST_F(ServiceTest, AProviderThatCannotCompileLeavesTheModelToTheNext) {
  const Session s = open(options({{"fail_compile", "no such opcode"}}));
  EXPECT_TRUE(right(s, 1, 2));
  const Report r = s.report();
  EXPECT_EQ(r.providers, std::vector<std::string>{"cpu"});
  ASSERT_EQ(r.fallbacks.size(), 1U);
  EXPECT_NE(r.fallbacks[0].find("no such opcode"), std::string::npos);
  EXPECT_EQ(warnings().size(), 1U);
}

// Eight clients, a thousand runs, the device is lost in run 500 and stays lost.
TEST_F(ServiceTest, AThousandRunsWithADeviceLostInTheMiddle) {
  const Session s = open(options({{"at", "500"}, {"count", "0"}}));
  std::atomic<int> next{0}, good{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&] {
      for (int i = next.fetch_add(1); i < 1000; i = next.fetch_add(1)) {
        if (right(s, static_cast<float>(i), static_cast<float>(i + 1))) ++good;
      }
    });
  }
  for (std::thread& t : clients) t.join();
  EXPECT_EQ(good, 1000);
  const std::vector<std::string> said = warnings();
  ASSERT_EQ(said.size(), 1U) << join(said, "\n");
  testing::expect_parts(said[0], {"fault failed and is dropped; answered by cpu", "device lost"});
  const Report r = s.report();
  EXPECT_EQ(r.providers, std::vector<std::string>{"cpu"});
  ASSERT_EQ(r.chains.size(), 2U);
  EXPECT_EQ(answered(r), 1000U);
  EXPECT_EQ(r.chains[0].providers, (std::vector<std::string>{"fault", "cpu"}));
  EXPECT_EQ(r.chains[0].runs, 499U);
  EXPECT_GE(r.chains[0].failures, 1U);
  EXPECT_EQ(r.chains[1].runs, 501U);
  EXPECT_EQ(r.chains[1].state, "in use");
  EXPECT_NE(r.text().find("is dropped"), std::string::npos);
}

TEST_F(ServiceTest, StrictHandsTheFailureOn) {
  SessionOptions o = options({{"at", "2"}});
  o.strict = true;
  const Session s = open(o);
  EXPECT_TRUE(right(s, 1, 2));
  EXPECT_THROW(right(s, 1, 2), Error);
  EXPECT_TRUE(right(s, 1, 2));
}

TEST_F(ServiceTest, AfterAPauseTheProviderIsTriedAgain) {
  SessionOptions o = options({{"at", "2"}, {"count", "2"}});
  o.provider_retry = milliseconds(1);
  const Session s = open(o);
  EXPECT_TRUE(right(s, 1, 2));
  // Run 2 fails, so does the first trial; after the second the provider is back.
  for (int i = 0; i < 2000 && s.report().providers != std::vector<std::string>{"fault"}; ++i) {
    ASSERT_TRUE(right(s, 3, 4));
    std::this_thread::sleep_for(milliseconds(1));
  }
  for (int i = 0; i < 2000 && join(s.report().events).find("works again") == std::string::npos; ++i) {
    ASSERT_TRUE(right(s, 3, 4));
    std::this_thread::sleep_for(milliseconds(1));
  }
  const Report r = s.report();
  const std::string story = join(r.events, "\n");
  testing::expect_parts(story, {"was retried and failed", "fault works again"});
  EXPECT_EQ(r.providers, std::vector<std::string>{"fault"});
  EXPECT_EQ(warnings().size(), 1U) << join(warnings(), "\n");
}

TEST_F(ServiceTest, WithoutRetryItStaysDropped) {
  SessionOptions o = options({{"at", "1"}});
  o.provider_retry = milliseconds(0);
  const Session s = open(o);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(right(s, 1, 2));
  EXPECT_EQ(s.report().chains[0].runs, 0U);
  EXPECT_NE(warnings().at(0).find("it is not retried"), std::string::npos);
}

TEST_F(ServiceTest, WrongShapesAndTypesAreFailures) {
  for (const char* fault : {"shape", "type"}) {
    const Session s = open(options({{"at", "2"}, {"count", "0"}, {"fault", fault}}));
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(right(s, 1, 2)) << fault;
    const Report r = s.report();
    ASSERT_EQ(r.events.size(), 1U);
    EXPECT_NE(r.events[0].find("for 'y', which must be float32[2]"), std::string::npos) << r.events[0];
  }
}

TEST_F(ServiceTest, NanIsAFailureWhereAskedFor) {
  const Settings settings{{"at", "1"}, {"count", "0"}, {"fault", "nan"}};
  EXPECT_FALSE(right(open(options(settings)), 1, 2));  // as the provider said it
  SessionOptions o = options(settings);
  o.reject_nan = true;
  const Session s = open(o);
  EXPECT_TRUE(right(s, 1, 2));
  EXPECT_NE(s.report().events.at(0).find("returned NaN in 'y'"), std::string::npos);
}

TEST_F(ServiceTest, NanOfTheModelIsNobodysFailure) {
  SessionOptions o = options({});
  o.reject_nan = true;
  const Session s = open(o, "input x: float32[1]\ny = Sqrt(x)\noutput y\n");
  const Tensor x = Tensor::of<float>({1}, {-1});
  for (int i = 0; i < 3; ++i) EXPECT_NE(s.run({{"x", x}}).tensor("y").values<float>()[0], 0);
  const Report r = s.report();
  EXPECT_EQ(r.providers, std::vector<std::string>{"fault"});
  ASSERT_EQ(r.events.size(), 1U) << join(r.events);
  EXPECT_NE(r.events[0].find("NaN comes from the model"), std::string::npos);
  EXPECT_TRUE(warnings().empty());
}

TEST_F(ServiceTest, AHangIsAnsweredByTheNext) {
  SessionOptions o = options({{"at", "2"}, {"fault", "hang"}, {"hang_ms", "5000"}});
  o.provider_timeout = milliseconds(50);
  const Session s = open(o);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(right(s, 1, 2));
  const Report r = s.report();
  ASSERT_FALSE(r.events.empty());
  EXPECT_NE(r.events[0].find("has not answered after 0.050 s"), std::string::npos) << r.events[0];
  EXPECT_EQ(warnings().size(), 1U);
}

TEST_F(ServiceTest, ACompilerThatHangsIsLeftBehindAndTheNextAnswers) {
  SessionOptions o = options({{"compile_ms", "400"}});
  o.provider_timeout = milliseconds(50);
  o.provider_retry = milliseconds(1);
  const Session s = open(o);
  EXPECT_TRUE(right(s, 1, 2));
  {
    const Report r = s.report();
    EXPECT_EQ(r.providers, std::vector<std::string>{"cpu"});
    ASSERT_EQ(r.fallbacks.size(), 1U);
    EXPECT_NE(r.fallbacks[0].find("requested fault, using cpu: fault has not compiled the model after 0.050 s"),
              std::string::npos)
        << r.fallbacks[0];
    ASSERT_EQ(r.events.size(), 1U);
    EXPECT_NE(r.events[0].find("opening: fault failed and is dropped"), std::string::npos) << r.events[0];
    EXPECT_EQ(r.chains[0].state, "compiling");
  }
  // Another session does not hang as well: one compiler that is left behind is enough.
  const Session other = open(o);
  EXPECT_TRUE(right(other, 1, 2));
  EXPECT_NE(other.report().fallbacks.at(0).find("has not finished compiling another model"), std::string::npos);
  // Its late result is used, without compiling again.
  for (int i = 0; i < 5000 && s.report().providers != std::vector<std::string>{"fault"}; ++i) {
    ASSERT_TRUE(right(s, 3, 4));
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(s.report().providers, std::vector<std::string>{"fault"});
  EXPECT_EQ(warnings().size(), 2U) << join(warnings(), "\n");
}

TEST_F(ServiceTest, AHangingCompilerIsAnErrorWhereFallbackIsStrict) {
  SessionOptions o = options({{"compile_ms", "200"}});
  o.provider_timeout = milliseconds(20);
  o.strict = true;
  testing::expect_error([&] { open(o); }, {"fault has not compiled the model after 0.020 s"});
  std::this_thread::sleep_for(milliseconds(300));  // until the compiler is back: the provider gets no other model before
}

TEST_F(ServiceTest, ACompilerThatHangsAtAnotherSizeIsAnsweredByTheNext) {
  SessionOptions o = options({{"recompile_ms", "400"}});
  o.provider_timeout = milliseconds(100);
  const Session s = open(o, "input x: float32[2]\ny = Neg(x)\noutput y\n");
  EXPECT_EQ(s.report().providers, std::vector<std::string>{"fault"});
  const Tensor three = Tensor::of<float>({3}, {1, 2, 3});
  std::vector<std::thread> clients;  // those that wait for the compiler are answered as well
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&] { EXPECT_EQ(s.run({{"x", three}}).tensor("y").values<float>()[2], -3); });
  }
  for (std::thread& t : clients) t.join();
  EXPECT_EQ(s.report().providers, std::vector<std::string>{"cpu"});
  EXPECT_NE(join(s.report().events).find("fault has not answered after 0.100 s"), std::string::npos);
  std::this_thread::sleep_for(milliseconds(400));
}

TEST_F(ServiceTest, ClosingLeavesACompilerInTheBackgroundThatHangs) {
  SessionOptions o = options({{"compile_ms", "20000"}});
  o.start_on = "cpu";
  o.provider_timeout = milliseconds(20);
  const auto start = std::chrono::steady_clock::now();
  {
    const Session s = open(o);
    EXPECT_TRUE(right(s, 1, 2));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(15000)) << "closing waited";
}

TEST_F(ServiceTest, MeasuringLeavesOutWhatHangs) {
  for (const Settings& settings : {Settings{{"compile_ms", "300"}}, Settings{{"at", "1"}, {"count", "0"}, {"fault", "hang"}}}) {
    SessionOptions o = options(settings);
    o.select = Select::measured;
    o.cache = false;
    o.provider_timeout = milliseconds(40);
    const Session s = open(o);
    EXPECT_TRUE(right(s, 1, 2));
    const Report r = s.report();
    ASSERT_EQ(r.measured.size(), 2U);
    EXPECT_NE(r.measured[0].note.find("has not "), std::string::npos) << r.measured[0].note;
    EXPECT_EQ(r.providers, std::vector<std::string>{"cpu"});
    std::this_thread::sleep_for(milliseconds(300));
  }
}

TEST_F(ServiceTest, DeadlinesAndCancellationReachARunWithATimeLimit) {
  SessionOptions o = options({{"at", "1"}, {"count", "0"}, {"fault", "hang"}, {"hang_ms", "5000"}});
  o.provider_timeout = milliseconds(4000);
  const Session s = open(o);
  RunOptions soon;
  soon.timeout = milliseconds(20);
  const auto code = [&](const RunOptions& run) {
    try {
      s.run({{"x", Tensor::of<float>({2}, {1, 2})}}, run);
    } catch (const Error& e) {
      return e.code();
    }
    return ErrorCode::internal;
  };
  EXPECT_EQ(code(soon), ErrorCode::deadline_exceeded);
  RunOptions stopped;
  stopped.cancel.emplace();
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds(20));
    stopped.cancel->cancel();
  });
  EXPECT_EQ(code(stopped), ErrorCode::cancelled);
  later.join();
  EXPECT_TRUE(s.report().events.empty());  // neither says anything about the provider
}

TEST_F(ServiceTest, WhereTheInputIsToBlameTheProviderIsKept) {
  const Session s = open(options({}), "input x: float32[2]\ninput i: int64[1]\ny = Gather(x, i)\noutput y\n");
  const Tensor x = Tensor::of<float>({2}, {1, 2});
  EXPECT_THROW(s.run({{"x", x}, {"i", Tensor::of<std::int64_t>({1}, {7})}}), Error);
  EXPECT_EQ(s.run({{"x", x}, {"i", Tensor::of<std::int64_t>({1}, {1})}}).tensor("y").values<float>()[0], 2);
  const Report r = s.report();
  EXPECT_EQ(r.providers, std::vector<std::string>{"fault"});
  EXPECT_TRUE(r.events.empty()) << join(r.events);
}

TEST_F(ServiceTest, StartsOnCpuAndSwitchesWithoutDroppingARequest) {
  SessionOptions o = options({{"compile_ms", "200"}});
  o.start_on = "cpu";
  const Session s = open(o);
  EXPECT_EQ(s.report().providers, std::vector<std::string>{"cpu"});
  std::atomic<bool> stop{false};
  std::atomic<int> good{0}, bad{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&] {
      for (int i = 0; !stop; ++i) ++(right(s, static_cast<float>(i), 1) ? good : bad);
    });
  }
  for (int i = 0; i < 10000 && s.report().providers != std::vector<std::string>{"fault"}; ++i) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  const int before = good;
  for (int i = 0; i < 10000 && good < before + 100; ++i) std::this_thread::sleep_for(milliseconds(1));
  stop = true;
  for (std::thread& t : clients) t.join();
  EXPECT_EQ(bad, 0);
  const Report r = s.report();
  EXPECT_EQ(answered(r), static_cast<std::uint64_t>(good));
  ASSERT_EQ(r.chains.size(), 2U);
  EXPECT_GT(r.chains[0].runs, 0U);
  EXPECT_GT(r.chains[1].runs, 0U);
  const std::string story = join(r.events, "\n");
  testing::expect_parts(story, {"started on cpu", "fault,cpu takes over"});
}

TEST_F(ServiceTest, StartingOnAProviderOutsideTheChainIsAnError) {
  SessionOptions o = options({});
  o.start_on = "xnnpack";
  EXPECT_THROW(open(o), Error);
}

// Each run gets an error of its own: none is read while another run adds its context.
TEST_F(ServiceTest, WhereTheBackgroundFailsAStrictSessionSaysSoToEveryRun) {
  SessionOptions o = options({{"fail_compile", "no such opcode"}});
  o.start_on = "cpu";
  o.strict = true;
  const Session s = open(o);
  const auto message = [&]() -> std::string { return testing::error_text([&] { right(s, 1, 2); }); };
  for (int i = 0; i < 5000 && message().empty(); ++i) std::this_thread::sleep_for(milliseconds(1));
  const std::string first = message();
  EXPECT_NE(first.find("no such opcode"), std::string::npos) << first;
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&] {
      for (int i = 0; i < 20; ++i) EXPECT_EQ(message(), first);
    });
  }
  for (std::thread& t : clients) t.join();
}

// A vendor's library may throw anything, even on a thread where nothing else would catch it.
TEST_F(ServiceTest, WhateverTheBackgroundThrowsIsReported) {
  SessionOptions o = options({{"throw_compile", "vector::_M_range_check"}});
  o.start_on = "cpu";
  const Session s = open(o);
  for (int i = 0; i < 5000 && s.report().events.size() < 2; ++i) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_NE(join(s.report().events).find("fault could not be compiled in the background: vector::_M_range_check"),
            std::string::npos)
      << join(s.report().events);
  EXPECT_TRUE(right(s, 1, 2));
}

// With a model in a file, so that something could be kept: neither what compiles in the background nor what is left behind there
// has anything to do with that.
TEST_F(ServiceTest, WhatIsToBeKeptIsNoneOfTheBackgroundsBusiness) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path model = folder.write("model.onnx", testing::model_bytes(kModel));
  for (const bool left_behind : {false, true}) {
    SessionOptions o = options({{"compile_ms", "60"}});
    o.keep_compiled = true;
    o.cache_folder = folder / "cache";
    if (left_behind) {
      o.provider_timeout = milliseconds(20);
      o.provider_retry = milliseconds(1);
    } else {
      o.start_on = "cpu";
    }
    const Session s = Session::open(model, o);
    EXPECT_TRUE(right(s, 1, 2));
    for (int i = 0; i < 5000 && s.report().providers != std::vector<std::string>{"fault"}; ++i) {
      ASSERT_TRUE(right(s, 3, 4));
      std::this_thread::sleep_for(milliseconds(1));
    }
    EXPECT_EQ(s.report().providers, std::vector<std::string>{"fault"});
    EXPECT_FALSE(std::filesystem::exists(folder / "cache" / "cpu"));
  }
}

TEST_F(ServiceTest, ADeadlineHoldsWhileAnotherRunCompiles) {
  const Session s = open(options({{"recompile_ms", "1500"}}), "input x: float32[2]\ny = Neg(x)\noutput y\n");
  const Tensor three = Tensor::of<float>({3}, {1, 2, 3});
  std::atomic<bool> compiled{false};
  std::thread other([&] {
    EXPECT_EQ(s.run({{"x", three}}).tensor("y").values<float>()[2], -3);
    compiled = true;
  });
  std::this_thread::sleep_for(milliseconds(200));
  RunOptions soon;
  soon.timeout = milliseconds(20);
  testing::error_of(ErrorCode::deadline_exceeded, [&] { s.run({{"x", three}}, soon); });
  EXPECT_FALSE(compiled) << "it waited";
  other.join();
}

TEST_F(ServiceTest, ClosingWaitsForTheBackground) {
  SessionOptions o = options({{"compile_ms", "100"}});
  o.start_on = "cpu";
  const Session s = open(o);
  EXPECT_TRUE(right(s, 1, 2));
}

TEST_F(ServiceTest, UnknownOptionsNameTheClosest) {
  testing::expect_error([&] { open(options({{"fault_", "nan"}})); }, {"did you mean 'fault'"});
}

}  // namespace
}  // namespace sdx::session
