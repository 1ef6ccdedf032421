#pragma once
// Model-local functions (FunctionProto, IR version 8 and later).

#include <string_view>

#include "graph/graph.h"
#include "tensor/pb.h"

namespace sdx {

// Reads one FunctionProto: signature, defaults, opsets. The body stays serialised in Function::bytes.
// `source` lends its budget for sparse tensors, and its external data to defaults. Throws Error(invalid_model).
Function read_function(std::string_view message, PbSource& source);

// Replaces every node that calls one of model.functions, also in subgraphs and in other functions' bodies, by the function's
// body, and empties model.functions. Where a function has the name of a built-in operator, the function wins. Attributes that
// refer to the function's attributes get the call's values, else the function's defaults, else they are left out.
// Throws Error(invalid_model): recursion, nesting above 64, a call that does not fit the signature, a broken body;
// Error(out_of_memory): more than half a million nodes, or far more memory than the file's size explains.
// `external`: where tensors of the bodies find external data; null: such tensors are refused.
void inline_functions(Model& model, ExternalData* external = nullptr);

}  // namespace sdx
