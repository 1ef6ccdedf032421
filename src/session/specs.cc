#include "session/specs.h"

namespace sdx {

ValueSpec spec_of(std::string name, const Type& type) {
  ValueSpec spec;
  spec.name = std::move(name);
  spec.type = type.str();
  spec.is_tensor = type.is_tensor();
  if (!type.is_tensor()) return spec;
  spec.dtype = type.elem;
  spec.has_shape = type.shape.has_value();
  if (!type.shape) return spec;
  for (const Dim& d : *type.shape) {
    spec.shape.push_back(d.is_const() ? d.value() : -1);
    spec.symbols.push_back(d.is_symbolic() ? d.str() : std::string());
  }
  return spec;
}

std::vector<ValueSpec> input_specs(const Graph& graph) {
  std::vector<ValueSpec> specs;
  for (const ValueId v : graph.inputs()) {
    specs.push_back(spec_of(graph.value(v).name, graph.value(v).declared));
    specs.back().has_default = graph.value(v).constant.has_value();
  }
  return specs;
}

}  // namespace sdx
