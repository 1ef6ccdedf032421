#pragma once
// Choosing among kernels by the clock.

#include <memory>
#include <string>
#include <vector>

#include "cache/tuned.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {

// Returns this entry's fastest kernel for the node, measured by this call or before, with the times of all kernels that it
// offers. Empty, and without times, if the entry does not take the node, offers no choice, or the node's shapes are not known
// yet. `tuned` may be null.
std::string tuned_kernel(const Graph& graph, NodeId id, const KernelEntry& entry, cache::TunedChoices* tuned,
                         std::vector<cache::KernelTime>& times);

// Why the node's kernels cannot be timed before a run; empty: they can.
std::string untimeable(const Graph& graph, const Node& node);

// All that the time of one of the node's kernels depends on, on this machine, with current_pool().
std::string tuning_key(const Graph& graph, const Node& node);

// Runs each kernel on the same made-up inputs in turn with the others, for about 20 ms each and at least 5 times. Returns the
// fastest time of each, in their order: other processes only make it longer. Throws Error as the kernels do.
std::vector<cache::KernelTime> time_kernels(const Graph& graph, const Node& node,
                                            const std::vector<std::unique_ptr<Kernel>>& kernels);

// The one that is to be used: the first, which the cost model chose, unless another took at least 3 % less.
std::size_t fastest(const std::vector<cache::KernelTime>& times);

}  // namespace sdx::cpu
