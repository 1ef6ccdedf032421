#include "ops/check_values.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sdx::ops {

void check_values(const OpDef& def, std::span<const Value* const> inputs) {
  std::vector<std::pair<std::string_view, DataType>> bound;
  for (std::size_t i = 0; i < inputs.size() && !def.inputs.empty(); ++i) {
    if (inputs[i] == nullptr || !inputs[i]->is_tensor()) continue;
    const Formal& formal = def.inputs[std::min(i, def.inputs.size() - 1)];
    const DataType type = inputs[i]->tensor().dtype();
    if ((formal.types & bit(type)) == 0) {
      fail(ErrorCode::runtime_failure, "input {} ('{}') is {}, which {} does not take", i, formal.name, name(type), def.name);
    }
    if (formal.type_var.empty()) continue;
    const auto it = std::find_if(bound.begin(), bound.end(), [&](const auto& b) { return b.first == formal.type_var; });
    if (it == bound.end()) {
      bound.emplace_back(formal.type_var, type);
    } else if (it->second != type) {
      fail(ErrorCode::runtime_failure, "input {} ('{}') is {}, another one {}; they must have the same element type", i,
           formal.name, name(type), name(it->second));
    }
  }
}

}  // namespace sdx::ops
