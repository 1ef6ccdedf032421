#include "array/evaluate.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <iterator>
#include <list>
#include <mutex>
#include <new>
#include <optional>
#include <thread>

#include "array/memory.h"
#include "array/program_cache.h"
#include "array/streams.h"
#include "array/trace.h"
#include "base/error.h"
#include "base/system/processors.h"
#include "base/thread_pool.h"

namespace sdx::array::detail {
namespace {

using State = Node::State;

// A longer trace is computed in parts of this many operations.
constexpr std::size_t kMostAtOnce = 4096;

// The inputs and parameters of a computed operation. They are freed without the lock: deleters and functions of users may compute
// arrays themselves.
struct Held {
  std::vector<array> inputs;
  Params params;
};
using Gone = std::vector<Held>;

// Keeps nodes that were let go of while long walks still go over them. Whoever holds a bin also holds all later ones.
struct Bin {
  std::list<Gone> gone;
  std::shared_ptr<Bin> next;
};

// Guards the states of all nodes, the marks of walks, and the inputs that a computed node gives up. Never destroyed: the threads
// of streams use it while the process ends.
struct Evaluation {
  std::mutex mutex;
  std::condition_variable changed;  // a part has been computed, or the process has forked
  std::uint32_t under_way = 0;      // programs that run
  std::vector<Trace*> computed;     // whose nodes some thread has made its own, from then until their states change
  std::uint64_t generation = 0;     // counts changes of states: while it stays, so do walks
  bool paused = false;
  std::shared_ptr<Bin> bin = std::make_shared<Bin>();  // the last one
};

Evaluation& evaluation() {
  static Evaluation& instance = *new Evaluation;
  return instance;
}

using Lock = std::unique_lock<std::mutex>;

thread_local int running_here = 0;  // programs, on this thread: one that forks does not wait for its own

void handle_forks() {
  // Handlers run in the reverse order: blocks are locked (base/memory.cc) when no program runs any more.
  array_memory();
  static std::once_flag once;
  std::call_once(
      once, [] { at_fork([] { pause_evaluations(); }, [] { resume_evaluations(false); }, [] { resume_evaluations(true); }); });
}

State state_of(const Node& node) { return node.state.load(std::memory_order_acquire); }

// Sets the state of all nodes of a trace. The caller holds the lock, as for every change of a state.
void set_state(const Trace& trace, State state) {
  ++evaluation().generation;
  for (Node* node : trace.order) node->state.store(state, std::memory_order_release);
}

// Collects what one evaluation lets go of, and frees it when the evaluation ends, unless a long walk of another thread may still
// go over it. Made before the lock is taken, so that it frees without the lock.
class Rubbish {
 public:
  Gone& gone() { return all_.front(); }
  void add(std::list<Gone>& more) noexcept { all_.splice(all_.end(), more); }
  // Under the lock, at the end.
  void keep_for_walks() noexcept {
    const std::shared_ptr<Bin>& bin = evaluation().bin;
    if (bin.use_count() > 1) bin->gone.splice(bin->gone.end(), all_);
  }

 private:
  std::list<Gone> all_ = std::list<Gone>(1);
};

// Calls keep_for_walks() while the lock is still held: it is made after the lock was taken.
class KeepForWalks {
 public:
  explicit KeepForWalks(Rubbish& rubbish) : rubbish_(rubbish) {}
  ~KeepForWalks() { rubbish_.keep_for_walks(); }
  KeepForWalks(const KeepForWalks&) = delete;
  KeepForWalks& operator=(const KeepForWalks&) = delete;

 private:
  Rubbish& rubbish_;
};

// While it lives, nodes that other threads compute stay, even if nothing else needs them. Made and destroyed under the lock.
class LongWalk {
 public:
  explicit LongWalk(Rubbish& rubbish) : rubbish_(rubbish), mine_(std::make_shared<Bin>()) {
    evaluation().bin->next = mine_;
    evaluation().bin = mine_;
  }
  ~LongWalk() {
    while (mine_ != nullptr && mine_.use_count() == 1) {
      rubbish_.add(mine_->gone);
      mine_ = std::shared_ptr<Bin>(std::move(mine_->next));
    }
    if (mine_ == evaluation().bin && mine_.use_count() == 2) rubbish_.add(mine_->gone);
  }
  LongWalk(const LongWalk&) = delete;
  LongWalk& operator=(const LongWalk&) = delete;

 private:
  Rubbish& rubbish_;
  std::shared_ptr<Bin> mine_;
};

// Takes the inputs and parameters of a computed node, unless a transformation that goes on `keeps` them. The caller holds the
// lock.
void let_go(Node& node, bool keeps, Gone& gone) {
  if (node.traced != 0 && keeps) return;
  gone.push_back({std::move(node.inputs), std::move(node.params)});
  node.inputs.clear();
  node.params = {};
  node.kind = nullptr;
}

bool same_owner(const Tensor& a, const Tensor& b) {
  return a.owner() != nullptr && !a.owner().owner_before(b.owner()) && !b.owner().owner_before(a.owner());
}

// Computes operations that only look at data in another way, and those that need no program, and removes them from the walk. The
// caller holds the lock.
void compute_views(Walk& walk, Gone& gone) {
  std::erase_if(walk, [&](Node* node) {
    const bool parts = has_many_parts(*node);
    if ((node->kind->view == nullptr && !parts) || state_of(*node->inputs[0].node()) != State::done) return false;
    const Node& from = *node->inputs[0].node();
    const Tensor& data = from.results[node->inputs[0].index()].tensor;
    if (parts) {
      node->kind->parts(data, node->params, node->results);
    } else {
      node->results[0].tensor = node->kind->view(data, node->results[0].shape);
      node->own_memory = from.own_memory;
    }
    let_go(*node, tracing(), gone);
    node->state.store(State::done, std::memory_order_release);
    ++evaluation().generation;
    return true;
  });
}

// Tells for each leaf whether nobody can ask for its memory again. The caller holds the lock.
std::vector<bool> spare_leaves(const Trace& trace) {
  std::vector<bool> spare;
  for (std::size_t i = 0; i < trace.leaves.size(); ++i) {
    const Node& node = *trace.leaves[i].node();
    const Tensor& t = node.results[trace.leaves[i].index()].tensor;
    if (!node.own_memory || t.bytes() < session::kLeastDonated) continue;
    const bool alone = node.refs.load(std::memory_order_acquire) == trace.leaf_uses[i] + 1 && node.results.size() == 1 &&
                       node.traced == 0 && t.writable() && t.owner().use_count() == 1;
    if (!alone) continue;
    spare.resize(trace.leaves.size(), false);
    spare[i] = true;
  }
  // Operations that stay known may compute their results from these leaves once more.
  if (!spare.empty() && std::any_of(trace.order.begin(), trace.order.end(), [](const Node* n) { return n->traced != 0; }))
    return {};
  return spare;
}

// Compiles and runs the trace's program. The caller does not hold the lock.
std::vector<Value> run(Trace& trace, std::vector<bool> spare) {
  const LentAllocation memory(array_memory());
  const PoolScope awake(current_pool());  // in loops threads do not fall asleep between two evaluations
  const std::shared_ptr<const Compiled> compiled = program_for(trace);
  std::vector<Value> inputs, bound;
  inputs.reserve(trace.leaves.size());
  for (const array& leaf : trace.leaves) inputs.emplace_back(leaf.node()->results[leaf.index()].tensor);
  if (!spare.empty()) {
    for (const session::Donation& d : compiled->donations) {
      bound.resize(trace.wanted.size());
      if (!spare[d.input] || !bound[d.output].empty()) continue;
      const Result& result = trace.order[trace.wanted[d.output].first]->results[trace.wanted[d.output].second];
      Tensor& from = inputs[d.input].tensor();
      bound.resize(trace.wanted.size());
      bound[d.output] =
          Tensor::view_mutable(from.mutable_data(), result.dtype, result.shape, std::const_pointer_cast<void>(from.owner()));
      spare[d.input] = false;
      trace.gave_up = true;
    }
  }
  plan::RunEnv env;
  std::vector<Value> values = compiled->program->run(std::move(inputs), env, {}, bound);
  compiled->program->release_memory(kLeastKept);
  return values;
}

// Stores the results in the nodes. The caller holds the lock.
void store(const Trace& trace, std::vector<Value> values, Gone& gone) {
  for (std::size_t i = 0; i < trace.wanted.size(); ++i) {
    Node& node = *trace.order[trace.wanted[i].first];
    Tensor& result = node.results[trace.wanted[i].second].tensor;
    result = std::move(values[i].tensor());
    if (result.bytes() < session::kLeastDonated || node.results.size() != 1) continue;
    node.own_memory = result.owner() != nullptr;
    for (const array& leaf : trace.leaves) {
      const Node& from = *leaf.node();
      if (!from.own_memory && same_owner(from.results[leaf.index()].tensor, result)) node.own_memory = false;
    }
  }
  for (Node* node : trace.order) let_go(*node, trace.keeps, gone);
  set_state(trace, State::done);
}

// Returns the exception that is being handled, or null if there is no memory for it.
std::shared_ptr<const Error> error_at_hand() noexcept {
  try {
    try {
      throw;
    } catch (const Error& error) {
      return std::make_shared<const Error>(error);
    } catch (const std::exception& error) {
      return std::make_shared<const Error>(ErrorCode::runtime_failure, error.what());
    } catch (...) {
      return std::make_shared<const Error>(ErrorCode::runtime_failure, "an operation threw an exception of unknown type");
    }
  } catch (...) {
    return nullptr;
  }
}

void set_failed(const Trace& trace, const std::shared_ptr<const Error>& why) {
  for (Node* node : trace.order) node->error = why;
  set_state(trace, State::failed);
}

// Runs the trace and returns its results. The caller holds the lock, which is released while the program runs.
std::vector<Value> compute_values(Trace& trace, Lock& lock) {
  Evaluation& e = evaluation();
  trace.thread = std::this_thread::get_id();
  e.computed.push_back(&trace);
  e.changed.wait(lock, [&] { return !e.paused || running_here != 0; });
  std::vector<bool> spare = spare_leaves(trace);
  const auto leave = [&] {
    lock.lock();
    --running_here;
    --e.under_way;
  };
  ++e.under_way;
  ++running_here;
  lock.unlock();
  try {
    std::vector<Value> values = run(trace, std::move(spare));
    leave();
    return values;
  } catch (...) {
    leave();
    throw;
  }
}

// Computes the trace, whose nodes are running and whose leaves are data. The caller holds the lock, which is released meanwhile.
// If it throws, the nodes are lazy or failed.
void compute(Trace& trace, Lock& lock, Gone& gone) {
  Evaluation& e = evaluation();
  try {
    gone.reserve(gone.size() + trace.order.size() + 1);
    store(trace, compute_values(trace, lock), gone);
  } catch (...) {
    if (trace.gave_up) {
      set_failed(trace, error_at_hand());
    } else {
      set_state(trace, State::lazy);
    }
    std::erase(e.computed, &trace);
    e.changed.notify_all();
    throw;
  }
  std::erase(e.computed, &trace);
  e.changed.notify_all();
}

// Waits until no leaf is under way, and returns whether all are data. The caller holds the lock.
bool wait_for_leaves(const Trace& trace, Lock& lock) {
  for (const array& leaf : trace.leaves) {
    evaluation().changed.wait(lock, [&] { return state_of(*leaf.node()) != State::running; });
    if (state_of(*leaf.node()) != State::done) return false;
  }
  return true;
}

// Computes a queued trace; runs on the thread of its stream.
void compute_queued(Trace& trace) {
  Rubbish rubbish;
  Lock lock(evaluation().mutex);
  const KeepForWalks keep(rubbish);
  if (trace.ended) return;  // before the process forked, which has the queue still
  trace.ended = true;
  if (!wait_for_leaves(trace, lock)) {
    set_state(trace, State::lazy);
    evaluation().changed.notify_all();
    return;
  }
  try {
    compute(trace, lock, rubbish.gone());
  } catch (...) {
    // Whoever reads the numbers gets the error: lazy nodes are computed again, failed ones keep theirs.
  }
}

void queue(std::vector<Node*>& part, const std::shared_ptr<const std::vector<array>>& held) {
  if (part.empty()) return;
  const auto trace = std::make_shared<Trace>(trace_of(part));
  trace->held = held;
  const Stream stream = part.front()->stream;
  put(stream, [trace] { compute_queued(*trace); });
  set_state(*trace, State::running);
  part.clear();
}

// Puts the walk's operations into the queues of their streams, in parts that wait only for earlier parts. The caller holds the
// lock.
void queue_all(const Walk& walk, std::span<const array> arrays) {
  const auto held = std::make_shared<const std::vector<array>>(arrays.begin(), arrays.end());
  std::vector<std::vector<Node*>> open;  // by stream
  const auto part_of = [&](const Stream& stream) -> std::vector<Node*>& {
    const auto at = static_cast<std::size_t>(std::max(0, stream.index));
    if (at >= open.size()) {
      is_idle(stream);  // throws where there is no such stream
      open.resize(at + 1);
    }
    return open[at];
  };
  for (Node* node : walk) {
    for (const array& input : node->inputs) {
      const Node& from = *input.node();
      if (is_lazy(from) && from.stream != node->stream) queue(part_of(from.stream), held);
    }
    std::vector<Node*>& part = part_of(node->stream);
    part.push_back(node);
    if (part.size() >= kMostAtOnce) queue(part, held);
  }
  for (std::vector<Node*>& part : open) queue(part, held);
}

bool can_work_here(const Walk& walk) {
  const Stream stream = walk.front()->stream;
  return std::all_of(walk.begin(), walk.end(), [&](const Node* n) { return n->stream == stream; }) && is_idle(stream);
}

// Computes a trace whose leaves are data on this thread. The caller holds the lock.
void compute_here(Trace& trace, Lock& lock, Gone& gone) {
  set_state(trace, State::running);
  try {
    compute(trace, lock, gone);
  } catch (...) {
    gone.push_back({std::move(trace.leaves), {}});
    throw;
  }
  gone.push_back({std::move(trace.leaves), {}});
}

// Computes a walk that is one part, unless another thread changes one of its nodes meanwhile. The caller holds the lock.
void compute_short(const Walk& walk, Lock& lock, Gone& gone) {
  const std::uint64_t before = evaluation().generation;
  Trace trace = trace_of(walk);
  if (wait_for_leaves(trace, lock) && evaluation().generation == before) return compute_here(trace, lock, gone);
  gone.push_back({std::move(trace.leaves), {}});
}

// Computes a walk part by part, and leaves out what other threads compute meanwhile. To walk anew after each part of another
// thread would take time by the square of the length. The caller holds the lock.
void compute_long(const Walk& walk, Lock& lock, Rubbish& rubbish) {
  const LongWalk stays(rubbish);
  Walk part;
  for (std::size_t first = 0; first < walk.size();) {
    const std::size_t last = std::min(walk.size(), first + kMostAtOnce);
    part.clear();
    std::copy_if(walk.data() + first, walk.data() + last, std::back_inserter(part), [](const Node* n) { return is_lazy(*n); });
    if (part.empty()) {
      first = last;
      continue;
    }
    const std::uint64_t before = evaluation().generation;
    Trace trace = trace_of(part);
    const bool ready = wait_for_leaves(trace, lock);
    if (ready && evaluation().generation == before) {
      compute_here(trace, lock, rubbish.gone());
      first = last;
      continue;
    }
    rubbish.gone().push_back({std::move(trace.leaves), {}});
    if (!ready) return;
  }
}

// Returns the array that an operation with many parts takes apart, if it is not computed yet.
std::optional<array> whole_of_parts(const Walk& walk) {
  const auto at = std::find_if(walk.begin(), walk.end(), [](const Node* n) { return has_many_parts(*n); });
  return at == walk.end() ? std::nullopt : std::optional((*at)->inputs[0]);
}

}  // namespace

bool has_many_parts(const Node& node) {
  constexpr std::size_t kMany = 256, kSmall = 1024, kAll = std::size_t{64} << 20;
  if (node.kind->parts == nullptr || node.results.size() < kMany) return false;
  const array& whole = node.inputs[0];
  return whole.nbytes() <= kAll && whole.nbytes() <= kSmall * node.results.size();
}

void evaluate(std::span<const array> arrays) {
  handle_forks();
  Rubbish rubbish;
  Lock lock(evaluation().mutex);
  const KeepForWalks keep(rubbish);
  for (bool queued = false;;) {
    Walk walk = walk_from(arrays);
    compute_views(walk, rubbish.gone());
    if (const std::optional<array> whole = whole_of_parts(walk)) {
      lock.unlock();
      evaluate({&*whole, 1});
      lock.lock();
      continue;
    }
    if (walk.empty()) {
      // All arrays are data or under way.
      const auto waits = std::find_if(arrays.begin(), arrays.end(), [](const array& a) { return !a.is_evaluated(); });
      if (waits == arrays.end()) return;
      evaluation().changed.wait(lock, [&] { return state_of(*waits->node()) != State::running; });
    } else if (queued || can_work_here(walk)) {
      // Queued nodes that are lazy again have failed: computing them here throws the error.
      if (walk.size() > kMostAtOnce) {
        compute_long(walk, lock, rubbish);
      } else {
        compute_short(walk, lock, rubbish.gone());
      }
    } else {
      queue_all(walk, arrays);
      queued = true;
    }
  }
}

void evaluate_later(std::span<const array> arrays) {
  handle_forks();
  Rubbish rubbish;
  const Lock lock(evaluation().mutex);
  const KeepForWalks keep(rubbish);
  Walk walk = walk_from(arrays);
  compute_views(walk, rubbish.gone());
  if (!walk.empty()) queue_all(walk, arrays);
}

std::unique_lock<std::mutex> hold_states() { return Lock(evaluation().mutex); }

void pause_evaluations() {
  Evaluation& e = evaluation();
  Lock lock(e.mutex);
  e.paused = true;
  // A thread that forks within a program does not wait: that program would have to end first. Others wait for 10 seconds at most,
  // since a program may itself wait for the forking thread.
  if (running_here == 0) e.changed.wait_for(lock, std::chrono::seconds(10), [&] { return e.under_way == 0; });
  lock_streams();
  lock.release();
}

namespace {

// In a child process, gives up what threads of the parent compute, because nobody will end it. Queues begin again with what was
// queued.
void take_over(std::vector<Trace*>& computed) {
  const auto error =
      std::make_shared<const Error>(ErrorCode::runtime_failure, "the process forked while this array was computed");
  std::erase_if(computed, [&](Trace* trace) {
    if (trace->thread == std::this_thread::get_id()) return false;
    if (trace->gave_up) {
      set_failed(*trace, error);
    } else if (trace->held == nullptr) {
      set_state(*trace, State::lazy);
    } else {
      trace->ended = false;
    }
    return true;
  });
}

}  // namespace

void resume_evaluations(bool in_child) {
  Evaluation& e = evaluation();
  const Lock lock(e.mutex, std::adopt_lock);
  e.paused = false;
  if (in_child) {
    new (&e.changed) std::condition_variable;  // whoever waited on it is in the parent
    e.under_way = static_cast<std::uint32_t>(running_here);
    take_over(e.computed);
    restart_streams();
  }
  unlock_streams();
  e.changed.notify_all();
}

}  // namespace sdx::array::detail

namespace sdx::array {

void eval(std::span<const array> arrays) { detail::evaluate(arrays); }
void async_eval(std::span<const array> arrays) { detail::evaluate_later(arrays); }

}  // namespace sdx::array
