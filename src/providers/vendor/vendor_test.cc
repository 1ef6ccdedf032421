// Sessions on the provider that SDX_VENDOR_PROVIDER names: tests/bridge/run_bridge.py sets it, with the library.

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include <sdx/session.hpp>

#include "base/error.h"
#include "support/errors.h"
#include "support/graph_text.h"
#include "support/session.h"

namespace sdx {
namespace {

class VendorLibraries : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* provider = std::getenv("SDX_VENDOR_PROVIDER");
    if (provider == nullptr) GTEST_SKIP() << "SDX_VENDOR_PROVIDER is not set";
    options_.providers = {provider};
    options_.strict = true;
    options_.cache = false;
    options_.threads = 1;
  }
  Session open(std::string_view text) const { return testing::open(text, options_); }
  SessionOptions options_;
};

constexpr const char* kModel =
    "input x: float32[n,64]\n"
    "constant w: float32[64,64] 0.01\n"
    "y = MatMul(x, w)\n"
    "z = Relu(y)\n"
    "output z\n";

double resident_mb() {
  ::malloc_trim(0);
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  file >> total >> resident;
  return static_cast<double>(resident) * 4096 / 1e6;
}

float first_element(const Session& s, std::int64_t rows, float value) {
  Tensor x(DataType::float32, {rows, 64});
  for (float& v : x.mutable_values<float>()) v = value;
  const NamedValues out = s.run({{"x", x}});
  const Tensor& z = out.tensor("z");
  EXPECT_EQ(z.shape(), (Shape{rows, 64}));
  return z.values<float>().back();
}

TEST_F(VendorLibraries, OpeningAgainAndAgainIsFlatInMemory) {
  const auto once = [&] {
    const Session s = open(kModel);
    EXPECT_NEAR(first_element(s, 3, 1.0F), 0.64F, 1e-5F);
  };
  for (int i = 0; i < 20; ++i) once();
  const double before = resident_mb();
  for (int i = 0; i < 100; ++i) once();
  // A leak of one session's weights alone would be 1.6 MB; of its objects, tens of megabytes.
  EXPECT_LT(resident_mb() - before, 8.0);
}

TEST_F(VendorLibraries, ManyThreadsAndShapesAtOnce) {
  const Session s = open(kModel);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const auto value = static_cast<float>(t * 100 + i);
        EXPECT_NEAR(first_element(s, 1 + (i + t) % 5, value), 0.64F * value, 1e-3F * (1 + value));
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST_F(VendorLibraries, ADeadlineEndsARunAndTheSessionStaysUsable) {
  const Session s = open(kModel);
  Tensor x(DataType::float32, {200000, 64});
  for (float& v : x.mutable_values<float>()) v = 1.0F;
  RunOptions hurry;
  hurry.timeout = std::chrono::milliseconds(1);
  testing::error_of(ErrorCode::deadline_exceeded, [&] { s.run({{"x", x}}, hurry); });
  EXPECT_NEAR(first_element(s, 2, 1.0F), 0.64F, 1e-5F);
}

// Runs that end early leave their requests behind, so that new ones are made beside runs of other shapes.
TEST_F(VendorLibraries, DeadlinesOfManyThreadsAtOnce) {
  for (int round = 0; round < 3; ++round) {
    const Session s = open(kModel);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 5; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(5U * static_cast<unsigned>(round) + t);
        for (int i = 0; i < 40; ++i) {
          RunOptions hurry;
          hurry.timeout = std::chrono::milliseconds(1 + random() % 4);
          try {
            s.run({{"x", Tensor(DataType::float32, {static_cast<std::int64_t>(1 + random() % 30000), 64})}}, hurry);
          } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::deadline_exceeded) << e.what();
          }
        }
      });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_NEAR(first_element(s, 2, 1.0F), 0.64F, 1e-5F);
  }
}

}  // namespace
}  // namespace sdx
