#pragma once
// Changing graphs, and which of their nodes are to be changed.

#include <sdx/quantize.hpp>
#include <set>
#include <string>
#include <vector>

#include "graph/edit.h"
#include "quantize/numbers/params.h"

namespace sdx::quantize {

bool is_float(DataType type);  // of 32, 16 or 64 bits

// Adds nodes and constants to one graph.
class Editor {
 public:
  Editor(Graph& graph, int opset);

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  int opset() const { return opset_; }
  // Returns the only output, which is new.
  ValueId op(const char* op, std::vector<ValueId> inputs, const std::string& output, Attributes attributes = {});
  // Adds any operator; the outputs may be values without a producer. com.microsoft has version 1. If another node has the name, a
  // number is appended: ONNX Runtime refuses models with two nodes of one name.
  NodeId node(const std::string& name, const char* op, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
              Attributes attributes = {}, const char* domain = "");
  ValueId value(const std::string& name, DataType type);
  ValueId constant(const std::string& name, Tensor tensor) { return graph_.add_constant(name, std::move(tensor)); }

 private:
  Graph& graph_;
  int opset_;
  std::set<std::string> names_;  // of nodes
};

// The nodes that the options choose among those that a mode knows.
class Choice {
 public:
  // `known`: operators that the mode can quantise. Throws Error(invalid_argument) with the closest match for other operators, and
  // for names that no node has.
  Choice(const Graph& graph, const QuantSelection& selection, std::vector<std::string> known, bool subgraphs);
  bool wants(const Graph& graph, const Node& node) const;

 private:
  std::vector<std::string> ops_, only_, without_;
};

// Notes for the report.
void note_kept(QuantReport& report, const Graph& graph, const Node& node, std::string why);
void note_quantized(QuantReport& report, const std::string& op);

}  // namespace sdx::quantize
