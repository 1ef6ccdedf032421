#pragma once
// Reads models in which ONNX Runtime keeps channels in blocks (domain com.microsoft.nchwc), as it saves them after all its
// optimisations.

#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx {

// Turns operators of com.microsoft.nchwc into those of ai.onnx and com.microsoft (FusedConv): weights get their plain order, and
// channels that only fill a block stay, as zeros. A block has 8 or 16 channels, depending on the machine that saved the model; if
// the model does not tell, this machine's size is assumed, as in ONNX Runtime. Does nothing to other models. Throws
// Error(not_implemented | invalid_model) naming the node, for weights that are not constants, and for forms that ONNX Runtime
// does not write.
SDX_TOOLS_API void unblock_channels(Model& model);

}  // namespace sdx
