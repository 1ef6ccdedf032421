#pragma once
// Inputs that nothing reads after the running node, so that its results may reuse them.

#include <utility>

#include "ops/context.h"

namespace sdx::ops {

// A further interface that a RunServices may implement.
class LastUses {
 public:
  virtual ~LastUses() = default;
  // The value that `input` points to if no later step and no caller reads it, else null.
  virtual Value* last_use(const Value* input) = 0;
};

// Input `i`: moved out if this is its last use and it is no tensor, else a copy of the handle.
inline Value take_container(OpContext& c, std::size_t i) {
  const Value& given = c.input_value(i);
  auto* uses = given.is_sequence() || given.is_map() ? dynamic_cast<LastUses*>(&c.services()) : nullptr;
  Value* own = uses != nullptr ? uses->last_use(&given) : nullptr;
  return own != nullptr ? std::exchange(*own, Value()) : given;
}

}  // namespace sdx::ops
