#pragma once
// Pools of threads as environments and options ask for them.

#include <memory>

#include "base/thread_pool.h"
#include "dropin/objects.h"

namespace sdx::dropin {

// The pool for sessions with these options; null: the engine's own options decide. Throws OrtError and Error if the program's own
// functions make no threads.
std::shared_ptr<ThreadPool> pool_for(OrtEnv& env, const OrtSessionOptions& options);

}  // namespace sdx::dropin
