#pragma once
// By which names ONNX Runtime's kernels ask for the types of their arguments.

#include <string>
#include <string_view>
#include <vector>

namespace sdx {

namespace ops {
struct OpDef;
}

struct TypeNames {
  std::vector<std::string> inputs, outputs;  // of the formal arguments, by their places
};

// Of the operator as it is since that opset version.
TypeNames type_names(const ops::OpDef& def, int since);

}  // namespace sdx
