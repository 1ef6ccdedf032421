#pragma once
// The values of one run, and the memory that they lie in.

#include <memory>
#include <vector>

#include <sdx/tensor.hpp>

#include "plan/plan.h"

namespace sdx::plan {

// Makes a frame that holds constants and known values. `constants`: those of the program, by ValueId.
std::unique_ptr<Frame> make_frame(const Program& program, const Plan& plan, const std::vector<Value>& constants);

// Makes values in the arena point into frame.arena.
void bind_arena(const Plan& plan, Frame& frame);

// Hands an idle frame of `from` on to `to`, where both have the same steps and memory: a new frame costs more than the values
// that differ. `changed`: by ValueId, the values with another type or other known elements.
void hand_on_frame(const Plan& from, const Plan& to, const std::vector<char>& changed);

}  // namespace sdx::plan
