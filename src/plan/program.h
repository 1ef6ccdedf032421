#pragma once
// A graph compiled into steps, and its execution.

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "base/cancel.h"
#include "base/tools_api.h"
#include "graph/graph.h"
#include "plan/expected_shapes.h"
#include "plan/plan.h"
#include "plan/profiler.h"
#include "plan/regions.h"
#include "providers/interface/provider.h"

namespace sdx {
class MappedFile;
}  // namespace sdx

namespace sdx::plan {

// Data that one call of Session::run passes to every step, also in subgraphs.
struct RunEnv {
  StopCondition stop;
  Profiler* profiler = nullptr;  // may be null
  std::uint64_t run = 0;
  std::atomic<std::uint64_t>* seed = nullptr;
  int depth = 0;  // nesting of subgraph calls
  // The step that runs, or that failed, by names in the Program. Other threads may read it during the run.
  std::atomic<const std::string*> provider{nullptr};
};

// Compile once, resolve per input-shape signature, run many times. Immutable apart from its caches; thread-safe.
class SDX_TOOLS_API Program {
 public:
  // `chain`: providers in order of preference; each node goes to the first that claims it. The graph's types are inferred.
  // Constants that no kernel needs any more are dropped, and their file pages released. `regions`: what form_regions() made of
  // the graph before; providers that compile regions get nothing further here.
  Program(Graph graph, std::span<const Provider* const> chain, std::size_t plan_cache_size, Regions regions = {},
          const LowerOptions& lowering = {});
  ~Program();

  // Inputs in the order of graph().inputs(); outputs in the order of graph().outputs(), each owned by the caller. `wanted` may be
  // empty (all) or hold one flag per output; values of unwanted outputs are empty. `bound` may be empty or hold a tensor of the
  // caller's, or nothing, for each output: see RunOptions::bound.
  std::vector<Value> run(std::vector<Value> inputs, RunEnv& env, const std::vector<bool>& wanted = {},
                         const std::vector<Value>& bound = {}) const;

  // Frees memory blocks of `least` bytes and more that wait for the next run.
  void release_memory(std::size_t least) const;

  const Graph& graph() const { return graph_; }
  const std::vector<Step>& steps() const { return steps_; }
  // Expected shapes of each step, and after the last one those of the graph's inputs.
  const ExpectedShapes& expected_shapes() const { return expected_; }
  // Programs of the node's subgraphs, in the order of Node::subgraphs.
  const std::vector<std::unique_ptr<Program>>& children(std::size_t step) const { return children_[step]; }
  // Throws Error(io) if a file whose weights are used in place has been written to.
  void check_files() const;
  // The plan for the declared shapes where they are all fixed, as text; the step list without offsets otherwise.
  std::string dump() const;

 private:
  friend class PlanBuilder;
  friend class Execution;

  std::shared_ptr<const Plan> plan_for(const std::vector<Value>& inputs) const;
  void check_inputs(const std::vector<Type>& types) const;
  void lower_nodes(std::span<const Provider* const> chain, Regions regions, const LowerOptions& lowering);
  void compile_children(std::span<const Provider* const> chain, const LowerOptions& lowering);
  void drop_packed(const Step& step, std::vector<std::uint32_t>& pending);
  void drop_constant(ValueId value);
  void settle_constants();
  void note_files();
  std::unique_ptr<Frame> take_frame(const Plan& plan) const;
  void give_back(const Plan& plan, std::unique_ptr<Frame> frame, bool intact) const;

  Graph graph_;
  std::vector<Step> steps_;
  ExpectedShapes expected_;
  std::vector<std::vector<std::unique_ptr<Program>>> children_;
  std::vector<Value> constants_;                          // by ValueId; aligned where a kernel needs it
  std::vector<std::shared_ptr<const MappedFile>> files_;  // that constants_ are views of, those of the children as well
  std::vector<bool> needed_;                              // while compiling: constants that a step reads when it runs
  std::size_t cache_size_;

  mutable Planner planner_{*this};
  mutable std::mutex mutex_;
  mutable std::list<std::shared_ptr<const Plan>> plans_;  // most recently used first
  mutable std::vector<ArenaBlock> arenas_;                // not in use; shared by all plans of this program
};

}  // namespace sdx::plan
