#pragma once
// Shared by code that changes graphs: questions about nodes and values, readers of values, replacing values, adding nodes.

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx {

// --- nodes and values ----------------------------------------------------------------------------------------------------

// A node of ai.onnx that is still there.
inline bool is_op(const Node& n, std::string_view op) { return !n.removed && n.domain.empty() && n.op_type == op; }
// The same with two inputs that are broadcast as numpy does.
bool is_binary(const Node& n, std::string_view op);
inline ValueId input_of(const Node& n, std::size_t i) { return i < n.inputs.size() ? n.inputs[i] : kNoValue; }
inline bool has_input(const Node& n, std::size_t i) { return input_of(n, i) != kNoValue; }

// The value if it is a constant that no caller can override; null otherwise, and for kNoValue.
SDX_TOOLS_API const Tensor* constant_of(const Graph& g, ValueId v);
inline const Tensor* constant_input(const Graph& g, const Node& n, std::size_t i) { return constant_of(g, input_of(n, i)); }
// The same for graphs as they were read: the values of Constant nodes count, too.
SDX_TOOLS_API const Tensor* fixed_value(const Graph& g, ValueId v);
// The value of a float32 or float64 constant of one element.
std::optional<double> scalar_value(const Graph& g, ValueId v);

SDX_TOOLS_API bool is_output(const Graph& g, ValueId v);
bool is_f32(const Graph& g, ValueId v);
// Null while unknown.
SDX_TOOLS_API const SymShape* shape_of(const Graph& g, ValueId v);
// Whether both are known and equal, symbols included.
bool same_shape(const Graph& g, ValueId a, ValueId b);
inline bool is_const(const Dim& d, std::int64_t value) { return d.is_const() && d.value() == value; }

// The node that makes the value, if it is `op` of ai.onnx with `inputs` inputs; else null.
const Node* made_by(const Graph& g, ValueId v, std::string_view op, std::size_t inputs);

// --- readers -------------------------------------------------------------------------------------------------------------

// The nodes that read each value: those of the graph when this was made, and those added since. Collecting them anew after each
// change would take time proportional to the square of the number of nodes.
class SDX_TOOLS_API Readers {
 public:
  explicit Readers(const Graph& g);

  // Each once, also those that read it through captures; nodes that were removed since may be among them.
  const std::vector<NodeId>& of(ValueId v) const;
  // The one node that reads the value, unless a caller of the graph or a subgraph reads it, too. kNoNode otherwise.
  NodeId only(ValueId v) const;
  // Whether the graph's caller or an existing node reads the value.
  bool is_read(ValueId v) const;

  void add(ValueId v, NodeId reader);
  void clear(ValueId v);
  // Takes in the nodes that were added to the graph.
  void update();
  // Removes the node from the graph and from the readers of its inputs.
  void remove_node(Graph& g, NodeId id);
  // Graph::replace_uses() in time proportional to the readers of `from`, which become readers of `to`.
  void replace(Graph& g, ValueId from, ValueId to);
  // Without outputs of the graph, which replace_outputs() replaces all at once.
  void replace_in_nodes(Graph& g, ValueId from, ValueId to);

 private:
  const Graph* g_;
  std::vector<std::vector<NodeId>> nodes_;  // by value
  NodeId known_;                            // nodes up to here are in it
};

// --- changes -------------------------------------------------------------------------------------------------------------

// Replaces outputs of the graph: value -> what takes its place.
void replace_outputs(Graph& g, const std::map<ValueId, ValueId>& by);

using AttributeList = std::initializer_list<std::pair<const char*, AttributeValue>>;  // of different names
SDX_TOOLS_API Attributes attributes_of(AttributeList list);
// Makes a node of ai.onnx, or of `domain`, without outputs.
SDX_TOOLS_API Node make_node(std::string name, std::string op, int version, std::vector<ValueId> inputs,
                             Attributes attributes = {}, std::string domain = {});
inline Node make_node(std::string name, std::string op, int version, std::vector<ValueId> inputs, AttributeList attributes,
                      std::string domain = {}) {
  return make_node(std::move(name), std::move(op), version, std::move(inputs), attributes_of(attributes), std::move(domain));
}
// Adds the node with `out` as its only output, which is returned.
SDX_TOOLS_API ValueId add_node(Graph& g, Node n, ValueId out);
// The same with a new value.
SDX_TOOLS_API ValueId add_node(Graph& g, Node n, const std::string& out, Type type = {});

// A constant of int64, as Reshape takes it.
ValueId shape_constant(Graph& g, const std::string& name, const std::vector<std::int64_t>& extents);
// Adds a Reshape of v to `out`, which is returned, and its shape as a constant.
ValueId add_reshape(Graph& g, const std::string& name, int version, ValueId v, const std::string& shape_name,
                    const std::vector<std::int64_t>& to, ValueId out);

}  // namespace sdx
