// The coordinator: combinations of backend, threads and batch size, each a Cell, taking turns.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/suggest.h"
#include "base/system/fork.h"
#include "base/system/processes/usage.h"
#include "benchmark/cell.h"
#include "benchmark/machine.h"
#include "benchmark/machine_limits.h"
#include "benchmark/model_hash.h"
#include "benchmark/statistics.h"
#include "inputs/input_plan.h"
#include "providers/interface/provider.h"

namespace sdx::benchmark {
namespace {

// A combination and its results.
struct Slot {
  BenchResult result;
  std::unique_ptr<Cell> cell;
  const inputs::InputPlan* plan = nullptr;
  std::vector<double> latencies;
  std::vector<std::size_t> rounds;
  std::int64_t iterations = 0, measured = 0, wall_ns = 0, preempted = 0;
  // The record of the present process.
  ProcessRecord process;
  std::vector<double> process_latencies, compute_ms, memory_ms;
  bool first_run = false;
  double warmup_ms = 0;

  bool alive() const { return cell != nullptr; }
};

void fail_slot(Slot& slot, const CellError& e) {
  slot.cell.reset();
  slot.result.error = e.message;
  slot.result.error_code = e.code;
  if (slot.plan->overridden && e.code != "provider_unavailable" && e.code != "crashed") {
    slot.result.error =
        fmt::format("the model declares its batch size and does not run at {}: {}. Export it with an open first axis",
                    slot.plan->batch, e.message);
  }
}

class Bench {
 public:
  Bench(const BenchOptions& options, std::vector<ValueSpec> specs) : o_(options), specs_(std::move(specs)) {}

  BenchRun run();

 private:
  void make_slots();
  void measure_in_processes(const std::vector<Slot*>& slots);
  void begin(Slot& slot);
  void measure_rounds(const std::vector<Slot*>& slots, int first, int end);
  void turn(Slot& slot, int round);
  void record(Slot& slot, const Load& load, int round, bool warmup);
  void finish(Slot& slot);
  void complete(Slot& slot);
  void add_notes(Slot& slot) const;
  int rounds() const;
  int processes() const;
  void add_machine_notes(std::vector<std::string>& notes) const;
  void progress(const std::string& what);
  CellOptions cell_options(const Slot& slot, std::size_t index) const;

  const BenchOptions& o_;
  std::vector<ValueSpec> specs_;
  std::vector<inputs::InputPlan> plans_;
  std::vector<Slot> slots_;
  bool isolate_ = true;
  int process_ = 0, processes_ = 1;  // the current one, and how many there will be
  std::int64_t zero_ns_ = 0;
  int steps_done_ = 0;
  double lowest_mhz_ = 0, highest_mhz_ = 0;
};

int Bench::rounds() const {
  if (o_.rounds > 0) return o_.duration_s > 0 ? o_.rounds : std::min(o_.rounds, o_.runs);
  // Short, so that some fall between two disturbances of the machine.
  if (o_.duration_s > 0) return std::max(kUsualRounds, o_.processes);
  // A round should have a few runs, and there should be rounds enough to compare; each process needs one.
  const int usual =
      o_.runs < 3 * kUsualRounds ? std::clamp(o_.runs / 3, 1, kUsualRounds / 2) : std::min(o_.runs / 3, kUsualRounds);
  return std::max(usual, std::min(o_.processes, o_.runs));
}

int Bench::processes() const {
  if (o_.processes > 0) return std::min(o_.processes, rounds());
  // Many processes, so that each benchmark has some that nothing disturbed, as long as opening and warming them up takes a few
  // seconds in all. Five per side is the least number with which a rank test can reach a p below 0.01.
  constexpr int kUsual = 5, kSlow = 3;
  constexpr double kSlowMs = 2000, kBudgetMs = 4000;
  double slowest = 0;
  double all = 0;
  for (const Slot& s : slots_) {
    slowest = std::max(slowest, s.process.load_ms + s.process.init_ms);
    all += s.process.load_ms + s.process.init_ms + s.warmup_ms;
  }
  if (!isolate_) return 1;
  const int affordable = std::clamp(static_cast<int>(kBudgetMs / std::max(all, 1.0)), kUsual, kMostProcesses);
  return std::min(slowest > kSlowMs ? kSlow : affordable, rounds());
}

void Bench::progress(const std::string& what) {
  const int steps = static_cast<int>(slots_.size()) * (rounds() + 2 * processes());
  if (o_.progress) o_.progress(std::min(1.0, static_cast<double>(++steps_done_) / std::max(1, steps)), what);
}

void Bench::make_slots() {
  const std::vector<std::string> backends = o_.backends.empty() ? std::vector<std::string>{"auto"} : o_.backends;
  const std::vector<int> threads = o_.threads.empty() ? std::vector<int>{o_.session.threads} : o_.threads;
  const std::vector<std::int64_t> batches = o_.batch_sizes.empty() ? std::vector<std::int64_t>{0} : o_.batch_sizes;
  for (const std::int64_t b : batches) {
    inputs::InputPlan& plan = plans_.emplace_back(inputs::plan_inputs(specs_, {o_.inputs, o_.shapes, o_.session.dimensions, b}));
    plan.bounds = inputs::bounds_of(o_.model, o_.session, specs_, plan.given, plan.shapes);
  }
  for (const inputs::InputPlan& plan : plans_) {
    for (const int t : threads) {
      for (const std::string& backend : backends) {
        Slot& slot = slots_.emplace_back();
        slot.plan = &plan;
        slot.result.backend = backend;
        slot.result.threads = t;
        slot.result.batch = plan.batch;
        slot.result.clients = o_.clients;
        slot.result.rate = o_.rate;
      }
    }
  }
}

CellOptions Bench::cell_options(const Slot& slot, std::size_t index) const {
  CellOptions c;
  c.model = o_.model;
  c.session = o_.session;
  if (!o_.backends.empty()) c.session.providers = split_list(slot.result.backend);
  if (o_.resolve) o_.resolve(c.session);
  c.session.threads = slot.result.threads;
  c.session.strict = o_.session.strict || !o_.allow_fallback;
  c.allow_fallback = o_.allow_fallback;
  c.inputs = slot.plan->given;
  c.shapes = slot.plan->shapes;
  c.bounds = slot.plan->bounds;
  c.seed = o_.seed;
  c.load = {o_.clients, o_.rate, o_.arrival};
  c.profile = o_.profile && process_ + 1 == processes_;
  c.trace = o_.trace;
  const auto same_backend = [&](const Slot& s) { return s.result.backend == slot.result.backend; };
  const bool opened_before = std::any_of(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(index), same_backend);
  c.quiet = process_ > 0 || opened_before || slot.plan->overridden;  // there is a note of it
  if (!o_.trace.empty() && index > 0) {
    c.trace.replace_filename(fmt::format("{}-{}{}", o_.trace.stem().string(), index + 1, o_.trace.extension().string()));
  }
  return c;
}

void Bench::begin(Slot& slot) {
  progress("loading " + slot.result.backend);
  if (!slot.result.error.empty()) return;
  slot.process = {};
  slot.process_latencies.clear();
  slot.compute_ms.clear();
  slot.memory_ms.clear();
  slot.first_run = true;
  const auto index = static_cast<std::size_t>(&slot - slots_.data());
  slot.cell = isolate_ ? make_isolated_cell(cell_options(slot, index)) : make_local_cell(cell_options(slot, index));
  try {
    const Opened opened = slot.cell->open();
    BenchResult& r = slot.result;
    r.provider = opened.provider;
    r.runtime = opened.runtime;
    r.fallbacks = opened.fallbacks;
    r.places = opened.places;
    r.notes = opened.notes;
    slot.process.load_ms = opened.load_ms;
    slot.process.init_ms = opened.init_ms;
    progress("warming up " + r.backend);
    if (o_.warmup > 0) {
      const Load warmup = slot.cell->run({o_.warmup, 0, 0, true}, {});
      slot.warmup_ms = static_cast<double>(warmup.wall_ns) * 1e-6;
      record(slot, warmup, -1, true);
    }
  } catch (const CellError& e) {
    fail_slot(slot, e);
  }
}

void Bench::record(Slot& slot, const Load& load, int round, bool warmup) {
  for (const Sample& s : load.samples) {
    IterationRecord i;
    i.iter_idx = slot.iterations++;
    i.t_start_ns = s.start_ns - zero_ns_;
    i.t_end_ns = s.end_ns - zero_ns_;
    i.latency_ms = static_cast<double>(s.end_ns - s.start_ns) * 1e-6;
    i.warmup = warmup;
    i.round = std::max(0, round);
    i.process = process_;
    i.client = s.client;
    if (std::exchange(slot.first_run, false)) slot.process.first_run_ms = i.latency_ms;
    if (!warmup) slot.latencies.push_back(i.latency_ms);
    if (!warmup) slot.process_latencies.push_back(i.latency_ms);
    slot.result.iterations.push_back(i);
  }
  if (warmup) return;
  std::vector<double> times;
  for (const Sample& s : load.samples) times.push_back(static_cast<double>(s.end_ns - s.start_ns) * 1e-6);
  std::sort(times.begin(), times.end());
  slot.result.rounds.push_back({process_, percentile(times, 50), percentile(times, 25),
                                static_cast<double>(load.compute_ns) * 1e-6, static_cast<double>(load.memory_ns) * 1e-6});
  if (load.compute_ns > 0) slot.compute_ms.push_back(static_cast<double>(load.compute_ns) * 1e-6);
  if (load.memory_ns > 0) slot.memory_ms.push_back(static_cast<double>(load.memory_ns) * 1e-6);
  slot.rounds.push_back(load.samples.size());
  slot.measured += static_cast<std::int64_t>(load.samples.size());
  slot.wall_ns += load.wall_ns;
  slot.preempted += load.preempted;
}

void Bench::turn(Slot& slot, int round) {
  progress(fmt::format("measuring {}", slot.result.backend));
  if (!slot.alive()) return;
  Order order;
  order.seed = o_.seed + static_cast<std::uint64_t>(round) * 7919 + 1;
  if (o_.duration_s > 0) {
    order.duration_ns = std::max<std::int64_t>(1, static_cast<std::int64_t>(o_.duration_s * 1e9 / rounds()));
  } else {
    order.count =
        static_cast<std::int64_t>(o_.runs) * (round + 1) / rounds() - static_cast<std::int64_t>(o_.runs) * round / rounds();
  }
  try {
    // The one before has filled the caches with its own weights, or the fixed piece of work has.
    if (o_.warmup > 0) record(slot, slot.cell->run({1, 0, 0, true}, {}), round, true);
    record(slot, slot.cell->run(order, {}), round, false);
  } catch (const CellError& e) {
    fail_slot(slot, e);
  }
}

// Rounds `first` to `end`, without `end`.
void Bench::measure_rounds(const std::vector<Slot*>& slots, int first, int end) {
  for (int round = first; round < end; ++round) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      // The order rotates, so that none always runs after the same neighbour has heated the machine.
      turn(*slots[(i + static_cast<std::size_t>(round)) % slots.size()], round);
    }
    const double mhz = machine_state().frequency_mhz;
    lowest_mhz_ = lowest_mhz_ == 0 ? mhz : std::min(lowest_mhz_, mhz);
    highest_mhz_ = std::max(highest_mhz_, mhz);
  }
}

void Bench::finish(Slot& slot) {
  if (!slot.alive()) return;
  try {
    const Closed closed = slot.cell->close();
    ProcessRecord& p = slot.process;
    p.peak_rss_mb = closed.peak_rss_mb;
    p.compute_ms = median(slot.compute_ms);
    p.memory_ms = median(slot.memory_ms);
    std::sort(slot.process_latencies.begin(), slot.process_latencies.end());
    p.median_ms = percentile(slot.process_latencies, 50);
    p.fast_ms = percentile(slot.process_latencies, 10);
    slot.result.processes.push_back(p);
    slot.result.operators = closed.operators;
    slot.result.nodes = closed.nodes;
    if (o_.profile) slot.result.limits = machine_limits(slot.result.threads);
  } catch (const CellError& e) {
    slot.result.notes.push_back(fmt::format("{}: {}", o_.profile ? "profiling failed" : "closing failed", e.message));
  }
  slot.cell.reset();
}

void Bench::add_notes(Slot& slot) const {
  BenchResult& r = slot.result;
  const Statistics& s = r.statistics;
  r.notes.insert(r.notes.end(), slot.plan->notes.begin(), slot.plan->notes.end());
  const auto share = [&](std::int64_t n) {
    return static_cast<double>(n) / static_cast<double>(std::max<std::int64_t>(1, slot.measured));
  };
  if (share(s.outliers_mad) > 0.05) {
    r.notes.push_back(
        fmt::format("{} of {} times are outliers (more than 3.5 deviations from the median; {} beyond Tukey's fences)",
                    s.outliers_mad, slot.measured, s.outliers_iqr));
  }
  if (share(slot.preempted) > 0.2) {
    r.notes.push_back(fmt::format("lost its core to other processes {} times in {} runs", slot.preempted, slot.measured));
  }
  if (!has_interval(s)) {
    r.notes.push_back(fmt::format("{} {} too few for a confidence interval of the median: it takes {}", slot.measured,
                                  slot.measured == 1 ? "run is" : "runs are", kRunsForInterval));
  }
  const double spread = s.p50_ms > 0 ? (s.median_high_ms - s.median_low_ms) / s.p50_ms : 0;
  if (spread > 0.1) {
    r.notes.push_back(fmt::format("95 % interval of the median ±{:.0f} %: measure longer, or on a quieter machine", 50 * spread));
  }
  constexpr double kUnlike = 0.05;
  if (r.between_processes_cv > kUnlike) {
    r.notes.push_back(fmt::format("its {} processes differ by {:.0f} % (standard deviation of their medians)", r.processes.size(),
                                  100 * r.between_processes_cv));
  }
  const double achieved = slot.wall_ns > 0 ? static_cast<double>(slot.measured) * 1e9 / static_cast<double>(slot.wall_ns) : 0;
  if (o_.rate > 0 && slot.measured > 20 && achieved < 0.9 * o_.rate) {
    r.notes.push_back(fmt::format("asked for {:.6g} runs a second, only {:.6g} were possible: latencies grow with the queue",
                                  o_.rate, achieved));
  }
}

void Bench::complete(Slot& slot) {
  BenchResult& r = slot.result;
  if (!r.error.empty()) {
    r.iterations.clear();
    return;
  }
  r.statistics = summarize(std::move(slot.latencies), slot.rounds, lengths_by(r.iterations, &IterationRecord::process));
  const auto median_of = [&](double ProcessRecord::*field) {
    std::vector<double> values;
    for (const ProcessRecord& p : r.processes) values.push_back(p.*field);
    return values.empty() ? 0 : median(std::move(values));
  };
  r.load_ms = median_of(&ProcessRecord::load_ms);
  r.init_ms = median_of(&ProcessRecord::init_ms);
  r.first_run_ms = median_of(&ProcessRecord::first_run_ms);
  std::vector<double> medians;
  for (const ProcessRecord& p : r.processes) {
    r.peak_rss_mb = std::max(r.peak_rss_mb, p.peak_rss_mb);
    medians.push_back(p.median_ms);
  }
  r.between_processes_cv = summarize(medians).coefficient_of_variation;
  r.warmup_iterations = o_.warmup;
  r.measure_iterations = slot.measured;
  const bool one_by_one = o_.clients == 1 && o_.rate == 0;
  const double seconds =
      one_by_one ? r.statistics.mean_ms * 1e-3 * static_cast<double>(slot.measured) : static_cast<double>(slot.wall_ns) * 1e-9;
  r.throughput = seconds > 0 ? static_cast<double>(r.batch * slot.measured) / seconds : 0;
  for (const Slot& first : slots_) {
    if (first.plan != slot.plan) continue;
    if (first.result.statistics.p50_ms > 0) r.relative = r.statistics.p50_ms / first.result.statistics.p50_ms;
    break;
  }
  add_notes(slot);
}

// Each process begins when the one before has ended, so that one of each combination is in memory.
void Bench::measure_in_processes(const std::vector<Slot*>& slots) {
  processes_ = 1;
  for (process_ = 0; process_ < processes_; ++process_) {
    if (process_ == 0)
      processes_ = o_.processes > 0 ? processes() : isolate_ ? std::min(2, rounds()) : 1;  // whether the first one is the last
    for (Slot* s : slots) begin(*s);
    if (process_ == 0) processes_ = processes();
    measure_rounds(slots, rounds() * process_ / processes_, rounds() * (process_ + 1) / processes_);
    for (Slot* s : slots) finish(*s);
  }
}

// The fixed piece of work distinguishes changes of the machine from changes of the measured program.
void Bench::add_machine_notes(std::vector<std::string>& notes) const {
  double fastest = 0;
  double slowest = 0;
  for (const Slot& s : slots_) {
    for (const ProcessRecord& p : s.result.processes) {
      if (p.compute_ms <= 0) continue;
      fastest = fastest == 0 ? p.compute_ms : std::min(fastest, p.compute_ms);
      slowest = std::max(slowest, p.compute_ms);
    }
  }
  constexpr double kUnsteady = 1.15;
  if (slowest > kUnsteady * fastest) {
    notes.push_back(fmt::format("the machine's own speed changed by {:.0f} % while measuring (a fixed piece of arithmetic)",
                                100 * (slowest / fastest - 1)));
  }
}

// Processor time of this process and of those that it started and that have ended.
double own_cpu_s() { return static_cast<double>(process_use().cpu_ns + ended_children_cpu_ns()) * 1e-9; }

BenchRun Bench::run() {
  BenchRun out;
  out.model = o_.model.string();
  out.created = utc_now();
  out.machine = machine_info();
  make_slots();
  for (const inputs::PlannedInput& i : plans_.front().inputs) {
    const bool given = plans_.front().given.find(i.name) != nullptr;
    out.inputs.push_back({i.name, i.type, i.shape, given ? "given" : "random"});
  }
  isolate_ = o_.isolate && can_fork();
  if (o_.isolate && !isolate_) {
    out.notes.emplace_back("measured in one process, because it has other threads: peak memory and first runs affect each other");
  }
  if (o_.processes > rounds()) {
    out.notes.push_back(fmt::format("{} processes were asked for; there are {}, as each needs a round{}", o_.processes, rounds(),
                                    o_.rounds > 0 ? "" : " and a round needs a run"));
  }
  zero_ns_ = now_ns();
  const MachineState before = machine_state();
  const double cpu_before = own_cpu_s();
  if (o_.interleave) {
    std::vector<Slot*> all;
    for (Slot& s : slots_) all.push_back(&s);
    measure_in_processes(all);
  } else {
    for (Slot& s : slots_) measure_in_processes({&s});
  }
  for (std::string& n :
       what_happened(before, machine_state(), own_cpu_s() - cpu_before, lowest_mhz_, highest_mhz_, out.machine)) {
    out.notes.push_back(std::move(n));
  }
  add_machine_notes(out.notes);
  out.model_hash = model_hash(o_.model);  // now: what has been read stays in the system's cache
  for (Slot& s : slots_) complete(s);
  for (Slot& s : slots_) out.results.push_back(std::move(s.result));
  return out;
}

void check(const BenchOptions& o) {
  const auto wrong = [](const std::string& what) { fail(ErrorCode::invalid_argument, "{}", what); };
  if (o.runs < 1) wrong(fmt::format("a benchmark needs at least 1 run, received {}", o.runs));
  if (o.warmup < 0) wrong(fmt::format("the warm-up cannot be negative, received {}", o.warmup));
  if (o.processes < 0) wrong(fmt::format("the number of processes cannot be negative, received {}", o.processes));
  if (o.rounds < 0) wrong(fmt::format("the number of rounds cannot be negative, received {}", o.rounds));
  if (!(o.duration_s >= 0) || o.duration_s > 1e7)
    wrong(fmt::format("the duration must be 0 to 10000000 s, received {}", o.duration_s));
  if (o.clients < 1 || o.clients > 1024) wrong(fmt::format("clients must be 1 to 1024, received {}", o.clients));
  if (!(o.rate >= 0) || o.rate > 1e7) wrong(fmt::format("the rate must be 0 to 10000000 runs a second, received {}", o.rate));
  for (const int t : o.threads) {
    if (t < 0 || t > 4096) wrong(fmt::format("threads must be 0 to 4096, received {}", t));
  }
  for (const std::int64_t b : o.batch_sizes) {
    if (b < 1 || b > 1'000'000) wrong(fmt::format("batch sizes must be 1 to 1000000, received {}", b));
  }
  for (const std::string& b : o.backends) {
    SessionOptions session = o.session;
    session.providers = split_list(b);
    if (session.providers.empty()) wrong("a backend's name is empty");
    if (o.resolve) o.resolve(session);
    provider_chain(session.providers, false);  // throws for unknown names
  }
}

}  // namespace

}  // namespace sdx::benchmark

namespace sdx {

Runner::Runner(BenchOptions options) : options_(std::move(options)) { benchmark::check(options_); }

BenchRun Runner::run() const { return benchmark::Bench(options_, model_inputs(options_.model, options_.session)).run(); }

}  // namespace sdx
