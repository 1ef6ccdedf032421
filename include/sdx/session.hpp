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

// Whose engine runs the nodes. As text: "auto", "native", "ort".
enum class Runtime {
  automatic,  // ours, and the vendors' libraries behind the providers
  native,     // our own engine alone
  ort,        // everything through ONNX Runtime's library
};
SDX_API std::string_view name(Runtime runtime) noexcept;
// Letters' case is ignored. Throws Error(invalid_argument) with the closest match.
SDX_API Runtime parse_runtime(std::string_view text);

// How one of several providers is chosen. As text: "order", "measured".
enum class Select {
  order,     // the first of the chain that can be used
  measured,  // the fastest on the first run's inputs
};
SDX_API std::string_view name(Select select) noexcept;
// Letters' case is ignored. Throws Error(invalid_argument) with the closest match.
SDX_API Select parse_select(std::string_view text);

// docs/options.md lists all of them with their ranges and their names in C, Python, the command and project files. Session::open
// throws Error(invalid_argument) for a number out of range and an unknown pass.
struct SessionOptions {
  // Providers in order of preference, by short or ONNX Runtime name ("cuda", "CPUExecutionProvider"), case ignored.
  // Empty: chosen automatically. What no provider takes runs on `cpu`.
  std::vector<std::string> providers;
  // Throw Error(provider_unavailable) instead of falling back to the next provider.
  bool strict = false;
  // Rewrite the graph before running it. Results agree with and without up to rounding.
  bool optimize = true;
  // Passes to leave out, by name (see sdx::pass_names()).
  std::vector<std::string> disabled_passes;
  // Threads of this session, the caller included. 0: the pool shared by all sessions of the process.
  int threads = 0;
  // Cores that this session's worker threads stay on, one each: "auto" (those that the process may use), or a list as taskset
  // takes it ("0,2-3"); the first is the caller's, which is left where it is. Empty: the system moves them. A session with a
  // list has threads of its own, as many as cores unless `threads` says otherwise.
  std::string thread_affinity;
  // Most bytes that tensors of this session may take at a time (weights mapped from the file apart). 0: no limit.
  std::size_t memory_limit = 0;
  // How many input-shape signatures keep their memory plan; the least recently used is dropped.
  std::size_t plan_cache_size = 8;
  // Values for symbolic dimensions ("batch" -> 1), used where the model has such symbols.
  std::vector<std::pair<std::string, std::int64_t>> dimensions;
  // Record the time of every step: see Session::profile().
  bool profile = false;
  // Options for single providers, by provider name and then by the vendor's option names:
  // {{"cuda", {{"device_id", "1"}}}, {"ort:cpu", {…}}}. Options of "X" also count for "ort:X". Throws Error(invalid_argument)
  // with the closest match for an option that the provider does not know.
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, std::string>>>> provider_options;
  // ONNX Runtime's shared library, and OpenVINO's C library; empty: searched for (docs/providers.md).
  std::string ort_library;
  std::string openvino_library;
  // Write what our own engine makes of the model (optimised graph, packed weights) into the cache folder, for later starts that
  // map it instead of making it again: docs/cache.md. Files that are there are used whether or not this is set, unless `cache` is
  // off. For models in files, run by `cpu` alone.
  bool keep_compiled = false;
  // Keep what vendors' compilers make (TensorRT engines, OpenVINO blobs, …) for the next start, in `cache_folder`; where that is
  // empty in SDX_CACHE_DIR, else in $XDG_CACHE_HOME/sdx, else in ~/.cache/sdx, else nowhere.
  bool cache = true;
  std::filesystem::path cache_folder;
  // Shared libraries with operators of your own (sdx/custom_op.h), for this session alone. A model's own functions of the same
  // name win. Session::open throws Error naming the library that is missing, broken, or reports an error.
  std::vector<std::filesystem::path> custom_ops;
  // Where ONNX Runtime's library cannot be had, Runtime::ort runs the model natively with a warning, or opening fails if
  // `strict`.
  Runtime runtime = Runtime::automatic;
  // What automatic selection tries, instead of the platform's own order (`cpu` always comes last); and what it tries first on a
  // kind of machine: {"linux_nvidia" | "linux_amd" | "linux_intel" | "windows_…" | "linux" | "windows" | "darwin", provider}.
  std::vector<std::string> provider_priority;
  std::vector<std::pair<std::string, std::string>> platform_defaults;
  // Select::measured: the candidates run the first request, and the fastest whose results agree with `cpu` is kept, and
  // remembered in the cache folder (docs/providers.md).
  Select select = Select::order;
  // Where the `cpu` provider has several kernels for a node, measure them when the session is opened (about 20 ms for each)
  // instead of trusting the cost model, and remember the times in the cache folder (tuned.json). Only nodes whose shapes are
  // fixed by the model or by `dimensions`. NodeReport::timed tells what was found. Results may differ by rounding from those of
  // other kernels.
  bool tune = false;
  // A provider ("cpu") that answers while those before it in the chain still compile, in the background; then the session
  // switches between two runs. Empty: opening takes as long as compiling.
  std::string start_on;
  // After this time a run, or compiling, of a provider other than `cpu` is left to the next one, and the provider is dropped
  // (with start_on, compiling is limited at closing only). 0: it is waited for.
  std::chrono::milliseconds provider_timeout{0};
  // How long a provider that failed in service is left alone before one run tries it again; doubled after each further failure,
  // up to 20 times this. 0: dropped for good.
  std::chrono::milliseconds provider_retry{30'000};
  // Take NaN in the results of a provider other than `cpu`, where the next provider gives none, for a failure.
  bool reject_nan = false;
  // Where to write one line of JSON for each run (docs/providers.md): "stderr", or a file, which is appended to. Empty: where the
  // environment variable SDX_TELEMETRY says; nowhere without it.
  std::string telemetry;
};

// Cancels runs from another thread. Copies share their state. Thread-safe.
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
  // The run ends with Error(deadline_exceeded) once it has taken longer. Checked between steps and loop iterations.
  std::optional<std::chrono::milliseconds> timeout;
  std::optional<CancelToken> cancel;
  // Names of the outputs to return, in this order; empty: all.
  std::vector<std::string> outputs;
  // Memory of the caller's for outputs, by name: such an output is written there, and the tensor that is returned is this one.
  // It must be writable and of the output's type and shape, else Error(invalid_argument). It may be an input's memory only where
  // the operator that makes the output says so: GroupQueryAttention's present and past, where both have room for all tokens, and
  // the caches of PagedAttention.
  std::vector<std::pair<std::string, Tensor>> bound;
};

// What a model declares about one of its inputs or outputs.
struct ValueSpec {
  std::string name;
  std::string type;  // "float32[batch,3,224,224]", "sequence(map(int64, float32))", …
  bool is_tensor = true;
  DataType dtype = DataType::undefined;  // of a tensor
  bool has_shape = false;                // false: the rank is unknown
  std::vector<std::int64_t> shape;       // -1 where the extent is not fixed
  std::vector<std::string> symbols;      // parallel to shape: the symbol or expression of an extent that is not fixed, else ""
  bool has_default = false;              // an input that may be left out
};

struct NamedValue {
  std::string name;
  Value value;
};

// A short list of values by name, in order.
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
  // Throws Error(invalid_argument) listing the names.
  const Value& at(std::string_view name) const;
  const Tensor& tensor(std::string_view name) const { return at(name).tensor(); }

 private:
  std::vector<NamedValue> items_;
};

// What ran where, and why.
struct NodeReport {
  std::string name;                  // of the node; may be empty
  std::string op;                    // "Conv", "com.microsoft.MatMulNBits"
  std::string provider;              // "cpu"
  std::string kernel;                // "reference" when no fast kernel took the node
  std::vector<std::string> refused;  // "kernel: reason", best kernel first
  // With SessionOptions::tune: kernels that could run the node, and milliseconds; the cost model's choice first.
  std::vector<std::pair<std::string, double>> timed;
  std::string output;  // type of the first output
};

// One chain of providers that a session has compiled, or is compiling: after a failure, or with `start_on`, there are several.
struct ChainReport {
  std::vector<std::string> providers;  // in order of preference
  std::string state;                   // "in use", "standby", "compiling", "failed: …", "dropped, next try in 28 s"
  std::uint64_t runs = 0;              // answered
  std::uint64_t failures = 0;          // runs that it failed and another chain answered
};

// One provider that took part in a measured selection.
struct MeasuredProvider {
  std::string provider;
  double median_ms = 0;  // 0: it has no figures
  double compile_ms = 0;
  bool chosen = false;
  std::string note;  // why it cannot be chosen: "differs from cpu …", its error; else empty
};

struct SDX_API Report {
  std::string model;
  std::string runtime = "native";          // "ort" where ONNX Runtime runs at least one node
  std::vector<std::string> providers;      // that run at least one node, in order of preference
  std::vector<NodeReport> nodes;           // in order of execution; nodes that were folded away are not listed
  std::vector<std::string> fallbacks;      // "wanted X, took Y: reason"
  std::string why;                         // how the providers were chosen: "asked for cuda, cpu", "measured: …"
  std::vector<MeasuredProvider> measured;  // with Select::measured
  std::vector<ChainReport> chains;         // one in ordinary service
  std::vector<std::string> events;         // of the service, in order: "run 500: ort:cuda failed (…), answered by cpu"
  std::vector<std::string> warnings;       // of the model (declarations that inference contradicts), of options
  double load_ms = 0;                      // reading and checking the file
  double init_ms = 0;                      // optimising, choosing kernels, packing weights
  std::string compiled;                    // the compiled model that this start mapped; empty: the model was compiled
  std::size_t peak_bytes = 0;              // most memory that tensors of this session took so far

  std::string text() const;
};

// One executed step, for profiles. Times are nanoseconds since the session was opened.
struct ProfileEvent {
  std::string name, op, kernel, provider;
  std::int64_t start_ns = 0, duration_ns = 0;
  std::uint64_t thread = 0;
  std::uint64_t run = 0;
};

// A loaded, compiled model. Movable. All const members may be called concurrently from any number of threads; each run has
// its own memory.
class SDX_API Session {
 public:
  // Reads an .onnx file. Throws Error: io, invalid_model, not_implemented, provider_unavailable, out_of_memory.
  static Session open(const std::filesystem::path& model, const SessionOptions& options = {});
  // The same from memory; the bytes are copied. External data is looked for in `folder`.
  static Session from_bytes(std::span<const std::byte> model, const SessionOptions& options = {},
                            const std::filesystem::path& folder = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  const std::vector<ValueSpec>& inputs() const;
  const std::vector<ValueSpec>& outputs() const;
  // Metadata of the file: producer, domain, version, description and the model's own key-value pairs.
  const std::vector<std::pair<std::string, std::string>>& metadata() const;

  // Runs the model. Inputs are only read, and may be views of the caller's memory; outputs are owned by the caller.
  // Throws Error(invalid_argument) for a missing, unknown or misshapen input (naming all of them with their types),
  // runtime_failure, cancelled, deadline_exceeded, out_of_memory. The session stays usable after any error.
  NamedValues run(const NamedValues& inputs, const RunOptions& options = {}) const;

  Report report() const;
  // Steps recorded so far; empty unless SessionOptions::profile.
  std::vector<ProfileEvent> profile() const;
  // The same as Chrome trace JSON (chrome://tracing, Perfetto), written atomically. Throws Error(io).
  void write_trace(const std::filesystem::path& path) const;

  // The graph as text at a stage: "loaded", "simplified", "claimed" or "planned".
  // Throws Error(invalid_argument) for another stage.
  std::string dump(std::string_view stage) const;

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Names of the graph passes, in the order in which they run.
SDX_API std::vector<std::string> pass_names();

}  // namespace sdx
