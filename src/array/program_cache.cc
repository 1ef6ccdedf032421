#include "array/program_cache.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <unordered_map>

#include "array/backend.h"
#include "array/emitter.h"
#include "array/memory.h"
#include "base/log.h"
#include "base/memory.h"
#include "ops/infer.h"
#include "session/graphs/compile.h"
#include "session/pipeline.h"

namespace sdx::array::detail {
namespace {

// About 4 KB each: some 400 MB at most.
constexpr std::size_t kMostOperations = 100'000, kBytesOfOne = 4000;

Type type_of(const array& a) { return Type::tensor(a.dtype(), to_sym(a.shape())); }

Graph graph_of(const Trace& trace) {
  Graph graph;
  std::vector<ValueId> leaves;
  for (const array& leaf : trace.leaves) leaves.push_back(graph.add_input({}, type_of(leaf)));
  std::vector<std::vector<ValueId>> results;
  results.reserve(trace.order.size());
  Emitter emitter(graph);
  std::size_t next = 0;
  for (const Node* node : trace.order) {
    std::vector<ValueId> inputs;
    for (std::size_t i = 0; i < node->inputs.size(); ++i, ++next) {
      const Source& s = trace.sources[next];
      inputs.push_back(s.leaf ? leaves[s.at] : results[s.at][s.result]);
    }
    results.push_back(emitter.run(*node, std::move(inputs)));
  }
  for (const auto& [at, result] : trace.wanted)
    graph.add_output(results[at][result], "r" + std::to_string(graph.outputs().size()));
  return graph;
}

std::unique_ptr<plan::Program> compile(const Trace& trace) {
  Graph graph = graph_of(trace);
  ops::infer_in_place(graph);
  const auto selection = backend_chain(trace.order.front()->stream.device.type);
  if (selection->chain.size() == 1) return session::compile_for_cpu(std::move(graph));
  Model model;
  model.ir_version = 10;
  model.opsets[""] = kOpset;
  SessionOptions options;
  options.plan_cache_size = 1;
  session::Origin origin;
  origin.model = &model;
  std::vector<std::string> fallbacks;
  auto program = session::compile(std::move(graph), *selection, options, origin, fallbacks);
  for (const std::string& f : fallbacks) log::debug("{}", f);
  return program;
}

// In operations. What a program keeps between its runs counts as well: constants, and the memory for values on the way, which it
// gives back only where that is large.
std::size_t weight_of(const plan::Program& program) {
  const Graph& graph = program.graph();
  std::vector<bool> leaves(graph.values().size(), false);
  for (const ValueId v : graph.outputs()) leaves[v] = true;
  std::size_t constants = 0, on_the_way = 0;
  for (ValueId v = 0; v < graph.values().size(); ++v) {
    const ValueInfo& info = graph.value(v);
    if (info.constant) constants += info.constant->bytes();
  }
  for (const Step& step : program.steps()) {
    for (const ValueId v : graph.node(step.node).outputs) {
      if (v == kNoValue || leaves[v]) continue;
      const Type& t = graph.value(v).type;
      if (!t.is_tensor() || !t.has_static_shape() || t.elem == DataType::undefined) continue;
      on_the_way += byte_size(t.elem, element_count(to_shape(*t.shape)));
    }
  }
  return program.steps().size() + 1 + (constants + std::min(on_the_way, kLeastKept)) / kBytesOfOne;
}

class Cache {
  using List = std::list<std::shared_ptr<const Compiled>>;

 public:
  std::shared_ptr<const Compiled> find(const Trace& trace, std::uint64_t hash) {
    const std::lock_guard lock(mutex_);
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      if ((*it->second)->key != trace.key) continue;
      recent_.splice(recent_.begin(), recent_, it->second);
      return *it->second;
    }
    return nullptr;
  }

  // What had to go for it: to be let go of without the lock, for it may hold functions of users.
  [[nodiscard]] List add(std::shared_ptr<const Compiled> compiled, std::uint64_t hash) {
    List gone;
    const std::lock_guard lock(mutex_);
    weight_ += compiled->weight;
    recent_.push_front(std::move(compiled));
    by_hash_.emplace(hash, recent_.begin());
    while (weight_ > kMostOperations && recent_.size() > 1) drop_oldest(gone);
    return gone;
  }

 private:
  void drop_oldest(List& gone) {
    const auto oldest = std::prev(recent_.end());
    weight_ -= (*oldest)->weight;
    const auto [first, last] = by_hash_.equal_range(hash_of((*oldest)->key));
    for (auto it = first; it != last; ++it) {
      if (it->second != oldest) continue;
      by_hash_.erase(it);
      break;
    }
    gone.splice(gone.end(), recent_, oldest);
  }

  std::mutex mutex_;
  List recent_;  // used last, first
  std::unordered_multimap<std::uint64_t, List::iterator> by_hash_;
  std::size_t weight_ = 0;
};

// Never destroyed: arrays may be computed while the process ends.
Cache& cache() {
  static Cache& instance = *new Cache;
  return instance;
}

}  // namespace

std::shared_ptr<const Compiled> program_for(const Trace& trace) {
  const std::uint64_t hash = hash_of(trace.key);
  if (auto known = cache().find(trace, hash)) return known;
  auto made = std::make_shared<Compiled>();
  made->key = trace.key;
  for (const Node* node : trace.order) {
    if (held_in_key(*node)) made->held.push_back(node->params.held);
  }
  made->program = compile(trace);
  made->donations = session::find_donations(*made->program);
  made->weight = weight_of(*made->program);
  const auto gone = cache().add(made, hash);
  return made;
}

}  // namespace sdx::array::detail
