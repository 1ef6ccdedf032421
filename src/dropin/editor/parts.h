#pragma once
// Models that programs build from parts.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dropin/custom/attribute.h"
#include "dropin/objects.h"
#include "graph/graph.h"

namespace sdx::dropin {

struct OrtGraph;

struct OrtValueInfo {
  std::string name;
  OrtTypeInfo type;
  const OrtGraph* graph = nullptr;  // that it is part of
};

struct OrtNode {
  std::string name, op_type, domain;
  std::vector<std::string> inputs, outputs;  // empty: left out
  std::vector<OrtOpAttr> attributes;
  std::size_t id = 0;
  const OrtGraph* graph = nullptr;
};

// Owns its parts. Not thread-safe while parts are added.
struct OrtGraph {
  std::string name = "graph";
  std::vector<std::unique_ptr<OrtValueInfo>> inputs, outputs;
  std::vector<std::unique_ptr<OrtNode>> nodes;
  std::map<std::string, std::unique_ptr<OrtValue>, std::less<>> initializers;
  const std::map<std::string, int>* opsets = nullptr;  // of its model
};

struct OrtModel {
  std::map<std::string, int> opsets;  // by domain, "" for ai.onnx
  std::unique_ptr<OrtGraph> graph;
};

// Throws OrtError for a type that cannot be part of a model.
Type model_type(const OrtTypeInfo& info);

// The model in our representation; tensors are shared with it. Throws OrtError and Error saying which part is wrong.
Model build_model(const OrtModel& model);

// Adds the nodes, initializers and opsets of `more` to a model; where it has inputs or outputs, they replace the model's.
void extend_model(Model& model, const OrtModel& more);

}  // namespace sdx::dropin
