#pragma once
// Benchmarks models with several backends, thread counts and batch sizes side by side, compares runs and writes reports. In
// libsdx_benchmark: link sardonyx::benchmark.
//
//   sdx::BenchOptions options;
//   options.model = "model.onnx";
//   options.backends = {"cpu", "ort:cpu"};
//   const sdx::BenchRun run = sdx::Runner(options).run();
//   std::puts(sdx::to_text(run).c_str());
//
// Times are wall-clock times of a monotonic clock, taken in nanoseconds around Session::run. Suffixes give the unit: _ms
// milliseconds, _ns nanoseconds, _mb MiB (1048576 bytes). Functions throw sdx::Error and keep no references to their arguments.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sdx/session.hpp>

namespace sdx {

// Statistics of a list of run times.
struct Statistics {
  std::vector<double> latencies_ms;  // in the order measured
  double mean_ms = 0, std_ms = 0, min_ms = 0, max_ms = 0;
  double p50_ms = 0, p90_ms = 0, p95_ms = 0, p99_ms = 0;
  double coefficient_of_variation = 0;   // std / mean
  double median_low_ms = 0;              // 95 % confidence interval of the median; 0 and 0: there are
  double median_high_ms = 0;             // too few runs for one
  std::int64_t outliers_iqr = 0;         // outside 1.5 interquartile ranges around the quartiles (Tukey's fences)
  std::int64_t outliers_mad = 0;         // more than 3.5 scaled median absolute deviations from the median
  std::vector<double> round_medians_ms;  // one for each round, in order
  friend bool operator==(const Statistics&, const Statistics&) = default;
};

// One run of the model.
struct IterationRecord {
  std::int64_t iter_idx = 0;    // index within the cell, warm-up included
  std::int64_t t_start_ns = 0;  // since the benchmark began; with a rate: the scheduled start
  std::int64_t t_end_ns = 0;    //
  double latency_ms = 0;        // t_end - t_start
  bool warmup = false;          // excluded from the statistics
  int round = 0;                // backends take turns round by round
  int process = 0;              // which of the cell's processes
  int client = 0;               // which of the concurrent clients
  friend bool operator==(const IterationRecord&, const IterationRecord&) = default;
};

// Time spent in one operator's kernel.
struct OperatorTime {
  std::string op, kernel, provider;
  std::int64_t calls = 0;   // per run of the model
  double ms = 0;            // per run, median
  double share = 0;         // 0 to 1, of the total operator time
  double gflops_per_s = 0;  // 0 if the operation count is not known
  double gbytes_per_s = 0;  // inputs and outputs; 0 if the shapes are not known
  friend bool operator==(const OperatorTime&, const OperatorTime&) = default;
};

// The same for one node.
struct NodeTime {
  std::string name, op, kernel, provider;  // name: of the node, or what it computes if it has no name
  double ms = 0;                           // per run, median
  double share = 0;                        // 0 to 1, of the total node time
  double gflop = 0, gbyte = 0;             // per run, in units of 1e9 operations and bytes; 0 if not known
  double gflops_per_s = 0, gbytes_per_s = 0;
  friend bool operator==(const NodeTime&, const NodeTime&) = default;
};

// Measured peak rates of the processor at this number of threads: float32 multiply-adds in registers (two operations each), and
// reads of memory beyond the caches.
struct MachineLimits {
  int threads = 0;  // 0: not measured
  double gflops_per_s = 0, read_gbytes_per_s = 0;
  friend bool operator==(const MachineLimits&, const MachineLimits&) = default;
};

// One of the processes that measured a combination. Processes of the same program differ in where their memory lies and in what
// else the machine does at the time; this variation exceeds the variation between runs of one process.
struct ProcessRecord {
  double median_ms = 0, fast_ms = 0;  // median and 10th percentile of its measured runs
  double load_ms = 0, init_ms = 0, first_run_ms = 0, peak_rss_mb = 0;
  // Median time of a fixed reference workload, run next to the measured runs on as many threads: arithmetic, and reading memory.
  // A change in these reflects a change in the machine, not in the model. 0: not measured.
  double compute_ms = 0, memory_ms = 0;
  friend bool operator==(const ProcessRecord&, const ProcessRecord&) = default;
};

// One turn of a process: some runs between two timings of the reference workload. The longer of the two timings counts.
struct RoundRecord {
  int process = 0;
  double median_ms = 0, fast_ms = 0;     // median and 25th percentile of its runs
  double compute_ms = 0, memory_ms = 0;  // 0: not measured
  friend bool operator==(const RoundRecord&, const RoundRecord&) = default;
};

// The number of a model's nodes that a provider runs.
struct ProviderNodes {
  std::string provider;
  std::int64_t nodes = 0;
  friend bool operator==(const ProviderNodes&, const ProviderNodes&) = default;
};

// Measurements of one combination of backend, thread count and batch size.
struct BenchResult {
  std::string backend;     // as requested
  int threads = 0;         // 0: the backend's default
  std::int64_t batch = 1;  // samples per run
  int clients = 1;         // concurrent callers
  double rate = 0;         // requested runs per second; 0: each run starts when the previous one ends
  std::string error;       // why there are no measurements; empty if there are
  std::string error_code;  // "provider_unavailable", …; "crashed" if the backend's process died
  std::string provider, runtime;
  std::vector<ProviderNodes> places;  // where the nodes ran: the backend's own providers first
  std::vector<std::string> fallbacks;
  Statistics statistics;
  std::int64_t warmup_iterations = 0, measure_iterations = 0;
  double load_ms = 0, init_ms = 0, first_run_ms = 0;  // medians over the processes
  double throughput = 0;                              // samples per second
  double peak_rss_mb = 0;                             // peak memory of any process that ran this backend
  std::vector<ProcessRecord> processes;               // in order; empty for Runner::measure()
  std::vector<RoundRecord> rounds;                    // in order; empty for measure()
  double between_processes_cv = 0;                    // std / mean of the processes' medians; 0 with fewer than two
  double relative = 0;  // median time relative to the first result of the same batch size; 0 if that has no measurements
  std::vector<IterationRecord> iterations;
  std::vector<OperatorTime> operators;  // with BenchOptions::profile, most expensive first
  std::vector<NodeTime> nodes;          // likewise
  MachineLimits limits;                 // likewise
  std::vector<std::string> notes;       // caveats for the reader
  friend bool operator==(const BenchResult&, const BenchResult&) = default;
};

struct MachineInfo {
  std::string cpu, isa, kernel, governor;  // governor: of CPU frequency; empty if the system does not report it
  int cores = 0;                           // available to this process
  double memory_mb = 0;
  double frequency_mhz = 0;          // of the first core at the start of the benchmark; 0: not known
  double load_average = 0;           // one-minute load average at the start of the benchmark
  double steal_percent = 0;          // CPU time stolen by the hypervisor while measuring
  std::int64_t throttle_events = 0;  // thermal throttling events while measuring
  std::string sdx_version;
  friend bool operator==(const MachineInfo&, const MachineInfo&) = default;
};

struct BenchInput {
  std::string name, dtype;
  Shape shape;
  std::string values;  // "given" or "random"; empty: not known
  friend bool operator==(const BenchInput&, const BenchInput&) = default;
};

struct BenchRun {
  std::string model;
  std::string model_hash;  // of the contents of the model's files; empty: not known
  std::string created;     // UTC, "2026-01-31T12:00:00Z"
  MachineInfo machine;
  std::vector<BenchInput> inputs;  // of the first batch size
  std::vector<BenchResult> results;
  std::vector<std::string> notes;
  friend bool operator==(const BenchRun&, const BenchRun&) = default;
};

inline constexpr int kUsualRounds = 20;    // if there are enough runs
inline constexpr int kMostProcesses = 20;  // unless the options say how many

struct BenchOptions {
  enum class Arrival { poisson, uniform };

  std::filesystem::path model;
  // Each is a provider chain, comma-separated: "cpu", "ort:cpu", "cuda,cpu". Empty: one backend, chosen automatically.
  std::vector<std::string> backends;
  std::vector<int> threads;               // empty: {session.threads}
  std::vector<std::int64_t> batch_sizes;  // empty: as the inputs are
  int warmup = 10;                        // unmeasured iterations first
  int runs = 100;                         // measured iterations per combination, over all clients
  double duration_s = 0;                  // > 0: measure for this many seconds instead of `runs`
  int rounds = 0;  // rounds in which combinations take turns; 0: kUsualRounds, or fewer if there are few runs
  // Processes started for each combination, one after the other; 0: up to kMostProcesses, fewer if opening is slow or there are
  // few rounds.
  int processes = 0;
  int clients = 1;                     // concurrent callers of one session
  double rate = 0;                     // > 0: start this many runs per second, whether or not earlier ones are done
  Arrival arrival = Arrival::poisson;  // with a rate: exponential or equal gaps between runs
  // Measure each combination in a process of its own, so that memory, load time and first run are not shared. The processes are
  // forked from this one, which must therefore be single-threaded; otherwise everything runs in this process, and a note says so.
  bool isolate = true;
  // true: load all combinations and take turns; false: one combination after the other, so that only one is in memory.
  bool interleave = true;
  // Afterwards, do some more runs with a profiler, which would slow down the measured ones.
  bool profile = false;
  std::filesystem::path trace;  // with `profile`: path of a Chrome trace; each further combination's path gets "-2", "-3", …
  // Passed to each session. `providers` and `threads` are replaced; `strict` is set unless allow_fallback.
  SessionOptions session;
  // Called with the options of each combination, whose `providers` are the chain that its backend names; may translate other
  // names into providers and their options. May be empty.
  std::function<void(SessionOptions&)> resolve;
  // false: an unavailable backend is an error in its result. true: measure what the session falls back to, and report that.
  bool allow_fallback = false;
  // Values by input name. Missing ones are generated from `seed`; their extents come from `shapes`, else from the model, else
  // from session.dimensions, else from defaults (see docs/benchmarks.md).
  NamedValues inputs;
  std::vector<std::pair<std::string, Shape>> shapes;
  std::uint64_t seed = 0;
  // Called with progress from 0 to 1. May be empty.
  std::function<void(double done, const std::string& what)> progress;
};

struct MeasureOptions {
  std::int64_t warmup = 10;
  std::int64_t runs = 100;
  std::int64_t batch = 1;
  RunOptions run;
  std::function<void(std::int64_t done, std::int64_t total)> progress;  // may be empty
};

// Runs a benchmark: loads, initialises, warms up and measures every combination of backend, threads and batch size.
class SDX_API Runner {
 public:
  // Throws Error(invalid_argument) for invalid options: no runs, negative rates, unknown provider names, …
  explicit Runner(BenchOptions options);
  // Throws Error: io, invalid_model, invalid_argument (inputs). A failure of a single combination is reported in its `error`.
  BenchRun run() const;
  const BenchOptions& options() const noexcept { return options_; }

  // Measures a session that is already open, in this process. Throws Error(invalid_argument) for invalid numbers, and whatever
  // Session::run throws.
  static BenchResult measure(const Session& session, const NamedValues& inputs, const MeasureOptions& options);

 private:
  BenchOptions options_;
};

// The inputs of the model at `path`, without compiling it.
SDX_API std::vector<ValueSpec> model_inputs(const std::filesystem::path& path, const SessionOptions& options = {});

struct DiffOptions {
  double threshold_percent = 5;   // smaller changes of the median count as neutral
  double alpha = 0.05;            // largest p-value that counts as a change
  bool different_models = false;  // whether the benchmarks may be of different models or inputs
};

struct DiffEntry {
  enum class Verdict { regression, improvement, neutral, missing };  // missing: one side has no measurements

  std::string backend;
  int threads = 0;
  std::int64_t batch = 1;
  double base_ms = 0, current_ms = 0;        // of the fastest processes; if a side has fewer than 8, the medians of all runs
  double change_percent = 0;                 // (current / base - 1) * 100: positive is slower
  double low_percent = 0, high_percent = 0;  // 95 % confidence interval of the change
  double p_value = 1;          // two-sided Mann-Whitney U test on the fastest processes (on all, or on rounds, if there are few)
  int quiet_rounds = 0;        // rounds compared; 0: the whole benchmarks were compared
  double machine_percent = 0;  // how much slower (or faster) the machine itself was
  Verdict verdict = Verdict::neutral;
  std::string why;
};
SDX_API std::string_view name(DiffEntry::Verdict v) noexcept;  // "REGRESSION", …

struct Diff {
  std::string base, current;
  DiffOptions options;
  std::vector<DiffEntry> entries;  // in the order of `current`, then entries found only in `base`
  std::vector<std::string> notes;
  bool regressed() const noexcept;
};

// Pairs results of the same backend, threads, batch size, clients and rate. Models are the same if their hashes are; if a
// benchmark has none, if their file names are. Throws Error(invalid_argument) for a threshold that is negative or NaN, an alpha
// outside (0, 1), benchmarks of different models or inputs, and benchmarks that have no result in common.
SDX_API Diff diff(const BenchRun& base, const BenchRun& current, const DiffOptions& options = {});

// Reads the output of to_json(BenchRun) and of `sdx run --benchmark --json`; missing fields are zero. Throws Error(io), and
// Error(invalid_argument) naming the invalid field.
SDX_API BenchRun read_benchmark(const std::filesystem::path& path);

// {"model", "created", "machine", "inputs", "results", "notes"}: see docs/benchmarks.md.
SDX_API std::string to_json(const BenchRun& run);
// One result's fields, as in "results".
SDX_API std::string to_json(const BenchResult& result);
// A header and one line per result.
SDX_API std::string to_csv(const BenchRun& run);
SDX_API std::string to_markdown(const BenchRun& run);
// A self-contained page: interactive plots and tables, light and dark.
SDX_API std::string to_html(const BenchRun& run);
struct BenchTextOptions {
  int width = 100;      // columns; 0: as many as it takes
  bool charts = false;  // histogram and time series of each result
  bool notes = true;    // false: only those of fallbacks
};
SDX_API std::string to_text(const BenchRun& run, const BenchTextOptions& options = {});
SDX_API std::string to_text(const BenchResult& result);
SDX_API std::string to_text(const Diff& diff, int width = 0);  // columns; 0: as many as it takes
SDX_API std::string to_json(const Diff& diff);
SDX_API std::string to_markdown(const Diff& diff);

}  // namespace sdx
