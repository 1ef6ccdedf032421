#pragma once
// Loading a model and running it.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sdx/error.hpp>
#include <sdx/export.hpp>
#include <sdx/tensor.hpp>

namespace sdx {

// The engine that runs the nodes. As text: "auto", "native", "ort".
enum class Runtime {
  automatic,  // our own engine, plus the vendor libraries behind the providers
  native,     // our own engine only
  ort,        // everything through the ONNX Runtime library
};
SDX_API std::string_view name(Runtime runtime) noexcept;
// Ignores case. Throws Error(invalid_argument) with the closest match.
SDX_API Runtime parse_runtime(std::string_view text);

// How a session chooses among several providers. As text: "order", "measured".
enum class Select {
  order,     // the first available provider in the chain
  measured,  // the fastest on the first run's inputs
};
SDX_API std::string_view name(Select select) noexcept;
// Ignores case. Throws Error(invalid_argument) with the closest match.
SDX_API Select parse_select(std::string_view text);

// Whether a session quantises its model when it is opened. As text: "none", "dynamic".
enum class Quantize {
  none,
  dynamic,  // products with constant float32 weights compute in 8 bits (docs/quantization.md)
};
SDX_API std::string_view name(Quantize quantize) noexcept;
// Ignores case. Throws Error(invalid_argument) with the closest match.
SDX_API Quantize parse_quantize(std::string_view text);

// docs/options.md lists every option with its range and its name in C, Python, the command line and project files. Session::open
// throws Error(invalid_argument) for a number out of range or an unknown pass.
struct SessionOptions {
  // Providers in order of preference, by short or ONNX Runtime name ("cuda", "CPUExecutionProvider"); case is ignored. Empty:
  // chosen automatically. Nodes that no listed provider takes run on `cpu`.
  std::vector<std::string> providers;
  // Throw Error(provider_unavailable) instead of falling back to the next provider.
  bool strict = false;
  // Rewrite the graph before running it. Results match the unoptimised graph up to rounding.
  bool optimize = true;
  // Passes to skip, by name (see sdx::pass_names()).
  std::vector<std::string> disabled_passes;
  // Threads of this session, including the caller. 0: use the pool shared by all sessions of the process.
  int threads = 0;
  // Cores to pin this session's worker threads to, one thread per core: "auto" (the cores available to the process) or a list as
  // taskset takes it ("0,2-3"). The first core is counted for the caller, which is not pinned. Empty: no pinning. A session with
  // a list has its own threads, one per core unless `threads` says otherwise.
  std::string thread_affinity;
  // Upper limit, in bytes, on the memory that this session's tensors use at any time, not counting weights mapped from the file.
  // 0: no limit.
  std::size_t memory_limit = 0;
  // Number of input-shape signatures whose memory plans are cached; the least recently used plan is evicted.
  std::size_t plan_cache_size = 8;
  // Values for symbolic dimensions ("batch" -> 1), applied where the model uses these symbols.
  std::vector<std::pair<std::string, std::int64_t>> dimensions;
  // Record the duration of every step; see Session::profile().
  bool profile = false;
  // Options for individual providers, keyed by provider name and then by the vendor's option name: {{"cuda", {{"device_id",
  // "1"}}}, {"ort:cpu", {…}}}. Options of "X" also apply to "ort:X". An option that the provider does not know throws
  // Error(invalid_argument) with the closest match.
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, std::string>>>> provider_options;
  // Paths of ONNX Runtime's shared library and of OpenVINO's C library; empty: search for them (docs/providers.md).
  std::string ort_library;
  std::string openvino_library;
  // Write what our own engine makes of the model (optimised graph, packed weights) to the cache folder, so that later starts map
  // it instead of recomputing it; see docs/cache.md. Existing cache files are used whether or not this is set, unless `cache` is
  // off. Applies to models in files that run only on `cpu`.
  bool keep_compiled = false;
  // Cache the output of vendor compilers (TensorRT engines, OpenVINO blobs, …) for the next start in `cache_folder`. If that is
  // empty, use SDX_CACHE_DIR, then $XDG_CACHE_HOME/sdx, then ~/.cache/sdx; without any of these nothing is cached.
  bool cache = true;
  std::filesystem::path cache_folder;
  // Opening the session also writes the optimised model to this file, atomically. The file uses only operators that ONNX Runtime
  // knows (ai.onnx, com.microsoft, the model's own), so other engines can open it. Passes whose result cannot be expressed this
  // way are skipped; without `optimize` all passes are. If the constants total more than 1.9 GB, they go into FILE.data. With
  // `optimized_model_basic`, passes create only ai.onnx operators. With `optimized_model_ort`, or a name ending in ".ort", the
  // file is in ONNX Runtime's own format (docs/ort-format.md). Empty: write nothing.
  std::filesystem::path optimized_model;
  bool optimized_model_basic = false;
  bool optimized_model_ort = false;
  // Shared libraries with custom operators (sdx/custom_op.h), for this session only. A model's own functions of the same name
  // take precedence. Session::open throws an Error naming the library if it is missing, broken or reports an error.
  std::vector<std::filesystem::path> custom_ops;
  // If the ONNX Runtime library is unavailable, Runtime::ort runs the model natively with a warning; with `strict`, opening
  // fails.
  Runtime runtime = Runtime::automatic;
  // `provider_priority`: the order that automatic selection uses instead of the platform's own (`cpu` always comes last).
  // `platform_defaults`: the provider to try first on a kind of machine: {"linux_nvidia" | "linux_amd" | "linux_intel" |
  // "windows_…" | "linux" | "windows" | "darwin", provider}.
  std::vector<std::string> provider_priority;
  std::vector<std::pair<std::string, std::string>> platform_defaults;
  // With Select::measured, the candidates run the first request. The session keeps the fastest one whose results agree with `cpu`
  // and records the choice in the cache folder (docs/providers.md).
  Select select = Select::order;
  // When the `cpu` provider has several kernels for a node, measure them when the session is opened (about 20 ms per kernel)
  // instead of trusting the cost model, and store the times in the cache folder (tuned.json). Applies only to nodes whose shapes
  // are fixed by the model or by `dimensions`. NodeReport::timed lists the measurements. Another kernel may round differently.
  bool tune = false;
  // A provider ("cpu") that serves runs while the preferred providers before it in the chain compile in the background. The
  // session then switches over between two runs. Empty: opening waits for compilation.
  std::string start_on;
  // Time limit for a run, or for compilation, on a provider other than `cpu`. When it expires, the next provider takes over and
  // this one is dropped. With start_on, the limit on compilation applies only when the session is closed. 0: no limit.
  std::chrono::milliseconds provider_timeout{0};
  // Delay before a provider that failed in service is retried. It doubles after each further failure, up to 20 times this value.
  // 0: never retry.
  std::chrono::milliseconds provider_retry{30'000};
  // Treat NaN in the results of a provider other than `cpu` as a failure of that provider if the next provider produces none.
  bool reject_nan = false;
  // Quantise the model in memory before it is compiled, as `sdx quantize` would write it. Needs libsdx_quantize.so beside
  // libsdx.so, or where SDX_QUANTIZE_LIB says: else Error(io).
  Quantize quantize = Quantize::none;
  // Destination for one line of JSON per run (docs/providers.md): "stderr", or a file to append to. Empty: use the environment
  // variable SDX_TELEMETRY; if that is unset, write nothing.
  std::string telemetry;
  // Map the model's files if they have more than 4 MiB. Off: the session keeps a copy of them in memory, so nothing that happens
  // to them later matters. Opening takes longer, and the weights count as the process's own memory.
  bool mmap = true;
};

// Cancels runs from another thread. Copies share one state. Thread-safe.
class CancelToken {
 public:
  CancelToken() : flag_(std::make_shared<std::atomic<bool>>(false)) {}
  void cancel() noexcept { flag_->store(true, std::memory_order_relaxed); }
  bool cancelled() const noexcept { return flag_->load(std::memory_order_relaxed); }
  const std::shared_ptr<std::atomic<bool>>& flag() const noexcept { return flag_; }

 private:
  std::shared_ptr<std::atomic<bool>> flag_;
};

struct RunOptions {
  // A run that takes longer throws Error(deadline_exceeded). Checked between steps and loop iterations.
  std::optional<std::chrono::milliseconds> timeout;
  std::optional<CancelToken> cancel;
  // Names of the outputs to return, in this order; empty: all.
  std::vector<std::string> outputs;
  // Output buffers supplied by the caller, by name. The run writes such an output into the tensor and returns that same tensor.
  // It must be writable and have the output's type and shape, else Error(invalid_argument). It may alias an input only where the
  // operator that produces the output permits it: the present and past of GroupQueryAttention, if both have room for all tokens,
  // and the caches of PagedAttention.
  std::vector<std::pair<std::string, Tensor>> bound;
};

// An input or output as the model declares it.
struct ValueSpec {
  std::string name;
  std::string type;  // "float32[batch,3,224,224]", "sequence(map(int64, float32))", …
  bool is_tensor = true;
  DataType dtype = DataType::undefined;  // of a tensor; otherwise undefined
  bool has_shape = false;                // false: the rank is unknown
  std::vector<std::int64_t> shape;       // -1 for an extent that is not fixed
  std::vector<std::string> symbols;      // parallel to shape: symbol or expression of each extent that is not fixed, else ""
  bool has_default = false;              // the input may be omitted
};

struct NamedValue {
  std::string name;
  Value value;
};

// A short list of named values, in order.
class SDX_API NamedValues {
 public:
  NamedValues() = default;
  NamedValues(std::initializer_list<NamedValue> items) : items_(items) {}
  explicit NamedValues(std::vector<NamedValue> items) : items_(std::move(items)) {}

  void add(std::string name, Value value) { items_.push_back({std::move(name), std::move(value)}); }
  std::size_t size() const noexcept { return items_.size(); }
  bool empty() const noexcept { return items_.empty(); }
  auto begin() const noexcept { return items_.begin(); }
  auto end() const noexcept { return items_.end(); }
  auto begin() noexcept { return items_.begin(); }
  auto end() noexcept { return items_.end(); }
  const NamedValue& operator[](std::size_t i) const { return items_.at(i); }
  const Value* find(std::string_view name) const noexcept;
  // Throws Error(invalid_argument) listing the available names.
  const Value& at(std::string_view name) const;
  const Tensor& tensor(std::string_view name) const { return at(name).tensor(); }

 private:
  std::vector<NamedValue> items_;
};

// Where one node ran, and why there.
struct NodeReport {
  std::string name;                  // of the node; may be empty
  std::string op;                    // "Conv", "com.microsoft.MatMulNBits"
  std::string provider;              // "cpu"
  std::string kernel;                // "reference" if no fast kernel took the node
  std::vector<std::string> refused;  // "kernel: reason", best kernel first
  // With SessionOptions::tune: the kernels that can run the node and their times in milliseconds, the cost model's choice first.
  std::vector<std::pair<std::string, double>> timed;
  std::string output;  // type of the first output
};

// A provider chain that the session has compiled or is compiling. After a failure, or with `start_on`, there are several.
struct ChainReport {
  std::vector<std::string> providers;  // in order of preference
  std::string state;                   // "in use", "standby", "compiling", "failed: …", "dropped, next try in 28 s"
  std::uint64_t runs = 0;              // runs that it answered
  std::uint64_t failures = 0;          // runs on which it failed, answered by another chain
};

// A candidate of a measured selection.
struct MeasuredProvider {
  std::string provider;
  double median_ms = 0;  // 0: not measured
  double compile_ms = 0;
  bool chosen = false;
  std::string note;  // why it was not eligible: "differs from cpu …", its error; else empty
};

struct SDX_API Report {
  std::string model;
  std::string runtime = "native";          // "ort" if ONNX Runtime runs at least one node
  std::vector<std::string> providers;      // those that run at least one node, in order of preference
  std::vector<NodeReport> nodes;           // in order of execution; without nodes that were folded away
  std::vector<std::string> fallbacks;      // "wanted X, took Y: reason"
  std::string why;                         // how the providers were chosen: "asked for cuda, cpu", "measured: …"
  std::vector<MeasuredProvider> measured;  // with Select::measured
  std::vector<ChainReport> chains;         // one in normal service
  std::vector<std::string> events;         // service events in order: "run 500: ort:cuda failed (…), answered by cpu"
  std::vector<std::string> warnings;       // about the model (declarations that inference contradicts) and about options
  double load_ms = 0;                      // reading and validating the file
  double init_ms = 0;                      // optimising, choosing kernels, packing weights
  std::string compiled;                    // the cached compiled model that this start mapped; empty: the model was compiled
  std::size_t peak_bytes = 0;              // peak memory of this session's tensors so far

  std::string text() const;
};

// One executed step of a profile. Times are in nanoseconds since the session was opened.
struct ProfileEvent {
  std::string name, op, kernel, provider;
  std::int64_t start_ns = 0, duration_ns = 0;
  std::uint64_t thread = 0;
  std::uint64_t run = 0;
  // The value's type and size, for tensors only: a sequence, a map or nothing has the data type `undefined`, no shape and no
  // bytes.
  struct TensorFacts {
    DataType dtype = DataType::undefined;
    std::vector<std::int64_t> shape;
    std::uint64_t bytes = 0;   // of strings: 0
    bool is_constant = false;  // a weight of the model
  };
  // The node's inputs and outputs in its order, including weights that the kernel holds in a form of its own.
  std::vector<TensorFacts> inputs, outputs;
};

// A loaded, compiled model. Movable. Any number of threads may call const members concurrently; each run has its own memory.
class SDX_API Session {
 public:
  // Reads an .onnx file. Throws Error: io, invalid_model, not_implemented, provider_unavailable, out_of_memory.
  static Session open(const std::filesystem::path& model, const SessionOptions& options = {});
  // The same from memory; the bytes are copied. External data is read from `folder`.
  static Session from_bytes(std::span<const std::byte> model, const SessionOptions& options = {},
                            const std::filesystem::path& folder = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  const std::vector<ValueSpec>& inputs() const;
  const std::vector<ValueSpec>& outputs() const;
  // Fields of the file that are not empty: producer_name, producer_version, domain, description, model_version.
  const std::vector<std::pair<std::string, std::string>>& metadata() const;
  // Key-value pairs that the model's author added (metadata_props), in the file's order. Keys may be those of metadata().
  const std::vector<std::pair<std::string, std::string>>& custom_metadata() const;

  // Runs the model. Inputs are only read and may be views of the caller's memory; the caller owns the outputs. Throws
  // Error(invalid_argument) for missing, unknown or misshapen inputs (naming all of them with their types), runtime_failure,
  // cancelled, deadline_exceeded, out_of_memory. The session stays usable after any error.
  NamedValues run(const NamedValues& inputs, const RunOptions& options = {}) const;

  Report report() const;
  // Steps recorded so far; empty unless SessionOptions::profile is set.
  std::vector<ProfileEvent> profile() const;
  // Writes the same as Chrome trace JSON (chrome://tracing, Perfetto), atomically. Throws Error(io).
  void write_trace(const std::filesystem::path& path) const;

  // The graph as text at one stage: "loaded", "simplified", "claimed" or "planned". Throws Error(invalid_argument) for any other
  // stage.
  std::string dump(std::string_view stage) const;

 private:
  struct Impl;
  friend struct SessionAccess;  // the library's own
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Names of the graph passes, in execution order.
SDX_API std::vector<std::string> pass_names();

}  // namespace sdx
