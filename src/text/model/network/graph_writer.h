#pragma once
// Building a graph node by node.

#include <string>
#include <utility>
#include <vector>

#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx::text {

using AttributeList = std::vector<std::pair<std::string, AttributeValue>>;

// Stores floats as float32, or rounded to float16; numbers beyond its range become its largest.
Tensor with_type(Tensor floats, DataType type);

class SDX_TOOLS_API GraphWriter {
 public:
  // Opsets as onnxruntime-genai's exports have them.
  GraphWriter();

  Model& model() { return model_; }
  Graph& graph() { return model_.graph; }

  ValueId input(const std::string& name, DataType type, const std::vector<std::string>& extents);  // "batch", "8"
  void output(ValueId value, const std::string& name);
  ValueId constant(const std::string& name, Tensor tensor) { return graph().add_constant(name, std::move(tensor)); }
  ValueId scalar(const std::string& name, float value) { return constant(name, Tensor::scalar(value)); }

  // A node of ai.onnx, com.microsoft ("com.microsoft.Gelu") or sdx ("sdx.GgmlMatMul") with one output.
  ValueId node(const std::string& op, const std::string& name, std::vector<ValueId> inputs, const AttributeList& attributes = {});
  // Adds a node with several outputs; "" leaves one out.
  std::vector<ValueId> nodes(const std::string& op, const std::string& name, std::vector<ValueId> inputs,
                             const std::vector<std::string>& outputs, const AttributeList& attributes = {});

 private:
  Model model_;
};

}  // namespace sdx::text
