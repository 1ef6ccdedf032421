#pragma once
// Questions of the passes over quantised graphs about DequantizeLinear and QuantizeLinear nodes.

#include "graph/edit.h"

namespace sdx::fuse {

inline bool is_byte(DataType t) { return t == DataType::int8 || t == DataType::uint8; }

// The scale of a quantising node: constant float32, positive and finite, one element or `channels` of them; null: not so.
const Tensor* scale_of(const Graph& g, const Node& n, std::int64_t channels);
// Whether the zero point is left out, or a constant of one element or of `channels` elements.
bool zero_fits(const Graph& g, const Node& n, std::int64_t channels);
// A single zero point as a number; 0 where it is left out.
std::int64_t zero_value(const Graph& g, const Node& n);

// The DequantizeLinear that gives input i of the node, with float32 as its result; kNoNode: something else gives it.
NodeId dequantizer(const Graph& g, const Node& n, std::size_t i);
// The same, of one byte tensor with one scale and zero point.
NodeId byte_dequantizer(const Graph& g, const Node& n, std::size_t i);

// The QuantizeLinear to bytes, with one scale, that is the only reader of the value; kNoNode: there is none.
NodeId only_quantizer(const Graph& g, ValueId v, const Readers& readers);

// The same, where Relu or Clip may stand before it whose bounds quantising applies anyway: then `between` is that node.
// Quantising is monotonic, so it may come first: the bounds become those of the quantised range, or lie outside of it.
struct Quantizer {
  NodeId node = kNoNode;
  NodeId between = kNoNode;
};
Quantizer clamping_quantizer(const Graph& g, ValueId v, const Readers& readers);

// The node's zero point, or a new constant 0 of type `type` where it has none.
ValueId zero_point(Graph& g, const Node& n, DataType type);

}  // namespace sdx::fuse
