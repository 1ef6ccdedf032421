#pragma once
// A session's model compiled for one chain of providers.

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "base/memory.h"
#include "base/thread_pool.h"
#include "base/tools_api.h"
#include "cache/compiled_model.h"
#include "graph/graph.h"
#include "plan/program.h"
#include "session/given/given_inputs.h"
#include "session/selection.h"

namespace sdx::session {

// Sets the first seed of operators without a seed of their own, for all sessions that the process opens after the call.
SDX_TOOLS_API void set_first_seed(std::uint64_t seed) noexcept;
std::uint64_t first_seed() noexcept;

// State that all chains of a session share. Outlives every run, even an abandoned one. Constant once the session is open, apart
// from the counters.
struct SessionContext {
  SessionOptions options;
  Model model;         // prepared; its graph is what programs are compiled from. With `compiled` only its path: see full_model()
  ModelSource source;  // of the model, as providers with a reader of their own take it
  std::vector<ValueSpec> inputs, outputs;
  SharedSymbols symbols;                                 // of `inputs`
  std::vector<bool> may_be_absent;                       // parallel to `inputs`: of an optional type
  std::vector<std::size_t> plain_inputs;                 // index into `inputs` of those without a default
  std::shared_ptr<const cache::CompiledModel> compiled;  // null: programs come from the model
  std::shared_ptr<MemoryBudget> budget;
  std::shared_ptr<BlockKeep> keep;   // null under a memory limit, which kept blocks would not be charged to
  std::shared_ptr<ThreadPool> pool;  // null: the process's own
  std::unique_ptr<plan::Profiler> profiler;
  bool allow_unknown = false;                     // operators that only some provider of the chain may know
  std::shared_ptr<std::atomic<bool>> reject_nan;  // null: NaN is never a failure
  std::atomic<std::uint64_t> runs{0};
  std::atomic<std::uint64_t> seed{first_seed()};

  // The prepared model. If a compiled one has answered so far, it is read by this call. Throws Error, also if its file has
  // changed since the session was opened.
  const Model& full_model() const;

 private:
  mutable std::mutex reading_;
  mutable std::unique_ptr<const Model> late_;  // guarded by reading_
};

// Programs differ in what they take for granted. Variant 0 treats inputs with defaults as constants, fixed extents as fixed, and
// axes with one symbol as equally long. A run that overrides a default (1), brings other extents than the file declares (2: many
// files declare the size they were exported with, and work at others), or gives one symbol two sizes (4: many files name every
// extent that they leave open "N", and inputs of two sizes broadcast) uses a variant that is compiled when first needed. In
// variant 2 nothing is known of any extent, so that it serves runs of the third kind as well.
inline constexpr std::size_t kOverrides = 1, kOtherExtents = 2, kOwnSymbols = 4, kVariants = 8;

// One call of Session::run, checked.
struct Request {
  std::vector<Value> values;  // in the order of SessionContext::inputs
  std::size_t which = 0;      // the variant
  std::vector<bool> wanted;   // one flag per output; empty: all
  std::vector<Value> bound;   // the caller's tensor, or nothing, per output; empty: none
  StopCondition stop;
  std::uint64_t number = 0;                  // of the run, from 0
  std::shared_ptr<plan::Profiler> profiler;  // of this run; null: the session's
};

// Thread-safe.
class CompiledChain {
 public:
  // Compiles variant 0. Throws Error for nodes that no provider can run, and with `strict` for nodes that one of the chain
  // cannot. `compiling` is called with the place in the chain of the provider whose turn it is. `recording`, if not null,
  // receives the parts of variant 0 that are to be kept.
  CompiledChain(std::shared_ptr<SessionContext> context, Selection chain, const std::function<void(int)>& compiling = nullptr,
                cache::Recording* recording = nullptr);

  // Outputs in the model's order, each owned by the caller or shared with other holders of the same tensor.
  std::vector<Value> run(const Request& request, plan::RunEnv& env) const;

  const plan::Program& program() const { return *variants_[0]; }
  const Selection& selection() const { return chain_; }
  std::string label() const;                     // "ort:cuda,cpu"
  bool runs(const std::string& provider) const;  // at least one node
  // The providers that run nodes, in order of execution, and the runtime behind them ("native", "ort").
  const std::string& providers() const { return providers_; }
  const std::string& runtime() const { return runtime_; }
  // Variant 0 comes from SessionContext::compiled.
  bool from_compiled() const { return from_compiled_; }
  // "ort:cuda cannot compile 12 nodes: …"
  std::vector<std::string> failures() const;

 private:
  std::unique_ptr<plan::Program> make_variant(std::size_t which, const std::function<void(int)>& compiling,
                                              std::vector<std::string>& failures, cache::Recording* recording = nullptr) const;
  const plan::Program& variant(std::size_t which, plan::RunEnv& env) const;

  std::shared_ptr<SessionContext> context_;
  Selection chain_;
  std::string providers_, runtime_;
  mutable bool from_compiled_ = false;                      // set by the constructor
  std::vector<std::string> names_;                          // of the chain
  mutable std::mutex compiling_;                            // held while other variants than 0 are made
  mutable std::atomic<const std::string*> busy_ = nullptr;  // whose turn it is then: one of names_
  mutable std::mutex mutex_;                                // guards failures_ and variants_ but the first
  mutable std::array<std::unique_ptr<plan::Program>, kVariants> variants_;
  mutable std::vector<std::string> failures_;
};

}  // namespace sdx::session
