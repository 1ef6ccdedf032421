#pragma once
// Target-independent passes. Each returns whether it changed the graph; see Pass in passes/pass.h for the contract.

#include "graph/graph.h"

namespace sdx::simplify {

// Runs deterministic nodes whose inputs are all constants through their reference kernels. Leaves a node alone when its result
// would be larger than 16 MiB and also larger than its inputs: a file of a few bytes must not turn into gigabytes at load.
bool fold_constants(Graph& graph);

// Dequantised weights that no integer operator took become floats once instead of in every run. 4-bit ones stay.
bool fold_dequantized(Graph& graph);

// Rows of a table that casts and factors make of a constant are taken first, and only these rows are made. For what
// fold_constants leaves because it would be large: an embedding in 8 bits.
bool gather_early(Graph& graph);

// Replaces integer results that inference knows from shapes alone (Shape, Gather of a Shape, …) by constants.
bool fold_shapes(Graph& graph);

// Identity, Dropout without mask, casts to the same type, transpositions that move nothing, reshapes and Resize to the same
// shape, no-op Pad/Slice/Concat/Add 0/Mul 1/Sum of one, and pairs of transpositions that cancel.
bool remove_identities(Graph& graph);

// Conv 1x1 of Concat of Resize(x), y: x is convolved before it is enlarged, and the result added.
bool resize_late(Graph& graph);

// Nodes of one kind with the same inputs and attributes are computed once; equal constants are stored once.
bool share_common(Graph& graph);

// Conv or ConvTranspose followed by a BatchNormalization (inference form) or by Mul/Add with per-channel constants: scale and
// shift move into weights and bias. float32 and float64.
bool fold_batch_norm(Graph& graph);

// Sum of two and more inputs becomes Adds, which fuse with what comes before and after; sums are formed from left to right, as
// the operator's reference does.
bool sum_to_add(Graph& graph);

// com.microsoft BiasGelu, FastGelu with a bias, FusedMatMul (batches in front) and GemmFastGelu in float32 become Add, Transpose,
// MatMul, Mul and Gelu, which fuse with what comes before and after.
bool split_fused(Graph& graph);

// ConvTranspose with stride 1 and constant weights becomes a Conv with turned weights. float32.
bool transposed_conv(Graph& graph);

// Conv after a Pad with constant zeros around pictures takes the padding as its own.
bool pad_conv(Graph& graph);

// Removes nodes whose outputs have no reader.
bool remove_dead(Graph& graph);

}  // namespace sdx::simplify
