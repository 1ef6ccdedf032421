#pragma once
// Inputs that nobody reads after the running node: what it makes of them may take their place.

#include <utility>

#include "ops/context.h"

namespace sdx::ops {

// What a RunServices may be besides.
class LastUses {
 public:
  virtual ~LastUses() = default;
  // The value that `input` points to if no later step and nobody outside reads it, else null.
  virtual Value* last_use(const Value* input) = 0;
};

// Input `i`: taken away from whoever runs the node where that is its last use and it is no tensor, else another holder of it.
inline Value take_container(OpContext& c, std::size_t i) {
  const Value& given = c.input_value(i);
  auto* uses = given.is_sequence() || given.is_map() ? dynamic_cast<LastUses*>(&c.services()) : nullptr;
  Value* own = uses != nullptr ? uses->last_use(&given) : nullptr;
  return own != nullptr ? std::exchange(*own, Value()) : given;
}

}  // namespace sdx::ops
