#pragma once
// What a graph declares about its inputs and outputs, as users see it.

#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx::session {

SDX_TOOLS_API ValueSpec spec_of(std::string name, const Type& type);
SDX_TOOLS_API std::vector<ValueSpec> input_specs(const Graph& graph);

// What is wrong with a sequence or map, given for a declaration such as "sequence(float32)"; empty: nothing. Kernels are chosen
// for the types that are declared, so that numbers of another type would be misread.
std::string container_problem(const std::string& declared, const Value& value);

}  // namespace sdx::session
