#pragma once
// Measuring models: several backends, thread counts and batch sizes side by side; comparing runs; reports.
// In libsdx_benchmark: link sardonyx::benchmark.
//
//   sdx::BenchOptions options;
//   options.model = "model.onnx";
//   options.backends = {"cpu", "ort:cpu"};
//   const sdx::BenchRun run = sdx::Runner(options).run();
//   std::puts(sdx::to_text(run).c_str());
//
// Times are wall time of a monotonic clock, taken in nanoseconds around Session::run. Lengths ending in _ms are milliseconds,
// in _ns nanoseconds, in _mb MiB (1048576 bytes). Functions throw sdx::Error; none keeps references to its arguments.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sdx/session.hpp>

namespace sdx {

// What a list of run times says.
struct Statistics {
  std::vector<double> latencies_ms;  // in the order measured
  double mean_ms = 0, std_ms = 0, min_ms = 0, max_ms = 0;
  double p50_ms = 0, p90_ms = 0, p95_ms = 0, p99_ms = 0;
  double coefficient_of_variation = 0;   // std / mean
  double median_low_ms = 0;              // 95 % confidence interval of the median
  double median_high_ms = 0;             //
  std::int64_t outliers_iqr = 0;         // outside 1.5 interquartile ranges around the quartiles (Tukey's fences)
  std::int64_t outliers_mad = 0;         // more than 3.5 scaled median absolute deviations from the median
  std::vector<double> round_medians_ms;  // one for each round, in order
  friend bool operator==(const Statistics&, const Statistics&) = default;
};

// One run of the model.
struct IterationRecord {
  std::int64_t iter_idx = 0;    // counts the cell's iterations, the warm-up included
  std::int64_t t_start_ns = 0;  // since the benchmark began; with a rate: when the run was to start
  std::int64_t t_end_ns = 0;    //
  double latency_ms = 0;        // t_end - t_start
  bool warmup = false;          // its time does not count
  int round = 0;                // backends take turns round by round
  int process = 0;              // which of the cell's processes
  int client = 0;               // which of the concurrent clients
  friend bool operator==(const IterationRecord&, const IterationRecord&) = default;
};

// The time that runs spent in one operator's kernel.
struct OperatorTime {
  std::string op, kernel, provider;
  std::int64_t calls = 0;   // in one run of the model
  double ms = 0;            // of one run, the median
  double share = 0;         // 0 to 1, of the time of all operators
  double gflops_per_s = 0;  // 0 where the operations are not known
  double gbytes_per_s = 0;  // inputs and outputs; 0 where the shapes are not known
  friend bool operator==(const OperatorTime&, const OperatorTime&) = default;
};

// The same of one node.
struct NodeTime {
  std::string name, op, kernel, provider;  // name: what the node computes, where it has none of its own
  double ms = 0;                           // of one run, the median
  double share = 0;                        // 0 to 1, of the time in all nodes
  double gflop = 0, gbyte = 0;             // of one run, 1e9 operations and bytes; 0 where they are not known
  double gflops_per_s = 0, gbytes_per_s = 0;
  friend bool operator==(const NodeTime&, const NodeTime&) = default;
};

// What the processor does at most with so many threads, measured: float32 multiply-adds in registers (two operations each), and
// reading memory beyond the caches.
struct MachineLimits {
  int threads = 0;  // 0: not measured
  double gflops_per_s = 0, read_gbytes_per_s = 0;
  friend bool operator==(const MachineLimits&, const MachineLimits&) = default;
};

// One of the processes in which a combination was measured. Two processes of the same program differ by where their memory lies
// and by what else the machine does at that time: by more than the runs of one process do.
struct ProcessRecord {
  double median_ms = 0, fast_ms = 0;  // of its runs that count: the median and the 10th percentile
  double load_ms = 0, init_ms = 0, first_run_ms = 0, peak_rss_mb = 0;
  // Time of a fixed piece of work at the same time, next to the runs (median): arithmetic in one core, and reading memory. What
  // changes these has changed the machine, not the model. 0: not measured.
  double compute_ms = 0, memory_ms = 0;
  friend bool operator==(const ProcessRecord&, const ProcessRecord&) = default;
};

// One turn of a process: some runs between two timings of the fixed piece of work, of which the longer counts.
struct RoundRecord {
  int process = 0;
  double median_ms = 0, fast_ms = 0;     // of its runs: the median and the 25th percentile
  double compute_ms = 0, memory_ms = 0;  // 0: not measured
  friend bool operator==(const RoundRecord&, const RoundRecord&) = default;
};

// What was measured with one backend, thread count and batch size.
struct BenchResult {
  std::string backend;     // as asked for
  int threads = 0;         // 0: as many as the backend likes
  std::int64_t batch = 1;  // samples that one run works on
  int clients = 1;         // concurrent callers
  double rate = 0;         // runs asked for a second; 0: each run starts when the one before is done
  std::string error;       // why there are no figures; empty: there are
  std::string error_code;  // "provider_unavailable", …; "crashed" where the backend's process ended
  std::string provider, runtime;
  std::vector<std::string> fallbacks;
  Statistics statistics;
  std::int64_t warmup_iterations = 0, measure_iterations = 0;
  double load_ms = 0, init_ms = 0, first_run_ms = 0;  // medians over the processes
  double throughput = 0;                              // samples a second
  double peak_rss_mb = 0;                             // most memory of a process that ran this backend
  std::vector<ProcessRecord> processes;               // in order; empty for Runner::measure()
  std::vector<RoundRecord> rounds;                    // in order; empty for measure()
  double between_processes_cv = 0;                    // std / mean of the processes' medians; 0 with fewer than two
  double relative = 0;  // median time over the first result's of the same batch size; 0 where that has no figures
  std::vector<IterationRecord> iterations;
  std::vector<OperatorTime> operators;  // with BenchOptions::profile, most expensive first
  std::vector<NodeTime> nodes;          // likewise
  MachineLimits limits;                 // likewise
  std::vector<std::string> notes;       // what a reader should know before trusting the figures
  friend bool operator==(const BenchResult&, const BenchResult&) = default;
};

struct MachineInfo {
  std::string cpu, isa, kernel, governor;  // governor: of CPU frequency; empty where the system does not say
  int cores = 0;                           // that this process may use
  double memory_mb = 0;
  double frequency_mhz = 0;          // of the first core when the benchmark began; 0: not known
  double load_average = 0;           // of the last minute when the benchmark began
  double steal_percent = 0;          // processor time that the hypervisor gave to others while measuring
  std::int64_t throttle_events = 0;  // thermal throttling while measuring
  std::string sdx_version;
  friend bool operator==(const MachineInfo&, const MachineInfo&) = default;
};

struct BenchInput {
  std::string name, dtype;
  Shape shape;
  friend bool operator==(const BenchInput&, const BenchInput&) = default;
};

struct BenchRun {
  std::string model;
  std::string created;  // UTC, "2026-01-31T12:00:00Z"
  MachineInfo machine;
  std::vector<BenchInput> inputs;  // of the first batch size
  std::vector<BenchResult> results;
  std::vector<std::string> notes;
  friend bool operator==(const BenchRun&, const BenchRun&) = default;
};

inline constexpr int kUsualRounds = 20;    // of a benchmark with runs enough
inline constexpr int kMostProcesses = 20;  // unless the options say how many

struct BenchOptions {
  enum class Arrival { poisson, uniform };

  std::filesystem::path model;
  // Each is a provider chain, comma-separated: "cpu", "ort:cpu", "cuda,cpu". Empty: one backend, chosen automatically.
  std::vector<std::string> backends;
  std::vector<int> threads;               // empty: {session.threads}
  std::vector<std::int64_t> batch_sizes;  // empty: as the inputs come
  int warmup = 10;                        // iterations before those that count
  int runs = 100;                         // iterations that count, of each combination and of all clients together
  double duration_s = 0;                  // > 0: measure for this long instead of `runs`
  int rounds = 0;                         // in which combinations take turns; 0: kUsualRounds, or fewer for few runs
  // Fresh ones for each combination, one after the other; 0: up to kMostProcesses, fewer where opening takes long or rounds are
  // few.
  int processes = 0;
  int clients = 1;                     // concurrent callers of one session
  double rate = 0;                     // > 0: so many runs start a second, whether or not those before are done
  Arrival arrival = Arrival::poisson;  // of the runs with a rate: exponential or equal gaps
  // Each combination has a process of its own, so that memory, loading and first run are its own. The processes are forked from
  // this one, which must therefore have no other threads; where it has, everything is measured in this process, with a note.
  bool isolate = true;
  // All combinations are loaded and take turns; false: one after the other, so that only one is in memory.
  bool interleave = true;
  // After measuring, some more runs with a profiler (which would slow down those that count).
  bool profile = false;
  std::filesystem::path trace;  // with `profile`: a Chrome trace of each combination; the first one's path, others get "-2", …
  // Passed on to each session. `providers` and `threads` are replaced; `strict` is set unless allow_fallback.
  SessionOptions session;
  // Called with the options of each combination, whose `providers` are the chain that its backend names: names of other kinds may
  // become providers with their options. May be empty.
  std::function<void(SessionOptions&)> resolve;
  // A backend that cannot be used is an error in its result. true: what the session falls back to is measured, and said.
  bool allow_fallback = false;
  // Values by input name. The rest is made up from `seed`, in the extents of `shapes`, else those of the model, else of
  // session.dimensions, else sensible ones (see docs/benchmarks.md).
  NamedValues inputs;
  std::vector<std::pair<std::string, Shape>> shapes;
  std::uint64_t seed = 0;
  // Called with 0 to 1 while the benchmark goes on. May be empty.
  std::function<void(double done, const std::string& what)> progress;
};

struct MeasureOptions {
  std::int64_t warmup = 10;
  std::int64_t runs = 100;
  std::int64_t batch = 1;
  RunOptions run;
  std::function<void(std::int64_t done, std::int64_t total)> progress;  // may be empty
};

// Runs a benchmark. Load, initialise, warm up, measure: each in every combination of backend, threads and batch size.
class SDX_API Runner {
 public:
  // Throws Error(invalid_argument) for options that make no sense: no runs, negative rates, unknown provider names, …
  explicit Runner(BenchOptions options);
  // Throws Error: io, invalid_model, invalid_argument (inputs). What fails in one combination alone is in its `error`.
  BenchRun run() const;
  const BenchOptions& options() const noexcept { return options_; }

  // The same measurement of a session that is already open, in this process. Throws Error(invalid_argument) for numbers that make
  // no sense, and what Session::run throws.
  static BenchResult measure(const Session& session, const NamedValues& inputs, const MeasureOptions& options);

 private:
  BenchOptions options_;
};

// What the model at `path` takes, without compiling it.
SDX_API std::vector<ValueSpec> model_inputs(const std::filesystem::path& path, const SessionOptions& options = {});

struct DiffOptions {
  double threshold_percent = 5;  // smaller changes of the median are neutral
  double alpha = 0.05;           // largest p-value that counts as a change
};

struct DiffEntry {
  enum class Verdict { regression, improvement, neutral, missing };  // missing: on one side there are no figures

  std::string backend;
  int threads = 0;
  std::int64_t batch = 1;
  double base_ms = 0, current_ms = 0;        // of the fastest processes; with fewer than 8 on a side the medians of all runs
  double change_percent = 0;                 // (current / base - 1) * 100: positive is slower
  double low_percent = 0, high_percent = 0;  // 95 % confidence interval of the change
  double p_value = 1;          // Mann-Whitney U, two-sided, on the fastest processes (on all, or on rounds, where they are few)
  int quiet_rounds = 0;        // that were compared; 0: the whole benchmarks were
  double machine_percent = 0;  // by how much the machine was slower (or faster), the model apart
  Verdict verdict = Verdict::neutral;
  std::string why;
};
SDX_API std::string_view name(DiffEntry::Verdict v) noexcept;  // "REGRESSION", …

struct Diff {
  std::string base, current;
  DiffOptions options;
  std::vector<DiffEntry> entries;  // in the order of `current`, then what only `base` has
  std::vector<std::string> notes;
  bool regressed() const noexcept;
};

// Pairs results of the same backend, threads, batch size, clients and rate. Throws Error(invalid_argument) for a threshold
// that is negative or no number, or an alpha outside (0, 1).
SDX_API Diff diff(const BenchRun& base, const BenchRun& current, const DiffOptions& options = {});

// Reads what to_json(BenchRun) and `sdx run --benchmark --json` wrote; fields that are missing are zero. Throws Error(io),
// Error(invalid_argument) naming the field at fault.
SDX_API BenchRun read_benchmark(const std::filesystem::path& path);

// {"model", "created", "machine", "inputs", "results", "notes"}: see docs/benchmarks.md.
SDX_API std::string to_json(const BenchRun& run);
// One result's fields, as in "results".
SDX_API std::string to_json(const BenchResult& result);
// One line for each result, with a heading.
SDX_API std::string to_csv(const BenchRun& run);
SDX_API std::string to_markdown(const BenchRun& run);
// A page that needs nothing but itself: interactive plots and tables, light and dark.
SDX_API std::string to_html(const BenchRun& run);
struct BenchTextOptions {
  int width = 100;      // columns
  bool charts = false;  // histogram and course of each result
};
SDX_API std::string to_text(const BenchRun& run, const BenchTextOptions& options = {});
SDX_API std::string to_text(const BenchResult& result);
SDX_API std::string to_text(const Diff& diff);
SDX_API std::string to_json(const Diff& diff);
SDX_API std::string to_markdown(const Diff& diff);

}  // namespace sdx
