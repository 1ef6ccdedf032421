#pragma once
// Memory layouts of tensors for this provider's kernels: convolution networks in blocks of channels (ops/conv/blocked.cc).

#include <cstdint>

#include "graph/graph.h"

namespace sdx::cpu {

// Rewrites float32 convolutions over pictures, and the poolings, elementwise operators and concatenations between them, to work
// on tensors [N, ceil(C / block), H, W, block], with BlockChannels and UnblockChannels at the edges. Nodes keep their names;
// elementwise operators keep their type. Channel counts must be constant, batch and extents need not be. `block` is the
// number of channels in a block. Returns whether it changed anything.
bool block_channels(Graph& graph, std::int64_t block);

}  // namespace sdx::cpu
