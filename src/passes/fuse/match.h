#pragma once
// What patterns of nodes are made of.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace sdx::fuse {

using Uses = std::vector<std::vector<NodeId>>;  // Graph::uses()

// Input i when it is a constant that no caller can override; else null.
const Tensor* constant_input(const Graph& g, const Node& n, std::size_t i);
const Tensor* constant_value(const Graph& g, ValueId v);
// The value of a float32 or float64 constant of one element.
std::optional<double> scalar_value(const Graph& g, ValueId v);

inline bool has_input(const Node& n, std::size_t i) { return i < n.inputs.size() && n.inputs[i] != kNoValue; }

bool is_output(const Graph& g, ValueId v);
// The one node that reads the value, if nobody else does: not the caller, no subgraph. kNoNode otherwise.
NodeId only_reader(const Graph& g, ValueId v, const Uses& uses);
// Graph::replace_uses() in time proportional to `readers`, which hold all nodes that read `from`, and perhaps nodes that do not.
void replace_readers(Graph& g, ValueId from, ValueId to, const std::vector<NodeId>& readers);
// The same for uses that are kept up to date: the readers of `from` become readers of `to`.
void replace_uses(Graph& g, ValueId from, ValueId to, Uses& uses);
// Without outputs of the graph, which replace_outputs() replaces all at once.
void replace_nodes_uses(Graph& g, ValueId from, ValueId to, Uses& uses);
// Replaces outputs of the graph: value -> what takes its place.
void replace_outputs(Graph& g, const std::map<ValueId, ValueId>& by);
// The node that makes the value, where it is `op` of ai.onnx with `inputs` inputs; else null.
const Node* made_by(const Graph& g, ValueId v, std::string_view op, std::size_t inputs);

bool is_f32(const Graph& g, ValueId v);
// Both known and equal, symbols included.
bool same_shape(const Graph& g, ValueId a, ValueId b);
// Null while unknown.
const SymShape* shape_of(const Graph& g, ValueId v);

inline bool is_const(const Dim& d, std::int64_t value) { return d.is_const() && d.value() == value; }

// `perm` of a Transpose equals `wanted`.
bool has_perm(const Node& n, std::initializer_list<std::int64_t> wanted);

// An ai.onnx node with two inputs whose broadcasting is numpy's.
bool is_binary(const Node& n, std::string_view op);
// A constant of int64, as Reshape takes it.
ValueId shape_constant(Graph& g, const std::string& name, const std::vector<std::int64_t>& extents);
// Adds the node `name`, a Reshape of v to `out`, which is returned, and its shape as a constant.
ValueId add_reshape(Graph& g, const std::string& name, int version, ValueId v, const std::string& shape_name,
                    const std::vector<std::int64_t>& to, ValueId out);

}  // namespace sdx::fuse
