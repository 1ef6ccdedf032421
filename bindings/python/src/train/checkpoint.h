#pragma once

#include <memory>
#include <mutex>
#include <sdx/train/checkpoint.hpp>

#include "../object.h"
#include "../signals.h"

namespace sdx::python {

// The content of the class CheckpointState. Trainers of a state keep a reference of their own. Neither states nor trainers are
// thread-safe, so each access locks `mutex`, without the interpreter's lock, since destructors of tensors may need that one.
struct SharedState : train::CheckpointState {
  std::mutex mutex;
};
using HeldState = std::shared_ptr<SharedState>;

// Returns compute()'s result. Other threads of Python run meanwhile, but none works on the same state.
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
