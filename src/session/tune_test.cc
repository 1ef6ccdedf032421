// Kernels chosen by the clock: SessionOptions::tune.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sdx/sdx.hpp>

#include "base/system/mapped_file.h"
#include "cache/tuned.h"
#include "support/graph_text.h"
#include "support/session.h"
#include "support/temporary_folder.h"

namespace sdx::session {
namespace {

namespace fs = std::filesystem;

class TuneTest : public ::testing::Test {
 protected:
  // One convolution that plain products and Winograd's algorithm can both do; `rows` may be a symbol.
  Session open(bool tune, const std::string& rows = "12") const {
    SessionOptions o;
    o.providers = {"cpu"};
    o.tune = tune;
    o.threads = 1;
    o.cache_folder = folder_;
    return testing::open("input x: float32[1,24," + rows +
                             ",12]\nconstant w: float32[24,24,3,3] 0.01\n"
                             "y = Conv(x, w) {kernel_shape=[3,3], pads=[1,1,1,1]}\noutput y\n",
                         o);
  }
  static const NodeReport& conv(const Report& report) {
    for (const NodeReport& n : report.nodes) {
      if (n.op.find("Conv") != std::string::npos) return n;
    }
    throw std::runtime_error("no convolution in the report");
  }
  fs::path file() const { return folder_ / "tuned.json"; }

  const testing::TemporaryFolder temporary_;
  const fs::path folder_ = temporary_ / "cache";
};

TEST_F(TuneTest, TheFastestIsTakenAndRemembered) {
  const NodeReport first = conv(open(true).report());
  ASSERT_GE(first.timed.size(), 2U);
  bool among = false;
  for (const auto& [kernel, ms] : first.timed) {
    EXPECT_GT(ms, 0) << kernel;
    among = among || kernel == first.kernel;
    // 3 % is noise: within it the cost model's choice stays.
    for (const auto& [other, other_ms] : first.timed) {
      EXPECT_TRUE(kernel != first.kernel || ms * 0.97 <= other_ms) << other;
    }
  }
  EXPECT_TRUE(among) << first.kernel;
  ASSERT_TRUE(fs::exists(file()));
  const std::string kept = read_file(file());
  const NodeReport second = conv(open(true).report());
  EXPECT_EQ(second.kernel, first.kernel);
  EXPECT_EQ(second.timed.size(), first.timed.size());
  EXPECT_EQ(read_file(file()), kept);  // nothing was measured again
}

TEST_F(TuneTest, WhatIsRememberedDecides) {
  const NodeReport first = conv(open(true).report());
  std::string slowest;
  double most = 0;
  for (const auto& [kernel, ms] : first.timed) {
    if (ms > most) slowest = kernel, most = ms;
  }
  ASSERT_NE(slowest, first.kernel);
  std::string text = read_file(file());
  const std::size_t at = text.find("\"" + slowest + "\"");
  ASSERT_NE(at, std::string::npos) << text;
  const std::size_t colon = text.find(':', at), end = text.find_first_of(",}\n", colon);
  text.replace(colon + 1, end - colon - 1, "1e-9");
  write_file_atomically(file(), text);
  const Session s = open(true);
  EXPECT_EQ(conv(s.report()).kernel, slowest);
  const Session plain = open(false);
  EXPECT_TRUE(conv(plain.report()).timed.empty());
  Tensor x(DataType::float32, {1, 24, 12, 12});
  float v = 0;
  for (float& f : x.mutable_values<float>()) f = (v += 0.37F) > 2 ? v -= 4 : v;
  const NamedValues a = s.run({{"x", x}}), b = plain.run({{"x", x}});
  for (std::size_t i = 0; i < a.tensor("y").values<float>().size(); ++i) {
    EXPECT_NEAR(a.tensor("y").values<float>()[i], b.tensor("y").values<float>()[i], 1e-4F);
  }
}

TEST_F(TuneTest, ShapesThatOnlyARunKnowsAreLeftToTheCostModel) {
  const Session s = open(true, "n");
  EXPECT_TRUE(conv(s.report()).timed.empty());
  EXPECT_FALSE(fs::exists(file()));
  EXPECT_EQ(s.run({{"x", Tensor(DataType::float32, {1, 24, 9, 12})}}).tensor("y").shape(), (Shape{1, 24, 9, 12}));
}

TEST_F(TuneTest, AnythingElseInTheFileIsMeasuredAnew) {
  fs::create_directories(folder_);
  for (const char* text : {"", "{", "[]", "{\"k\": 1}", "{\"k\": {\"a\": -1, \"b\": 2}}", "\xff\xfe{}"}) {
    write_file_atomically(file(), std::string(text));
    EXPECT_GE(conv(open(true).report()).timed.size(), 2U) << text;
    EXPECT_NE(read_file(file()).find("Conv"), std::string::npos) << text;
    fs::remove(file());
  }
}

TEST_F(TuneTest, TwoWritersKeepBoth) {
  fs::create_directories(folder_);
  {
    cache::TunedChoices a(file()), b(file());
    a.add("one", {{"x", 1}, {"y", 2}});
    b.add("two", {{"x", 3}, {"y", 4}});
  }
  const cache::TunedChoices both(file());
  EXPECT_NE(both.find("one"), nullptr);
  EXPECT_NE(both.find("two"), nullptr);
  EXPECT_EQ(both.find("three"), nullptr);
}

TEST_F(TuneTest, AFolderThatCannotBeWrittenCostsTheMemoryOnly) {
  std::ofstream(folder_) << "a file where the folder should be";
  EXPECT_GE(conv(open(true).report()).timed.size(), 2U);
}

}  // namespace
}  // namespace sdx::session
