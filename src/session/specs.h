#pragma once
// A graph's declarations of its inputs and outputs, in the form that users see.

#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx::session {

SDX_TOOLS_API ValueSpec spec_of(std::string name, const Type& type);
SDX_TOOLS_API std::vector<ValueSpec> input_specs(const Graph& graph);

// The mistake in a sequence or map given for a declaration such as "sequence(float32)"; empty: none. Kernels are chosen for the
// declared types, so numbers of another type would be misread.
std::string container_problem(const std::string& declared, const Value& value);

}  // namespace sdx::session
