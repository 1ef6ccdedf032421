#pragma once
// Operators of this room whose results' types and shapes the operation knows.

#include <string>
#include <utility>
#include <vector>

#include "array/emitter.h"

namespace sdx::array::detail {

// Like own_op(), for operators that emit_own() adds: inference takes what the operation settled.
OwnOp told_op(const char* name, ops::RunFn run);

// The operation's results by one operator: type and shape of each go with it as attributes.
void emit_own(Emitter& e, const OwnOp& op, std::vector<ValueId> inputs, EmittedAttributes attributes = {});

}  // namespace sdx::array::detail
