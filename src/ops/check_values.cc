#include "ops/check_values.h"

#include "base/error.h"
#include "ops/bound_types.h"

namespace sdx::ops {

void check_values(const OpDef& def, std::span<const Value* const> inputs) {
  BoundTypes bound;
  for (std::size_t i = 0; i < inputs.size() && !def.inputs.empty(); ++i) {
    if (inputs[i] == nullptr || !inputs[i]->is_tensor()) continue;
    const Formal& formal = input_formal(def, i);
    const DataType type = inputs[i]->tensor().dtype();
    if ((formal.types & bit(type)) == 0) {
      fail(ErrorCode::runtime_failure, "input {} ('{}') is {}, which {} does not take", i, formal.name, name(type), def.name);
    }
    if (const auto* other = bound.conflict(formal, type)) {
      fail(ErrorCode::runtime_failure, "input {} ('{}') is {}, another one {}; they must have the same element type", i,
           formal.name, name(type), name(other->type));
    }
  }
}

}  // namespace sdx::ops
