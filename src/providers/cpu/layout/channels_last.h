#pragma once
// Depthwise convolutions between values whose channels are last.

#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx::cpu {

// Pass: a depthwise convolution of float32 pictures whose input (and residual) comes from a form with the channels last, [N, H,
// W, C] or [N, H W, C], and is read in one, becomes ChannelsLastConv, which needs no transposition; it takes an activation that
// follows. Other readers get the transposed result. Channels and extents must be constant, the batch need not be.
SDX_TOOLS_API bool channels_last(Graph& graph);

}  // namespace sdx::cpu
