#pragma once
// Operators of users' libraries as kernels.

#include <memory>

#include "providers/interface/kernel.h"

namespace sdx::cpu {

// The node's `custom` is set. Throws Error naming the library when it cannot make the node's kernel.
std::unique_ptr<Kernel> make_custom(const Node& node);
// The same for one whose operator has `make` (ops/custom.h).
std::unique_ptr<Kernel> make_runner(const Graph& graph, const Node& node);

}  // namespace sdx::cpu
