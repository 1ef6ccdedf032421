#pragma once
// parallel_for (thread_pool.h) for libraries that take the engine from libsdx.

#include <cstdint>
#include <functional>

#include "base/tools_api.h"

namespace sdx {

// Calls fn over disjoint ranges that cover [0, count), each at least half of `grain` long, on the caller and on the process's
// workers; returns when all are done. The first exception thrown by fn is rethrown here.
SDX_TOOLS_API void in_parallel(std::int64_t count, std::int64_t grain,
                               const std::function<void(std::int64_t begin, std::int64_t end)>& fn);

}  // namespace sdx
