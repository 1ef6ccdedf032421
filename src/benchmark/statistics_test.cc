#include "benchmark/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sdx/runner.hpp>

#include "base/splitmix64.h"

namespace sdx::benchmark {
namespace {

using Verdict = DiffEntry::Verdict;

// Expected p-values and U: scipy.stats.mannwhitneyu(a, b, alternative="two-sided"), method "exact" without ties, else
// "asymptotic" with continuity correction.
TEST(MannWhitney, AgreesWithSciPy) {
  const std::vector<double> low{1, 2, 3, 4, 5};
  const std::vector<double> high{6, 7, 8, 9, 10};
  EXPECT_DOUBLE_EQ(mann_whitney(low, high).u, 0);
  EXPECT_NEAR(mann_whitney(low, high).p, 0.007936507936507936, 1e-12);
  EXPECT_NEAR(mann_whitney(high, low).p, 0.007936507936507936, 1e-12);
  const std::vector<double> a{19, 22, 16, 29, 24};
  const std::vector<double> b{20, 11, 17, 12};
  EXPECT_DOUBLE_EQ(mann_whitney(a, b).u, 17);
  EXPECT_NEAR(mann_whitney(a, b).p, 0.1111111111111111, 1e-12);
  const std::vector<double> tied_a{1, 2, 2, 3, 4, 4};
  const std::vector<double> tied_b{2, 4, 5, 5, 6};
  EXPECT_DOUBLE_EQ(mann_whitney(tied_a, tied_b).u, 5);
  EXPECT_NEAR(mann_whitney(tied_a, tied_b).p, 0.07655084936985347, 1e-9);
}

TEST(MannWhitney, SaysNothingWithoutData) {
  EXPECT_EQ(mann_whitney({}, std::vector<double>{1, 2}).p, 1);
  EXPECT_EQ(mann_whitney(std::vector<double>(30, 2.0), std::vector<double>(30, 2.0)).p, 1);
}

TEST(Statistics, MatchesHandCalculation) {
  const Statistics s = summarize({4, 1, 3, 2, 5});
  EXPECT_EQ(s.latencies_ms, (std::vector<double>{4, 1, 3, 2, 5}));
  EXPECT_DOUBLE_EQ(s.mean_ms, 3);
  EXPECT_DOUBLE_EQ(s.std_ms, std::sqrt(2.5));
  EXPECT_DOUBLE_EQ(s.p50_ms, 3);
  EXPECT_DOUBLE_EQ(s.p90_ms, 4.6);
  EXPECT_DOUBLE_EQ(s.min_ms, 1);
  EXPECT_DOUBLE_EQ(s.max_ms, 5);
  EXPECT_DOUBLE_EQ(s.coefficient_of_variation, std::sqrt(2.5) / 3);
  EXPECT_DOUBLE_EQ(summarize({7}).p99_ms, 7);
  EXPECT_DOUBLE_EQ(summarize({7}).std_ms, 0);
  EXPECT_DOUBLE_EQ(summarize({}).mean_ms, 0);
}

TEST(Blocks, AreRoundsOrEqualParts) {
  const std::vector<double> times{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const std::vector<std::size_t> rounds{2, 2, 2, 2, 2};
  EXPECT_EQ(blocks(times, rounds).size(), 5U);
  EXPECT_EQ(blocks(times, rounds)[4], (std::vector<double>{9, 10}));
  EXPECT_EQ(blocks(times, std::vector<std::size_t>{5, 5}).size(), 5U);  // too few rounds: parts of two
  EXPECT_EQ(blocks(times, std::vector<std::size_t>{2, 2, 2, 2, 9}).size(), 5U);
  EXPECT_EQ(blocks(std::vector<double>{7}, {}).size(), 1U);
  EXPECT_TRUE(blocks({}, {}).empty());
}

TEST(Summary, CountsOutliersAndBoundsTheMedian) {
  std::vector<double> times;
  SplitMix64 random(1);
  for (int i = 0; i < 200; ++i) times.push_back(10 + random.normal() * 0.1);
  times[17] = 50;
  times[90] = 40;
  const Statistics s = summarize(times);
  EXPECT_GE(s.outliers_mad, 2);
  EXPECT_LE(s.outliers_mad, 5);
  EXPECT_GE(s.outliers_iqr, 2);
  EXPECT_LE(s.median_low_ms, s.p50_ms);
  EXPECT_GE(s.median_high_ms, s.p50_ms);
  EXPECT_LT(s.median_high_ms - s.median_low_ms, 0.2);
  EXPECT_GT(s.median_high_ms, s.median_low_ms);
  EXPECT_EQ(summarize(times).median_low_ms, s.median_low_ms);
}

TEST(Summary, HasNoIntervalWhereThereAreTooFewRuns) {
  std::vector<double> times;
  for (std::size_t n = 1; n < kRunsForInterval; ++n) {
    times.push_back(1 + 0.1 * static_cast<double>(n * 7 % 5));
    EXPECT_FALSE(has_interval(summarize(times))) << n;
  }
  times.push_back(1);
  EXPECT_TRUE(has_interval(summarize(times)));
  EXPECT_FALSE(has_interval(summarize({})));
  // Rounds and processes of one run each are independent values too.
  const std::vector<double> five{1.1, 1.2, 1.3, 1.4, 1.5};
  const std::vector<std::size_t> ones(5, 1);
  EXPECT_TRUE(has_interval(summarize(five, ones)));
  EXPECT_TRUE(has_interval(summarize(five, {}, ones)));
  EXPECT_FALSE(has_interval(summarize(five, {}, std::vector<std::size_t>{2, 3})));
}

TEST(Summary, IntervalsHoldTheMedianAboutAsOftenAsTheySay) {
  for (const std::size_t processes : {5U, 10U, 20U}) {
    int holds = 0;
    constexpr int kTries = 200;
    for (std::uint64_t i = 0; i < kTries; ++i) {
      SplitMix64 random(i);
      std::vector<double> times;
      for (std::size_t p = 0; p < processes; ++p) {
        const double offset = 0.1 * random.normal();  // processes differ by more than their runs
        for (int k = 0; k < 5; ++k) times.push_back(10 + offset + 0.02 * random.normal());
      }
      const Statistics s = summarize(times, {}, std::vector<std::size_t>(processes, 5));
      holds += s.median_low_ms <= 10 && 10 <= s.median_high_ms ? 1 : 0;
    }
    // A percentile bootstrap of few values is a little too narrow.
    EXPECT_GE(holds, 0.85 * kTries) << processes;
  }
}

// A benchmark as machines make them: neighbouring times resemble each other, whole runs are a little off, some times are far off.
BenchRun simulated(double factor, std::uint64_t seed) {
  SplitMix64 random(seed);
  BenchRun run;
  BenchResult& r = run.results.emplace_back();
  r.backend = "cpu";
  const double offset = 1 + 0.01 * random.normal();
  double drift = 0;
  std::vector<double> times;
  std::vector<std::size_t> rounds(10, 10);
  for (int i = 0; i < 100; ++i) {
    drift = 0.95 * drift + 0.01 * random.normal();
    const double spike = random.uniform() < 0.05 ? 1 + random.exponential() : 1;
    times.push_back(5 * factor * offset * (1 + drift) * spike * (1 + 0.01 * std::abs(random.normal())));
    IterationRecord it;
    it.round = i / 10;
    r.iterations.push_back(it);
  }
  r.statistics = summarize(std::move(times), rounds);
  return run;
}

TEST(Diff, IsQuietOnRerunsAndFindsTenPercent) {
  int alarms = 0;
  int found = 0;
  int faster = 0;
  constexpr int kPairs = 200;
  for (std::uint64_t i = 0; i < kPairs; ++i) {
    const BenchRun base = simulated(1, 3 * i);
    alarms += diff(base, simulated(1, 3 * i + 1)).entries[0].verdict != Verdict::neutral ? 1 : 0;
    found += diff(base, simulated(1.10, 3 * i + 2)).entries[0].verdict == Verdict::regression ? 1 : 0;
    faster += diff(simulated(1.10, 3 * i + 2), base).entries[0].verdict == Verdict::improvement ? 1 : 0;
  }
  EXPECT_LT(alarms, kPairs * 5 / 100);
  EXPECT_GT(found, kPairs * 80 / 100);
  EXPECT_GT(faster, kPairs * 80 / 100);
}

// The same with processes that differ by `spread`, on a machine of that speed.
BenchRun in_processes(double factor, double machine, double spread, std::uint64_t seed) {
  SplitMix64 random(seed);
  BenchRun run;
  BenchResult& r = run.results.emplace_back();
  r.backend = "cpu";
  std::vector<double> times;
  for (int process = 0; process < 5; ++process) {
    const double offset = std::exp(spread * random.normal());
    for (int i = 0; i < 40; ++i) {
      const double spike = random.uniform() < 0.05 ? 1 + random.exponential() : 1;
      times.push_back(5 * factor * machine * offset * spike * (1 + 0.01 * std::abs(random.normal())));
      IterationRecord it;
      it.round = 2 * process + i / 20;
      it.process = process;
      r.iterations.push_back(it);
    }
    std::vector<double> own(times.end() - 40, times.end());
    std::sort(own.begin(), own.end());
    ProcessRecord p;
    p.median_ms = percentile(own, 50);
    p.fast_ms = percentile(own, 10);
    p.compute_ms = 0.3 * machine * std::exp(0.003 * random.normal());
    p.memory_ms = 0.4 * machine * std::exp(0.003 * random.normal());
    r.processes.push_back(p);
  }
  r.statistics.latencies_ms = std::move(times);
  return run;
}

TEST(Diff, GoesByProcessesAndByTheSpeedOfTheMachine) {
  int alarms = 0;
  int slow_machine = 0;
  int found = 0;
  constexpr int kPairs = 300;
  for (std::uint64_t i = 0; i < kPairs; ++i) {
    // Processes of one program 5 % apart: with the runs taken as independent this were an alarm every other time.
    const BenchRun base = in_processes(1, 1, 0.05, 5 * i);
    alarms += diff(base, in_processes(1, 1, 0.05, 5 * i + 1)).entries[0].verdict != Verdict::neutral ? 1 : 0;
    const BenchRun steady = in_processes(1, 1, 0.01, 5 * i + 2);
    slow_machine += diff(steady, in_processes(1, 1.2, 0.01, 5 * i + 3)).entries[0].verdict != Verdict::neutral ? 1 : 0;
    found += diff(steady, in_processes(1.1, 1, 0.01, 5 * i + 4)).entries[0].verdict == Verdict::regression ? 1 : 0;
  }
  EXPECT_LT(alarms, kPairs * 5 / 100);
  EXPECT_LT(slow_machine, kPairs * 5 / 100);
  EXPECT_GT(found, kPairs * 95 / 100);
}

// Rounds, a share of which meet a neighbour that empties the caches: they take up to 40 % longer, and so does reading memory.
BenchRun in_rounds(double factor, double disturbed, std::uint64_t seed) {
  SplitMix64 random(seed);
  BenchRun run = in_processes(factor, 1, 0.05, seed);
  for (int i = 0; i < 20; ++i) {
    const double slow = random.uniform() < disturbed ? 1.1 + 0.3 * random.uniform() : 1;
    RoundRecord r;
    r.process = i / 4;
    r.fast_ms = 5 * factor * slow * (1 + 0.005 * random.normal());
    r.median_ms = 1.05 * r.fast_ms;
    r.compute_ms = 0.5 * (1 + 0.005 * std::abs(random.normal()));
    r.memory_ms = 0.2 * (slow > 1 ? 1.6 : 1) * (1 + 0.02 * std::abs(random.normal()));
    run.results[0].rounds.push_back(r);
  }
  return run;
}

TEST(Diff, ComparesQuietRoundsWithQuietOnes) {
  int alarms = 0;
  int found = 0;
  constexpr int kPairs = 300;
  for (std::uint64_t i = 0; i < kPairs; ++i) {
    const BenchRun base = in_rounds(1, 0.5, 3 * i);
    alarms += diff(base, in_rounds(1, 0.2, 3 * i + 1)).entries[0].verdict != Verdict::neutral ? 1 : 0;
    found += diff(base, in_rounds(1.1, 0.5, 3 * i + 2)).entries[0].verdict == Verdict::regression ? 1 : 0;
  }
  EXPECT_LT(alarms, kPairs * 5 / 100);
  EXPECT_GT(found, kPairs * 90 / 100);
  const DiffEntry e = diff(in_rounds(1, 0.5, 1), in_rounds(1.1, 0.5, 2)).entries[0];
  EXPECT_GT(e.quiet_rounds, 8);
  EXPECT_LT(e.quiet_rounds, 40);
  EXPECT_NEAR(e.change_percent, 10, 1.5);
  // If one side has no quiet rounds, everything is compared.
  EXPECT_EQ(diff(in_rounds(1, 0, 1), in_rounds(1, 1, 2)).entries[0].quiet_rounds, 0);
}

TEST(Diff, SaysWhenTheMachineExplainsAChange) {
  const DiffEntry e = diff(in_processes(1, 1, 0.005, 1), in_processes(1, 1.2, 0.005, 2)).entries[0];
  EXPECT_EQ(e.verdict, Verdict::neutral);
  EXPECT_NEAR(e.machine_percent, 20, 2);
  EXPECT_NE(e.why.find("the machine itself"), std::string::npos);
  // A slower machine hides nothing that goes beyond it.
  EXPECT_EQ(diff(in_processes(1, 1, 0.005, 1), in_processes(1.2, 1.1, 0.005, 2)).entries[0].verdict, Verdict::regression);
}

// Twenty short processes on a machine that others use: a third of them undisturbed, the rest slower by up to 60 %.
BenchRun in_many_processes(double factor, double machine, std::uint64_t seed) {
  SplitMix64 random(seed);
  BenchRun run;
  BenchResult& r = run.results.emplace_back();
  r.backend = "cpu";
  for (int process = 0; process < 20; ++process) {
    const double disturbed = random.uniform() < 0.65 ? 1 + 0.6 * random.uniform() : 1;
    ProcessRecord p;
    p.fast_ms = 5 * factor * machine * disturbed * (1 + 0.004 * std::abs(random.normal()));
    p.median_ms = 1.1 * p.fast_ms;
    r.processes.push_back(p);
    RoundRecord round;
    round.process = process;
    round.compute_ms = 0.5 * machine * (1 + 0.01 * std::abs(random.normal()));
    round.memory_ms = 0.2 * machine * disturbed * (1 + 0.03 * std::abs(random.normal()));
    r.rounds.push_back(round);
    r.statistics.latencies_ms.push_back(p.median_ms);
  }
  return run;
}

TEST(Diff, ComparesTheFastestOfManyProcesses) {
  int alarms = 0;
  int found = 0;
  int faster = 0;
  int machine = 0;
  constexpr int kPairs = 50;
  for (std::uint64_t i = 0; i < kPairs; ++i) {
    const BenchRun base = in_many_processes(1, 1, 4 * i);
    const BenchRun slow = in_many_processes(1.1, 1, 4 * i + 1);
    alarms += diff(base, in_many_processes(1, 1, 4 * i + 2)).entries[0].verdict != Verdict::neutral ? 1 : 0;
    machine += diff(base, in_many_processes(1, 1.3, 4 * i + 3)).entries[0].verdict != Verdict::neutral ? 1 : 0;
    found += diff(base, slow).entries[0].verdict == Verdict::regression ? 1 : 0;
    faster += diff(slow, base).entries[0].verdict == Verdict::improvement ? 1 : 0;
  }
  EXPECT_LE(alarms, 1);
  EXPECT_LE(machine, 1);
  EXPECT_GT(found, kPairs * 90 / 100);
  EXPECT_GT(faster, kPairs * 90 / 100);
  const DiffEntry e = diff(in_many_processes(1, 1, 1), in_many_processes(1.1, 1, 2)).entries[0];
  EXPECT_NEAR(e.change_percent, 10, 1.5);
  EXPECT_NEAR(e.base_ms, 5, 0.05);
  EXPECT_LT(e.low_percent, e.change_percent);
  EXPECT_EQ(e.why, "fastest of 20 and 20 processes");
}

TEST(Statistics, TheLowestValuesAreTestedByPermutation) {
  std::vector<double> a, b, c;
  for (int i = 0; i < 20; ++i) {
    a.push_back(1 + 0.01 * i);
    b.push_back(i < 10 ? 1.2 + 0.01 * i : 1 + 0.01 * (i - 10));  // its fastest are those of `a`
    c.push_back(1.5 + 0.01 * i);
  }
  EXPECT_GT(mann_whitney_of_lowest(a, b).p, 0.5);
  EXPECT_LT(mann_whitney_of_lowest(a, c).p, 0.03);  // 2 C(34,14) / C(40,20) = 0.02
  EXPECT_EQ(mann_whitney_of_lowest(a, c).u, 0);
  EXPECT_EQ(mann_whitney_of_lowest(c, a).u, 36);
  EXPECT_EQ(mann_whitney_of_lowest(a, a).p, 1);
  EXPECT_EQ(mann_whitney_of_lowest({}, a).p, 1);
  EXPECT_DOUBLE_EQ(second_lowest({3, 1, 2}), 2);
}

TEST(Statistics, KnowsStudentsQuantiles) {
  EXPECT_NEAR(student_95(1), 12.706, 0.001);
  EXPECT_NEAR(student_95(7), 2.3646, 0.003);
  EXPECT_NEAR(student_95(20), 2.0860, 0.003);
  EXPECT_NEAR(student_95(1e9), 1.96, 0.001);
  const double a[] = {1, 1, 1};
  const double b[] = {2, 2, 2};
  const LogChange c = log_change(a, b, 0);
  EXPECT_DOUBLE_EQ(c.change, std::log(2));
  EXPECT_DOUBLE_EQ(c.low, c.high);
  const double wide[] = {1.8, 2, 2.2};
  // t = 4.3027 with two degrees of freedom (one side does not vary).
  const LogChange w = log_change(a, wide, 0);
  EXPECT_NEAR((w.high - w.low) / 2, 4.3027 * 0.1005 / std::sqrt(3), 0.003);
}

TEST(Diff, PairsSettingsAndNamesWhatIsMissing) {
  BenchRun base = simulated(1, 1);
  BenchRun current = simulated(1, 1);
  base.results.push_back(base.results[0]);
  base.results[1].batch = 4;
  current.results.push_back(current.results[0]);
  current.results[1].batch = 8;
  Diff d = diff(base, current);
  ASSERT_EQ(d.entries.size(), 3U);
  EXPECT_EQ(d.entries[0].verdict, Verdict::neutral);
  EXPECT_EQ(d.entries[1].verdict, Verdict::missing);
  EXPECT_EQ(d.entries[1].why, "not in the base");
  EXPECT_EQ(d.entries[2].why, "only in the base");
  EXPECT_FALSE(d.regressed());
  current.results[1].batch = 4;
  current.results[1].error = "no such device";
  d = diff(base, current);
  EXPECT_EQ(d.entries[1].why, "now: no such device");
}

TEST(Diff, RefusesWhatCannotBeCompared) {
  BenchRun base = simulated(1, 1), current = simulated(1, 1);
  current.results[0].batch = 8;
  EXPECT_THROW(diff(base, current), Error);
  current = base;
  current.model = "other.onnx";
  base.model = "m.onnx";
  EXPECT_THROW(diff(base, current), Error);
  DiffOptions options;
  options.different_models = true;
  EXPECT_EQ(diff(base, current, options).entries.size(), 1U);
}

TEST(Diff, RefusesThresholdsThatMakeNoSense) {
  const BenchRun run = simulated(1, 1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(diff(run, run, {nan, 0.05}), Error);
  EXPECT_THROW(diff(run, run, {-1, 0.05}), Error);
  EXPECT_THROW(diff(run, run, {5, 0}), Error);
  EXPECT_THROW(diff(run, run, {5, nan}), Error);
}

}  // namespace
}  // namespace sdx::benchmark
