#pragma once
// Pools of threads as environments and options ask for them.

#include <memory>

#include "base/thread_pool.h"
#include "dropin/objects.h"

namespace sdx::dropin {

// What a session with these options computes on; null: as the engine's own options say. Throws OrtError and Error where the
// program's own functions make no threads.
std::shared_ptr<ThreadPool> pool_for(OrtEnv& env, const OrtSessionOptions& options);

}  // namespace sdx::dropin
