#pragma once
// Arguments whose formals share a type variable have one element type.

#include <algorithm>
#include <string_view>
#include <vector>

#include "ops/op.h"

namespace sdx::ops {

// The element types of type variables, as the arguments of one node bind them.
class BoundTypes {
 public:
  struct Bound {
    std::string_view variable, formal;
    DataType type;
  };
  // The earlier binding of the formal's variable to another type, or null. A formal without a variable binds nothing.
  const Bound* conflict(const Formal& formal, DataType type) {
    if (formal.type_var.empty()) return nullptr;
    const auto it = std::find_if(bound_.begin(), bound_.end(), [&](const Bound& b) { return b.variable == formal.type_var; });
    if (it != bound_.end()) return it->type == type ? nullptr : &*it;
    bound_.push_back({formal.type_var, formal.name, type});
    return nullptr;
  }

 private:
  std::vector<Bound> bound_;
};

// The formal of argument number `i`; a variadic one, the last, stands for all that follow.
inline const Formal& input_formal(const OpDef& def, std::size_t i) { return def.inputs[std::min(i, def.inputs.size() - 1)]; }

}  // namespace sdx::ops
