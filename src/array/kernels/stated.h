#pragma once
// Operators of this room's own: building has settled their results' types, so the node states them.

#include "array/emitter.h"
#include "ops/context.h"

namespace sdx::array::detail {

// An operator whose results are what the operation at hand says, with params.ints as attribute "ints".
// `run` has the inputs and finds attributes by name.
void emit_stated_results(Emitter& e, const OwnOp& op, std::vector<ValueId> inputs, EmittedAttributes attributes = {});
// Of all the operation's inputs.
void emit_stated_results(Emitter& e, const OwnOp& op);
// The operation's one result, with these integers as attribute "ints".
void emit_stated_result(Emitter& e, const OwnOp& op, std::vector<ValueId> inputs, std::vector<std::int64_t> ints);
// One result of this type, for operators that are part of an operation.
ValueId emit_stated(Emitter& e, const OwnOp& op, std::vector<ValueId> inputs, Dtype dtype, const Shape& shape,
                    EmittedAttributes attributes = {});

OwnOp stated_op(const char* name, ops::RunFn run);
// Whose output may overwrite input 0, which `run` has it begin with by start_from_input().
OwnOp updating_op(const char* name, ops::RunFn run);
void start_from_input(ops::OpContext& c, Tensor& out);

// The stated output, to write into.
Tensor& stated_output(ops::OpContext& c, std::size_t i = 0);

}  // namespace sdx::array::detail
