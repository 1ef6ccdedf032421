#pragma once
// What a graph declares about its inputs and outputs, as users see it.

#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "graph/graph.h"

namespace sdx {

ValueSpec spec_of(std::string name, const Type& type);
std::vector<ValueSpec> input_specs(const Graph& graph);

}  // namespace sdx
