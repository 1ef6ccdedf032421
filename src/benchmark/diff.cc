// Two benchmarks compared.
//
// On a shared machine, processes of one program differ by tens of percent, but each benchmark has some that nothing disturbed.
// With enough processes, the fast end of the fastest ones is compared: over 20 short processes it varies by less than 1 %, and
// the medians by 30 %.
//
// With fewer processes (models that take long to open, older files): Times of one process resemble each other: they share the
// layout of its memory and what the machine did meanwhile. Two processes of the same program differ by more than their runs do.
// So the medians of processes are compared (Welch's interval, rank test); where a file has fewer than three processes, those of
// rounds. All processes of one benchmark may have met a slow machine: each times a fixed piece of work next to its runs, and a
// change counts only if it exceeds the threshold both with and without the slowdown of that work. The fast end of the times (the
// 10th percentile, which other processes disturb least) has to have moved the same way.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "base/error.h"
#include "benchmark/statistics.h"

namespace sdx::benchmark {
namespace {

using Verdict = DiffEntry::Verdict;

std::vector<double> medians(const std::vector<std::vector<double>>& blocks) {
  std::vector<double> out;
  for (const auto& b : blocks) out.push_back(median(b));
  return out;
}

// The factor by which intervals are too narrow because neighbouring rounds resemble each other: the standard error of a mean of
// values with first autocorrelation r grows by sqrt((1 + r) / (1 - r)) (Bayley and Hammersley 1946).
double inflation(const std::vector<double>& m) {
  if (m.size() < 5) return 1;
  double mean = 0;
  for (const double v : m) mean += v / static_cast<double>(m.size());
  double own = 0;
  double next = 0;
  for (std::size_t i = 0; i < m.size(); ++i) {
    own += (m[i] - mean) * (m[i] - mean);
    if (i > 0) next += (m[i] - mean) * (m[i - 1] - mean);
  }
  const double r = own > 0 ? std::clamp(next / own, 0.0, 0.8) : 0;
  return std::sqrt((1 + r) / (1 - r));
}

double fast_end(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return percentile(times, 10);
}

bool same_setting(const BenchResult& a, const BenchResult& b) {
  return a.backend == b.backend && a.threads == b.threads && a.batch == b.batch && a.clients == b.clients && a.rate == b.rate;
}

DiffEntry entry_of(const BenchResult& r) {
  DiffEntry e;
  e.backend = r.backend;
  e.threads = r.threads;
  e.batch = r.batch;
  return e;
}

// The comparison of the medians of processes, or of rounds if there are too few processes.
struct Evidence {
  std::vector<double> base, current;     // independent values of a side
  double change = 0, low = 0, high = 0;  // of the ratio current / base
  bool of_processes = false;
  int quiet_rounds = 0, all_rounds = 0;  // the number of quiet processes that this is based on; 0: all were used
};

std::vector<double> process_values(const BenchResult& r, double ProcessRecord::*field) {
  std::vector<double> out;
  for (const ProcessRecord& p : r.processes) {
    if (p.*field > 0) out.push_back(p.*field);
  }
  return out;
}

Evidence evidence_of(const BenchResult& base, const BenchResult& current) {
  constexpr std::size_t kFewest = 3;
  // The difference between two benchmarks of the same program beyond that between their own processes: they are minutes apart.
  constexpr double kBetweenBenchmarks = 0.01;
  Evidence e;
  e.base = process_values(base, &ProcessRecord::median_ms);
  e.current = process_values(current, &ProcessRecord::median_ms);
  if (e.base.size() >= kFewest && e.current.size() >= kFewest) {
    const LogChange change = log_change(e.base, e.current, kBetweenBenchmarks);
    e.of_processes = true;
    e.change = median(e.current) / median(e.base);
    // Centred on the ratio that is shown.
    e.low = e.change * std::exp(change.low - change.change);
    e.high = e.change * std::exp(change.high - change.change);
    return e;
  }
  const auto a = blocks(base.statistics.latencies_ms, lengths_by(base.iterations, &IterationRecord::round));
  const auto b = blocks(current.statistics.latencies_ms, lengths_by(current.iterations, &IterationRecord::round));
  e.base = medians(a);
  e.current = medians(b);
  e.change = median(current.statistics.latencies_ms) / median(base.statistics.latencies_ms);
  const Interval ratio = ratio_interval(a, b);
  const double wider = std::max(inflation(e.base), inflation(e.current));
  e.low = e.change + wider * (ratio.low - e.change);
  e.high = e.change + wider * (ratio.high - e.change);
  return e;
}

// The rounds in which the machine was at its best: the fixed piece of work took hardly longer than in the best round of both
// sides.
std::vector<RoundRecord> quiet_rounds(const BenchResult& r, double compute_ms, double memory_ms) {
  std::vector<RoundRecord> out;
  for (const RoundRecord& round : r.rounds) {
    if (round.compute_ms > 0 && round.compute_ms <= compute_ms && round.memory_ms <= memory_ms && round.fast_ms > 0)
      out.push_back(round);
  }
  return out;
}

// One value for each process that has quiet rounds; for each round where fewer than three processes have.
std::vector<double> independent_values(const std::vector<RoundRecord>& rounds, bool by_process) {
  std::map<int, std::vector<double>> groups;
  int next = 0;
  for (const RoundRecord& r : rounds) groups[by_process ? r.process : next++].push_back(r.fast_ms);
  std::vector<double> out;
  for (auto& [key, values] : groups) out.push_back(median(std::move(values)));
  return out;
}

// Nothing where one side has too few quiet rounds.
std::optional<Evidence> quiet_evidence(const BenchResult& base, const BenchResult& current) {
  constexpr double kCompute = 1.04, kMemory = 1.15;  // of the best round: the usual variation on an idle machine
  constexpr std::size_t kFewestRounds = 4, kFewestProcesses = 3;
  constexpr double kBetweenBenchmarks = 0.01;
  double compute = std::numeric_limits<double>::max();
  double memory = compute;
  for (const auto* side : {&base, &current}) {
    for (const RoundRecord& r : side->rounds) {
      if (r.compute_ms <= 0 || r.memory_ms <= 0) continue;
      compute = std::min(compute, r.compute_ms);
      memory = std::min(memory, r.memory_ms);
    }
  }
  const auto a = quiet_rounds(base, kCompute * compute, kMemory * memory);
  const auto b = quiet_rounds(current, kCompute * compute, kMemory * memory);
  if (a.size() < kFewestRounds || b.size() < kFewestRounds) return std::nullopt;
  Evidence e;
  e.of_processes =
      independent_values(a, true).size() >= kFewestProcesses && independent_values(b, true).size() >= kFewestProcesses;
  e.base = independent_values(a, e.of_processes);
  e.current = independent_values(b, e.of_processes);
  e.quiet_rounds = static_cast<int>(a.size() + b.size());
  e.all_rounds = static_cast<int>(base.rounds.size() + current.rounds.size());
  const LogChange change = log_change(e.base, e.current, kBetweenBenchmarks);
  e.change = median(e.current) / median(e.base);
  e.low = e.change * std::exp(change.low - change.change);
  e.high = e.change * std::exp(change.high - change.change);
  return e;
}

constexpr std::size_t kEnoughProcesses = 8;

// The fastest processes of each side; nothing where one side has too few.
std::optional<Evidence> fastest_evidence(const BenchResult& base, const BenchResult& current) {
  Evidence e;
  e.base = process_values(base, &ProcessRecord::fast_ms);
  e.current = process_values(current, &ProcessRecord::fast_ms);
  if (e.base.size() < kEnoughProcesses || e.current.size() < kEnoughProcesses) return std::nullopt;
  e.of_processes = true;
  e.change = second_lowest(e.current) / second_lowest(e.base);
  const Interval ratio = fastest_interval(e.base, e.current);
  e.low = ratio.low;
  e.high = ratio.high;
  return e;
}

double lowest(const BenchResult& r, double RoundRecord::*field) {
  double out = std::numeric_limits<double>::max();
  for (const RoundRecord& round : r.rounds) {
    if (round.*field > 0) out = std::min(out, round.*field);
  }
  return out;
}

// The factor by which the machine was slower (or faster) even at its best during `current`. 1 if the difference is unknown or
// within the variation of the fixed work at rest: 3 % for arithmetic and 15 % for memory.
double best_machine_change(const BenchResult& base, const BenchResult& current, bool slower) {
  constexpr double kCompute = 1.03, kMemory = 1.15;
  if (base.rounds.empty() || current.rounds.empty()) return 1;
  double out = 1;
  for (const auto& [field, noise] :
       {std::pair{&RoundRecord::compute_ms, kCompute}, std::pair{&RoundRecord::memory_ms, kMemory}}) {
    const double ratio = lowest(current, field) / lowest(base, field);
    if (slower && ratio > noise) out = std::max(out, ratio);
    if (!slower && ratio < 1 / noise) out = std::min(out, ratio);
  }
  return out;
}

double fast_change(const BenchResult& base, const BenchResult& current) {
  const auto a = process_values(base, &ProcessRecord::fast_ms);
  const auto b = process_values(current, &ProcessRecord::fast_ms);
  if (!a.empty() && !b.empty()) return median(b) / median(a);
  return fast_end(current.statistics.latencies_ms) / fast_end(base.statistics.latencies_ms);
}

// The factor by which the fixed work took longer during `current` than during `base`. Of arithmetic and reading memory, the one
// that explains more of a change in this direction counts. 1 if it is unknown.
double machine_change(const BenchResult& base, const BenchResult& current, bool slower) {
  double out = 1;
  for (double ProcessRecord::*field : {&ProcessRecord::compute_ms, &ProcessRecord::memory_ms}) {
    const auto a = process_values(base, field);
    const auto b = process_values(current, field);
    if (a.empty() || b.empty()) continue;
    const double ratio = median(b) / median(a);
    out = slower ? std::max(out, ratio) : std::min(out, ratio);
  }
  return out;
}

double percent(double ratio) { return 100 * (ratio - 1); }

bool overlap(const Evidence& e) {
  const auto [low_a, high_a] = std::minmax_element(e.base.begin(), e.base.end());
  const auto [low_b, high_b] = std::minmax_element(e.current.begin(), e.current.end());
  return *low_a <= *high_b && *low_b <= *high_a;
}

// Decides a change if the machine was never at rest: whether the machine explains it.
void judge_noisy(DiffEntry& e, const BenchResult& base, const BenchResult& current, const DiffOptions& o) {
  const bool slower = e.change_percent > 0;
  const double machine = machine_change(base, current, slower);
  e.machine_percent = percent(machine);
  const double fast = percent(fast_change(base, current));
  const double rest = percent((1 + e.change_percent / 100) / machine);
  const double half = o.threshold_percent / 2;
  if (slower ? fast < half : fast > -half) {
    e.why = fmt::format("the fastest runs changed by {:+.1f} % only: a disturbed machine explains it", fast);
  } else if (slower ? rest <= o.threshold_percent : rest >= -o.threshold_percent) {
    e.why = fmt::format("the machine itself changed by {:+.1f} % (a fixed piece of work)", e.machine_percent);
  } else {
    e.verdict = slower ? Verdict::regression : Verdict::improvement;
    e.why = fmt::format("fastest runs {:+.1f} %", fast);
  }
}

void judge_fastest(DiffEntry& e, const Evidence& evidence, const BenchResult& base, const BenchResult& current,
                   const DiffOptions& o) {
  e.base_ms = second_lowest(evidence.base);
  e.current_ms = second_lowest(evidence.current);
  e.p_value = mann_whitney_of_lowest(evidence.base, evidence.current).p;
  const bool slower = e.change_percent > 0;
  const double machine = best_machine_change(base, current, slower);
  e.machine_percent = percent(machine);
  const double rest = percent((1 + e.change_percent / 100) / machine);
  if (std::abs(e.change_percent) <= o.threshold_percent) {
    e.why = fmt::format("within {:.4g} %", o.threshold_percent);
  } else if (e.p_value >= o.alpha) {
    e.why = "the fastest processes overlap: noise explains it";
  } else if (slower ? rest <= o.threshold_percent : rest >= -o.threshold_percent) {
    e.why = fmt::format("the machine itself, at its best, changed by {:+.1f} % (a fixed piece of work)", e.machine_percent);
  } else {
    e.verdict = slower ? Verdict::regression : Verdict::improvement;
    e.why = fmt::format("fastest of {} and {} processes", evidence.base.size(), evidence.current.size());
  }
}

void judge(DiffEntry& e, const BenchResult& base, const BenchResult& current, const DiffOptions& o) {
  e.base_ms = median(base.statistics.latencies_ms);
  e.current_ms = median(current.statistics.latencies_ms);
  if (!(e.base_ms > 0) || !(e.current_ms > 0)) {
    e.verdict = Verdict::missing;
    e.why = "a median is 0";
    return;
  }
  const std::optional<Evidence> fastest = fastest_evidence(base, current);
  const std::optional<Evidence> quiet = fastest ? std::nullopt : quiet_evidence(base, current);
  const Evidence evidence = fastest ? *fastest : quiet ? *quiet : evidence_of(base, current);
  e.quiet_rounds = evidence.quiet_rounds;
  e.change_percent = percent(evidence.change);
  e.low_percent = percent(evidence.low);
  e.high_percent = percent(evidence.high);
  if (fastest) return judge_fastest(e, evidence, base, current, o);
  e.p_value = mann_whitney(evidence.base, evidence.current).p;
  const bool slower = e.change_percent > 0;
  const double half = o.threshold_percent / 2;
  const std::string what = fmt::format("{}{}", quiet ? "quiet " : "", evidence.of_processes ? "processes" : "rounds");
  // The smallest p that so few values can have: with three and three none is below 0.1.
  const bool too_few = evidence.base.size() < 4 || evidence.current.size() < 4;
  if (std::abs(e.change_percent) <= o.threshold_percent) {
    e.why = fmt::format("within {:.4g} %", o.threshold_percent);
  } else if (e.p_value >= o.alpha && !(quiet && too_few && !overlap(evidence))) {
    e.why = too_few ? fmt::format("too few {} to decide", what) : fmt::format("{} overlap: noise explains it", what);
  } else if (slower ? e.low_percent < half : e.high_percent > -half) {
    e.why = fmt::format("the confidence interval reaches below {:.4g} %: noise explains it", half);
  } else if (quiet) {
    e.verdict = slower ? Verdict::regression : Verdict::improvement;
    e.why = fmt::format("in {} quiet of {} rounds", evidence.quiet_rounds, evidence.all_rounds);
  } else {
    judge_noisy(e, base, current, o);
  }
}

constexpr const char *kNotInBase = "not in the base", *kOnlyInBase = "only in the base";

std::vector<std::string> machine_notes(const MachineInfo& a, const MachineInfo& b) {
  std::vector<std::string> notes;
  if (!a.cpu.empty() && !b.cpu.empty() && a.cpu != b.cpu) {
    notes.push_back(fmt::format("measured on different processors: {} and {}", a.cpu, b.cpu));
  } else if (a.cores != 0 && b.cores != 0 && a.cores != b.cores) {
    notes.push_back(fmt::format("measured with {} and with {} cores", a.cores, b.cores));
  }
  return notes;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string text_of(const std::vector<BenchInput>& inputs) {
  std::string out;
  for (const BenchInput& i : inputs)
    out += fmt::format("{}{}: {}[{}]", out.empty() ? "" : ", ", i.name, i.dtype, fmt::join(i.shape, ","));
  return out;
}

constexpr const char* kAllTheSame = ". To compare them all the same: --different-models (DiffOptions::different_models)";

void check_same_model(const BenchRun& base, const BenchRun& current) {
  const bool hashed = !base.model_hash.empty() && !current.model_hash.empty();
  const bool named = !base.model.empty() && !current.model.empty();
  const bool same_name = !named || file_name(base.model) == file_name(current.model);
  if (hashed ? base.model_hash != current.model_hash : !same_name) {
    fail(ErrorCode::invalid_argument, "these are benchmarks of different models: '{}' and '{}'{}{}", base.model, current.model,
         same_name ? " have other contents" : "", kAllTheSame);
  }
}

void check_same_inputs(const BenchRun& base, const BenchRun& current) {
  if (base.inputs.empty() || current.inputs.empty()) return;
  const auto same_type = [](const BenchInput& a, const BenchInput& b) {
    return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape;
  };
  if (!std::equal(base.inputs.begin(), base.inputs.end(), current.inputs.begin(), current.inputs.end(), same_type)) {
    fail(ErrorCode::invalid_argument, "these are benchmarks with different inputs: {}, and {}{}", text_of(base.inputs),
         text_of(current.inputs), kAllTheSame);
  }
  for (std::size_t i = 0; i < base.inputs.size(); ++i) {
    const BenchInput& a = base.inputs[i];
    const BenchInput& b = current.inputs[i];
    if (a.values.empty() || b.values.empty() || a.values == b.values) continue;
    fail(ErrorCode::invalid_argument,
         "these are benchmarks with different inputs: the values of '{}' were {} in the base, {} in the other one{}", a.name,
         a.values, b.values, kAllTheSame);
  }
}

std::string settings_of(const BenchRun& run) {
  std::string out;
  for (const BenchResult& r : run.results) {
    out += fmt::format("{}{} (threads {}, batch {})", out.empty() ? "" : ", ", r.backend,
                       r.threads == 0 ? "auto" : std::to_string(r.threads), r.batch);
  }
  return out.empty() ? "nothing" : out;
}

// A comparison needs at least one pair of figures.
void check_common(const Diff& d, const BenchRun& base, const BenchRun& current) {
  const auto missing = [](const DiffEntry& e) { return e.verdict == Verdict::missing; };
  if (!std::all_of(d.entries.begin(), d.entries.end(), missing)) return;
  const auto paired = std::find_if(d.entries.begin(), d.entries.end(),
                                   [](const DiffEntry& e) { return e.why != kNotInBase && e.why != kOnlyInBase; });
  if (paired != d.entries.end()) {
    fail(ErrorCode::invalid_argument, "the benchmarks have no figures in common: {}: {}", paired->backend, paired->why);
  }
  fail(ErrorCode::invalid_argument, "the benchmarks have nothing in common: the base has {}, the other {}", settings_of(base),
       settings_of(current));
}

}  // namespace

}  // namespace sdx::benchmark

namespace sdx {

std::string_view name(DiffEntry::Verdict v) noexcept {
  switch (v) {
    case DiffEntry::Verdict::regression: return "REGRESSION";
    case DiffEntry::Verdict::improvement: return "IMPROVEMENT";
    case DiffEntry::Verdict::missing: return "MISSING";
    default: return "NEUTRAL";
  }
}

bool Diff::regressed() const noexcept {
  return std::any_of(entries.begin(), entries.end(),
                     [](const DiffEntry& e) { return e.verdict == DiffEntry::Verdict::regression; });
}

Diff diff(const BenchRun& base, const BenchRun& current, const DiffOptions& options) {
  if (!(options.threshold_percent >= 0) || !std::isfinite(options.threshold_percent)) {
    fail(ErrorCode::invalid_argument, "the threshold must be a number of percent that is not negative, received {}",
         options.threshold_percent);
  }
  if (!(options.alpha > 0 && options.alpha < 1)) {
    fail(ErrorCode::invalid_argument, "alpha must lie between 0 and 1, received {}", options.alpha);
  }
  if (!options.different_models) {
    benchmark::check_same_model(base, current);
    benchmark::check_same_inputs(base, current);
  }
  Diff d;
  d.base = base.model;
  d.current = current.model;
  d.options = options;
  d.notes = benchmark::machine_notes(base.machine, current.machine);
  std::vector<bool> used(base.results.size(), false);
  for (const BenchResult& c : current.results) {
    DiffEntry& e = d.entries.emplace_back(benchmark::entry_of(c));
    e.verdict = DiffEntry::Verdict::missing;
    e.why = benchmark::kNotInBase;
    for (std::size_t i = 0; i < base.results.size(); ++i) {
      const BenchResult& b = base.results[i];
      if (used[i] || !benchmark::same_setting(b, c)) continue;
      used[i] = true;
      if (!b.error.empty() || !c.error.empty()) {
        e.why = b.error.empty() ? "now: " + c.error : "in the base: " + b.error;
        e.why = e.why.substr(0, e.why.find('\n'));  // what follows is context
      } else {
        e.verdict = DiffEntry::Verdict::neutral;
        benchmark::judge(e, b, c, options);
      }
      break;
    }
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    DiffEntry& e = d.entries.emplace_back(benchmark::entry_of(base.results[i]));
    e.verdict = DiffEntry::Verdict::missing;
    e.why = benchmark::kOnlyInBase;
  }
  benchmark::check_common(d, base, current);
  return d;
}

}  // namespace sdx
