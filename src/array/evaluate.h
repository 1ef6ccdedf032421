#pragma once
// Computing lazy arrays: a walk over what they depend on becomes graphs, which are compiled once for all walks alike.

#include <mutex>
#include <span>

#include <sdx/array/array.hpp>

#include "array/node.h"

namespace sdx::array::detail {

// Computes the arrays, and what else in between is still held by somebody, so that it is not computed again. Throws what building
// the graph or running it throws; then the operations are as they were, and may be tried again. Only where the memory of an
// argument was given up already do they stay failed.
void evaluate(std::span<const array> arrays);

// The same without waiting. What fails is as it was, so that whoever reads the numbers computes it again and gets the error.
void evaluate_later(std::span<const array> arrays);

// Whether Kind::parts serves better than a program: a value of a program takes 1.5 KB and 2.4 us.
bool has_many_parts(const Node& node);

// While it lives no other thread changes what nodes hold. Neither arrays may be let go of nor anything computed meanwhile.
std::unique_lock<std::mutex> hold_states();

// For fork(): holds new evaluations up, and waits until those under way have ended; lets them go on.
void pause_evaluations();
void resume_evaluations(bool in_child);

}  // namespace sdx::array::detail
