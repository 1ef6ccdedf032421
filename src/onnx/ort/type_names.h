#pragma once
// The names under which ONNX Runtime's kernels look up the types of their arguments.

#include <string>
#include <vector>

namespace sdx {

namespace ops {
struct OpDef;
}

struct TypeNames {
  std::vector<std::string> inputs, outputs;  // of the formal arguments, by their places
};

// The names for the operator as it is since that opset version.
TypeNames type_names(const ops::OpDef& def, int since);

}  // namespace sdx
