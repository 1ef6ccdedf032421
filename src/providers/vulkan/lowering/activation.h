#pragma once
// Functions that shaders apply to their results.

#include <string>

#include "graph/graph.h"
#include "kernels/vulkan/shaders.h"

namespace sdx::vulkan {

struct FunctionSpec {
  Function function = Function::identity;
  float alpha = 0, beta = 0, gamma = 0;
};

// Of a node with a fused activation: why the shaders do not fuse it; empty: they do.
std::string refuse_activation(const Node& node);
FunctionSpec fused_function(const Node& node);

}  // namespace sdx::vulkan
