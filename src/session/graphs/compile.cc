#include "session/graphs/compile.h"

#include <vector>

#include "passes/pass.h"
#include "providers/cpu/layout/fuse_chains.h"
#include "providers/table.h"

namespace sdx::session {
namespace {

const Provider* cpu_provider() {
  static const Provider* const cpu = find_provider("cpu");
  return cpu;
}

}  // namespace

void optimize_for_cpu(Graph& graph) {
  static const std::vector<Pass>& last = *new const std::vector<Pass>([] {
    std::vector<Pass> all(cpu_provider()->passes().begin(), cpu_provider()->passes().end());
    all.push_back({"fuse-chains", cpu::fuse_chains, "computes neighbouring elementwise operators in one pass over memory"});
    return all;
  }());
  PassOptions options;
  options.last = last;
  run_passes(graph, options);
}

std::unique_ptr<plan::Program> lower_for_cpu(Graph graph) {
  const Provider* chain[] = {cpu_provider()};
  return std::make_unique<plan::Program>(std::move(graph), chain, 1);
}

std::unique_ptr<plan::Program> compile_for_cpu(Graph graph) {
  optimize_for_cpu(graph);
  return lower_for_cpu(std::move(graph));
}

}  // namespace sdx::session
