#pragma once

#include <memory>
#include <mutex>
#include <sdx/train/checkpoint.hpp>

#include "../object.h"
#include "../signals.h"

namespace sdx::python {

// What the class CheckpointState holds. Whatever trains a state keeps its own reference. Neither states nor what trains them know
// of threads: `mutex` is taken for each access, without the interpreter's lock, since destructors of tensors may need that.
struct SharedState : train::CheckpointState {
  std::mutex mutex;
};
using HeldState = std::shared_ptr<SharedState>;

// What compute() gives, while other threads of Python go on and none works on the same state.
template <class Compute>
auto alone(SharedState& state, const Compute& compute) {
  return interruptible([&] {
    const std::lock_guard lock(state.mutex);
    return compute();
  });
}

// Throws Raised where `object` is not a CheckpointState of the compiled module.
const HeldState& state_of(PyObject* object);

// Adds CheckpointState and the functions that make one.
void add_checkpoints(const Object& module);

}  // namespace sdx::python
