#include "session/observe/measure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sdx/sdx.hpp>

#include "session/agreement.h"
#include "support/graph_text.h"
#include "support/session.h"

namespace sdx::session {
namespace {

namespace fs = std::filesystem;
using Settings = std::vector<std::pair<std::string, std::string>>;

class MeasureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("SDX_TEST_PROVIDER", "1", 1);
    folder_ = fs::temp_directory_path() / ("sdx_measure_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
  }
  void TearDown() override {
    unsetenv("SDX_TEST_PROVIDER");
    fs::remove_all(folder_);
  }

  Session open(Settings settings, bool cache = true) const {
    SessionOptions o;
    o.providers = {"fault", "cpu"};
    o.provider_options = {{"fault", std::move(settings)}};
    o.select = Select::measured;
    o.cache = cache;
    o.cache_folder = folder_;
    return testing::open("input x: float32[n]\ny = Exp(x)\noutput y\n", o);
  }
  static void run(const Session& s) {
    const NamedValues out = s.run({{"x", Tensor::of<float>({3}, {0, 1, 2})}});
    EXPECT_FLOAT_EQ(out.tensor("y").values<float>()[1], std::exp(1.0F));
  }
  std::vector<fs::path> decisions() const {
    std::vector<fs::path> files;
    std::error_code none;
    for (const auto& e : fs::directory_iterator(folder_ / "measured", none)) files.push_back(e.path());
    return files;
  }

  fs::path folder_;
};

TEST_F(MeasureTest, TheFastestIsKeptRememberedAndExplained) {
  const Settings slow{{"run_ms", "20"}};
  {
    const Session s = open(slow);
    EXPECT_NE(s.report().why.find("not measured yet"), std::string::npos) << s.report().why;
    run(s);
    const Report r = s.report();
    ASSERT_EQ(r.measured.size(), 2U);
    EXPECT_EQ(r.measured[0].provider, "fault");
    EXPECT_GE(r.measured[0].median_ms, 20);
    EXPECT_FALSE(r.measured[0].chosen);
    EXPECT_EQ(r.measured[1].provider, "cpu");
    EXPECT_TRUE(r.measured[1].chosen);
    EXPECT_GT(r.measured[1].median_ms, 0);
    EXPECT_EQ(r.providers, std::vector<std::string>{"cpu"});
    EXPECT_NE(r.why.find("measured with x: float32[3]: cpu "), std::string::npos) << r.why;
    EXPECT_NE(r.text().find("measured: fault"), std::string::npos);
  }
  ASSERT_EQ(decisions().size(), 1U);
  const Session again = open(slow);
  const Report r = again.report();  // before any run
  EXPECT_NE(r.why.find("measured on 20"), std::string::npos) << r.why;
  EXPECT_EQ(r.providers, std::vector<std::string>{"cpu"});
  ASSERT_EQ(r.measured.size(), 2U);
  EXPECT_TRUE(r.measured[1].chosen);
  run(again);
  // Other options are another question.
  run(open({{"run_ms", "21"}}));
  EXPECT_EQ(decisions().size(), 2U);
}

TEST_F(MeasureTest, ARememberedDecisionIsFollowed) {
  run(open({}));
  ASSERT_EQ(decisions().size(), 1U);
  const fs::path file = decisions()[0];
  cache::Decision m;
  m.chosen = "fault";
  m.inputs = "x: float32[3]";
  m.when = "2026-01-02T03:04:05Z";
  m.candidates = {{"fault", 1.5, 2.5, true, ""}, {"cpu", 2.0, 0.5, false, "a note\nof two lines"}};
  cache::write_decision(file, m);
  const Session s = open({});
  run(s);
  const Report r = s.report();
  EXPECT_EQ(r.providers, std::vector<std::string>{"fault"});
  EXPECT_NE(r.why.find("measured on 2026-01-02T03:04:05Z with x: float32[3]: fault 1.500 ms, cpu 2.000 ms"), std::string::npos)
      << r.why;
  EXPECT_EQ(r.measured[1].note, "a note of two lines");
  // A file that makes no sense, or whose choice is not to be had, counts for nothing.
  for (const char* text : {"", "sdx measured 1\n", "sdx measured 1\nchosen cuda\n", "{}", "sdx measured 9\nchosen cpu\n"}) {
    std::ofstream(file, std::ios::trunc) << text;
    EXPECT_NE(open({}).report().why.find("not measured yet"), std::string::npos) << text;
  }
}

TEST_F(MeasureTest, WhatDisagreesOrFailsIsNotChosen) {
  const auto note = [&](Settings settings) {
    const Session s = open(std::move(settings), false);
    run(s);
    const Report r = s.report();
    EXPECT_EQ(r.providers, std::vector<std::string>{"cpu"});
    EXPECT_EQ(r.measured.at(0).median_ms, 0);
    return r.measured.at(0).note;
  };
  EXPECT_NE(note({{"fault", "value"}, {"at", "1"}, {"count", "0"}}).find("differs from cpu"), std::string::npos);
  EXPECT_NE(note({{"fault", "nan"}, {"at", "1"}, {"count", "0"}}).find("NaN"), std::string::npos);
  EXPECT_NE(note({{"at", "1"}, {"count", "0"}}).find("device lost"), std::string::npos);
  EXPECT_NE(note({{"at", "3"}, {"count", "0"}}).find("device lost"), std::string::npos);
  EXPECT_NE(note({{"fail_compile", "no such opcode"}}).find("runs no node"), std::string::npos);
  EXPECT_TRUE(decisions().empty());  // without a cache nothing is kept
}

TEST(Disagreement, FloatsWithinATolerance) {
  const auto floats = [](std::initializer_list<float> v) {
    return Value(Tensor::of<float>({static_cast<std::int64_t>(v.size())}, v));
  };
  const float nan = std::nanf("");
  EXPECT_EQ(disagreement(floats({1, 100}), floats({1.5F, 100.9F}), true), "");
  EXPECT_NE(disagreement(floats({1, 100}), floats({1, 102}), true), "");
  EXPECT_EQ(disagreement(floats({1, 100}), floats({1, 102}), false), "");
  EXPECT_EQ(disagreement(floats({nan, 1}), floats({nan, 1}), true), "");
  EXPECT_NE(disagreement(floats({nan, 1}), floats({1, 1}), true), "");
  EXPECT_NE(disagreement(floats({1}), floats({1, 1}), false), "");
  EXPECT_NE(disagreement(floats({HUGE_VALF}), floats({-HUGE_VALF}), true), "");
  EXPECT_NE(disagreement(floats({1}), Value(Tensor::of<std::int64_t>({1}, {1})), false), "");
  EXPECT_NE(disagreement(Value(Tensor::of<std::int64_t>({1}, {1})), Value(Tensor::of<std::int64_t>({1}, {2})), true), "");
}

}  // namespace
}  // namespace sdx::session
