#pragma once
// Compiled models by the shapes of their inputs, and one run of them.

#include <list>
#include <memory>
#include <span>
#include <vector>

#include <sdx/tensor.hpp>

#include "base/thread_pool.h"
#include "plan/program.h"
#include "train/step/training_graph.h"

namespace sdx::train {

// The compiled form for one set of shapes. Programs of one model that differ in `variant` differ in their use of gradients.
struct Compiled {
  std::vector<std::int64_t> key;
  std::unique_ptr<plan::Program> program;
};

// The few that were used last.
class ProgramCache {
 public:
  // Calls `make()`, which compiles, if there is no program for these inputs.
  template <class Make>
  const plan::Program& get(std::span<const Tensor> inputs, std::int64_t variant, Make&& make) {
    make_key(inputs, variant);
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->key != key_) continue;
      entries_.splice(entries_.begin(), entries_, it);
      return *entries_.front().program;
    }
    entries_.push_front({key_, make()});
    if (entries_.size() > kMost) entries_.pop_back();
    return *entries_.front().program;
  }
  // Lets go of programs of other variants.
  void keep_only(std::int64_t variant);

 private:
  static constexpr std::size_t kMost = 16;  // lengths of texts, last batches, and both kinds where gradients are added up
  void make_key(std::span<const Tensor> inputs, std::int64_t variant);

  std::vector<std::int64_t> key_;
  std::list<Compiled> entries_;
};

// State that a module's runs share.
class Runner {
 public:
  // `seed` 0: a seed from the clock.
  Runner(int threads, std::uint64_t seed);
  ThreadPool& pool() const { return pool_ ? *pool_ : *ThreadPool::shared(); }
  std::vector<Value> run(const plan::Program& program, std::vector<Value> inputs, const std::vector<Value>& bound = {});
  std::uint64_t random_state() const { return seed_; }
  void set_random_state(std::uint64_t state) { seed_ = state; }

 private:
  std::unique_ptr<ThreadPool> pool_;  // null: the process's
  std::uint64_t seed_;
};

// Values for the inputs of a TrainingGraph's programs: the user's, then the parameters. Throws like check_parameters().
std::vector<Value> input_values(const TrainingGraph& model, std::span<const Tensor> inputs, CheckpointState& state);

// Throws Error(invalid_argument) if the state has changed its form since the model was read.
void check_parameters(const TrainingGraph& model, const CheckpointState& state);

// The first trained parameter with an element that is infinite or NaN; null: there is none.
const Parameter* first_not_finite(const CheckpointState& state);

// Copies parameters in foreign memory into the state's own, so that they can be changed in place. Throws
// Error(invalid_argument) for a nominal checkpoint.
void own_parameters(const TrainingGraph& model, CheckpointState& state);

}  // namespace sdx::train
