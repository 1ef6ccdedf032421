#pragma once
// Checks what a provider returns before other code relies on it.

#include <atomic>
#include <memory>
#include <string>

#include "graph/graph.h"
#include "providers/interface/kernel.h"

namespace sdx::plan {

// The kernel of a region, with checks of its results: element type, rank and the extents that inference knows. An impossible
// result is Error(runtime_failure) naming provider, value, what was expected and what came. With `reject_nan` (null: without),
// NaN in a result while no input has any is the same failure, as long as that flag is set.
std::unique_ptr<Kernel> guard_results(std::unique_ptr<Kernel> kernel, const Graph& region, std::string provider,
                                      std::shared_ptr<const std::atomic<bool>> reject_nan);

// True for a tensor of floats with at least one NaN.
bool has_nan(const Value& value);

}  // namespace sdx::plan
