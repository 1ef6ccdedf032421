#include "serve/monitor/metrics.h"
#include "support/errors.h"

#include <gtest/gtest.h>

#include <limits>
#include <sdx/error.hpp>
#include <thread>

namespace sdx::serve {
namespace {

TEST(Metrics, WritesPrometheusText) {
  Metrics metrics;
  metrics.counter("requests_total", "Requests.\nAll of them.", {{"route", "/a \"b\"\\\n"}, {"status", "200"}}).add(3);
  metrics.counter("requests_total", "other", {{"route", "/c"}, {"status", "500"}}).add();
  Histogram& times = metrics.histogram("seconds", "Time.", {0.5, 1}, {{"model", "m"}});
  for (const double t : {0.25, 0.5, 0.75, 4.0}) times.observe(t);
  metrics.collect("queue", "Waiting.", "gauge", [] {
    return std::vector<Metrics::Sample>{{"", {{"model", "m"}}, 7}, {"", {}, 0.5}};
  });
  EXPECT_EQ(metrics.text(), R"(# HELP queue Waiting.
# TYPE queue gauge
queue{model="m"} 7
queue 0.5
# HELP requests_total Requests.\nAll of them.
# TYPE requests_total counter
requests_total{route="/a \"b\"\\\n",status="200"} 3
requests_total{route="/c",status="500"} 1
# HELP seconds Time.
# TYPE seconds histogram
seconds_bucket{model="m",le="0.5"} 2
seconds_bucket{model="m",le="1"} 3
seconds_bucket{model="m",le="+Inf"} 4
seconds_sum{model="m"} 5.5
seconds_count{model="m"} 4
)");
}

TEST(Metrics, WritesAllNumbers) {
  Metrics metrics;
  metrics.collect("x", "", "gauge", [] {
    return std::vector<Metrics::Sample>{{"a", {}, std::numeric_limits<double>::infinity()},
                                        {"b", {}, -std::numeric_limits<double>::infinity()},
                                        {"c", {}, std::numeric_limits<double>::quiet_NaN()},
                                        {"d", {}, 1e300},
                                        {"e", {}, 123456789012.0}};
  });
  EXPECT_NE(metrics.text().find("a +Inf\nb -Inf\nc NaN\nd 1e+300\ne 123456789012\n"), std::string::npos) << metrics.text();
}

TEST(Metrics, HaveOtherNames) {
  Metrics metrics;
  metrics.also_called("tokens", "vllm:tokens");
  EXPECT_EQ(metrics.text(), "");
  metrics.histogram("tokens", "", {1}).observe(0.5);
  testing::expect_parts(metrics.text(), {"vllm:tokens_bucket{le=\"1\"} 1\n", "\ntokens_count 1\n"});
  EXPECT_THROW(metrics.also_called("tokens", "a b"), Error);
}

TEST(Metrics, RefusesWhatNobodyCanRead) {
  Metrics metrics;
  EXPECT_THROW(metrics.counter("a b", ""), Error);
  EXPECT_THROW(metrics.counter("0a", ""), Error);
  EXPECT_THROW(metrics.counter("a", "", {{"b-c", ""}}), Error);
  metrics.counter("a", "");
  EXPECT_THROW(metrics.histogram("a", "", {1}), Error);
}

TEST(Metrics, ThreadsCountTogether) {
  Metrics metrics;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        metrics.counter("n", "", {{"i", std::to_string(i % 3)}}).add();
        metrics.histogram("h", "", {1, 2}).observe(i % 3);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  double sum = 0;
  for (int i = 0; i < 3; ++i) sum += metrics.counter("n", "", {{"i", std::to_string(i)}}).value();
  EXPECT_EQ(sum, 4000);
  EXPECT_NE(metrics.text().find("h_count 4000\n"), std::string::npos);
}

}  // namespace
}  // namespace sdx::serve
