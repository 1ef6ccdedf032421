#pragma once
// Passes that join neighbouring nodes into the fused operators of com.microsoft. Each returns whether it changed the graph; see
// Pass in passes/pass.h for the contract.

#include "graph/graph.h"

namespace sdx::fuse {

// x * Sigmoid(x) becomes Swish (ai.onnx 24), before that com.microsoft QuickGelu with alpha 1. float32 only.
bool fuse_silu(Graph& graph);

// Conv with constant weights, or Gemm, whose only reader is an activation: FusedConv, FusedGemm. For Conv also the addition of a
// tensor of the same shape before it, as input Z. float32 only.
bool fuse_epilogues(Graph& graph);

// float16 and bfloat16 operators with one floating type become float32 ones, with Cast where values of 16 bits come in or are
// still read; between them values are not rounded. Products with constant matrices become Linear of the domain sdx, whose weights
// keep their 16 bits; other nodes with a constant above a million elements stay.
bool widen_half(Graph& graph);

// DequantizeLinear before Conv and QuantizeLinear after it: QLinearConv. Constant 8-bit weights and scales, one scale for the
// input and one for the result, a bias in the steps of the sums. Likewise com.microsoft QLinearAdd (equal shapes), QGemm,
// QLinearMatMul and MatMulIntegerToFloat (constant weights), QLinearAveragePool (images), QLinearGlobalAveragePool,
// QLinearSigmoid, QLinearLeakyRelu (also for Relu and for quantising anew), QLinearConcat; Gather works on tables of bytes;
// MaxPool, Split, Reshape, Flatten, Transpose, Squeeze and Unsqueeze work on bytes where both sides are quantised alike. Relu or
// Clip before QuantizeLinear goes where it changes nothing.
bool qdq_to_integer(Graph& graph);

// Nodes between a tensor of bytes and a QuantizeLinear that compute each byte from the byte in the same place become sdx
// ByteTable.
bool byte_tables(Graph& graph);

// MatMul and Gemm (alpha and beta 1, bias a vector) with a constant matrix of 4 or 8 bits that a DequantizeLinear with blocks
// along the inner axis makes float32, block_size a power of two from 16 to 4096: com.microsoft MatMulNBits. Of infinite operands
// it makes NaN.
bool fuse_block_weights(Graph& graph);

// MatMul with constant weights, also behind a Transpose, becomes sdx Linear. float32 only.
bool weights_in_place(Graph& graph);

// Linear, without activation or residual, of a Transpose that moves axis 1 to the end, and Transpose back: Conv by single pixels.
// Weights constant, planes of known extents and at least as large as the channels are many.
bool channel_products(Graph& graph);

// Linear takes in the bias, the residual and the activation that follow it.
bool fuse_linear(Graph& graph);

// GatherElements, and ScatterElements on the first axis, whose indices Expand repeats over whole rows of the data, become Gather
// and ScatterND. ScatterElements: int64 indices.
bool elements_to_rows(Graph& graph);

// Linear of one-hot vectors, Cast(Equal(i, 0 .. N - 1)), becomes Gather of the weights' rows, if finite. float32 only.
bool fuse_one_hot(Graph& graph);

// MatMulInteger with constant weights, Cast to float32, Mul by the product of both scales and Add of a bias:
// com.microsoft MatMulIntegerToFloat. One scale and zero point for the left operand. A MatMulIntegerToFloat without a bias takes
// in the one that is added to it.
bool fuse_integer_products(Graph& graph);

// x cos + concat(-x2, x1) sin becomes sdx RotaryEmbedding, also where it turns only the first elements of each head, before the
// heads are transposed. The tables' halves must be seen to be equal. float32 only.
bool fuse_rotary(Graph& graph);

// Queries, keys and values that are taken from a whole, transposed for its heads, are taken before: Gather(Transpose(x [b, t, 3,
// n, h])) becomes Transpose(Gather(x)), by way of the flat [b, t, n h].
bool fuse_stacked_heads(Graph& graph);

// Softmax(scale Q K' + mask) V becomes sdx Attention, with the splitting and joining of heads, grouped queries and caches.
// float32 only.
bool fuse_attention(Graph& graph);

// Single operations that compute Gelu, its tanh approximation or x * Sigmoid(alpha x) become Gelu, FastGelu or QuickGelu of
// com.microsoft. float32 only.
bool fuse_gelu(Graph& graph);

// Normalisation over the last axis from single operations, with a scale of one axis: com.microsoft LayerNormalization (PyTorch's
// and TensorFlow's forms) or SimplifiedLayerNormalization. float32 only.
bool fuse_layer_norm(Graph& graph);

// QLinearConv over images of bytes takes and gives them with the channels last, between Transposes; QLinear operators and MaxPool
// whose operands come from such Transposes follow. Constant 2-D weights; one group, one channel or at least eight per group.
bool bytes_channels_last(Graph& graph);

}  // namespace sdx::fuse
