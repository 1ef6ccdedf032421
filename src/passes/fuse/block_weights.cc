// DequantizeLinear of a constant matrix in blocks (ai.onnx 21, block_size) before MatMul or Gemm becomes com.microsoft
// MatMulNBits, which multiplies with the packed integers: a token of a language model reads an eighth of the memory, and nothing
// is dequantised.

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "base/thread_pool.h"
#include "graph/edit.h"
#include "ops/matrix/signatures.h"
#include "ops/quant/signatures.h"
#include "passes/fuse/fuse.h"
#include "tensor/types.h"

namespace sdx::fuse {
namespace {

// The quantised matrix that is operand 1, [K, N] or, transposed, [N, K].
struct Blocks {
  Tensor weights, scales;
  std::optional<Tensor> zeros;
  std::int64_t k = 0, n = 0, block = 0, count = 0;  // count: blocks along K
  int bits = 0;
  bool transposed = false;

  // The position of row k, column n in a matrix whose extent along K is `rows`.
  std::int64_t at(std::int64_t row, std::int64_t column, std::int64_t rows) const {
    return transposed ? column * rows + row : row * n + column;
  }
};

bool is_signed(DataType t) { return t == DataType::int4 || t == DataType::int8; }

// An infinite scale times a code that stands for 0 is NaN, whichever comes first.
bool all_finite(const Tensor& scales) {
  const Tensor t = scales.aligned();
  return std::ranges::all_of(t.values<float>(), [](float v) { return std::isfinite(v); });
}

std::optional<Blocks> blocks_of(const Graph& g, const Node& n, bool transposed) {
  const NodeId maker = g.value(n.inputs[1]).producer;
  if (maker == kNoNode) return std::nullopt;
  const Node& d = g.node(maker);
  if (d.op_type != "DequantizeLinear" || !d.domain.empty() || !is_f32(g, n.inputs[1])) return std::nullopt;
  const Tensor *w = constant_input(g, d, 0), *scales = constant_input(g, d, 1);
  if (w == nullptr || scales == nullptr || w->rank() != 2 || scales->rank() != 2 || scales->dtype() != DataType::float32)
    return std::nullopt;
  const DataType type = w->dtype();
  if (type != DataType::int4 && type != DataType::uint4 && type != DataType::int8 && type != DataType::uint8) return std::nullopt;
  Blocks b{*w, *scales, std::nullopt, w->dim(transposed ? 1 : 0), w->dim(transposed ? 0 : 1)};
  b.transposed = transposed;
  b.bits = bit_width(type);
  const auto attr = ops::parse<ops::QuantizeAttrs>(d);
  b.block = attr.block_size;
  const std::int64_t axis = attr.axis, wanted = transposed ? 1 : 0;
  if (axis != wanted && axis != wanted - 2) return std::nullopt;
  if (b.block < 16 || b.block > 4096 || !std::has_single_bit(static_cast<std::uint64_t>(b.block)) || w->size() == 0)
    return std::nullopt;
  b.count = (b.k + b.block - 1) / b.block;
  const Shape shape = transposed ? Shape{b.n, b.count} : Shape{b.count, b.n};
  if (scales->shape() != shape || !all_finite(*scales)) return std::nullopt;
  if (d.inputs.size() > 2 && d.inputs[2] != kNoValue) {
    const Tensor* zeros = constant_input(g, d, 2);
    if (zeros == nullptr || zeros->dtype() != type || zeros->shape() != shape) return std::nullopt;
    b.zeros = *zeros;
  }
  return b;
}

// Codes are unsigned in MatMulNBits: signed ones move up by half the range, where its zero point is when none is given.
std::uint8_t code(const Tensor& t, int bits, std::int64_t i) {
  const std::uint8_t raw = bits == 4 ? get_packed(t.data(), 4, i) : static_cast<const std::uint8_t*>(t.data())[i];
  return is_signed(t.dtype()) ? raw ^ static_cast<std::uint8_t>(1U << (bits - 1)) : raw;
}

void put(std::uint8_t* to, int bits, std::int64_t i, std::uint8_t value) {
  if (bits == 4) {
    set_packed(to, 4, i, value);
  } else {
    to[i] = value;
  }
}

// Arranges `rows` codes of each column; a column has `line` bytes.
Tensor by_column(const Blocks& b, const Tensor& codes, std::int64_t rows, Shape shape, std::int64_t line) {
  Tensor out(DataType::uint8, std::move(shape));
  auto* to = static_cast<std::uint8_t*>(out.mutable_data());
  parallel_for(b.n, 16, [&](std::int64_t begin, std::int64_t end) {
    std::fill(to + begin * line, to + end * line, std::uint8_t{0});
    for (std::int64_t n = begin; n < end; ++n) {
      for (std::int64_t k = 0; k < rows; ++k) put(to + n * line, b.bits, k, code(codes, b.bits, b.at(k, n, rows)));
    }
  });
  return out;
}

Tensor scales_by_column(const Blocks& b) {
  const Tensor from = b.scales.aligned();
  Tensor out(DataType::float32, {b.n * b.count});
  for (std::int64_t n = 0; n < b.n; ++n) {
    for (std::int64_t i = 0; i < b.count; ++i) {
      out.mutable_values<float>()[static_cast<std::size_t>(n * b.count + i)] =
          from.values<float>()[static_cast<std::size_t>(b.at(i, n, b.count))];
    }
  }
  return out;
}

// The zero points. Unsigned codes without any mean zero points of 0, which are written, since MatMulNBits would assume half the
// range.
std::optional<Tensor> zeros_by_column(const Blocks& b) {
  const std::int64_t line = (b.count * b.bits + 7) / 8;
  if (b.zeros) return by_column(b, *b.zeros, b.count, {b.n * line}, line);
  if (is_signed(b.weights.dtype())) return std::nullopt;
  Tensor none(DataType::uint8, {b.n * line});
  std::fill_n(static_cast<std::uint8_t*>(none.mutable_data()), none.bytes(), std::uint8_t{0});
  return none;
}

// A bias that MatMulNBits takes: a float32 vector of N elements.
bool is_bias(const Graph& g, ValueId v, std::int64_t n) {
  const SymShape* s = shape_of(g, v);
  return is_f32(g, v) && s != nullptr && s->size() == 1 && s->front().is_const() && s->front().value() == n;
}

bool fuse_at(Graph& g, NodeId id) {
  const bool gemm = g.node(id).op_type == "Gemm";
  if (const Node& n = g.node(id); n.removed || !n.domain.empty() || (!gemm && n.op_type != "MatMul") || !is_f32(g, n.inputs[0]))
    return false;
  const Node n = g.node(id);  // a copy of a product alone: other nodes may hold whole subgraphs
  const ops::GemmAttrs attr = gemm ? ops::parse<ops::GemmAttrs>(n) : ops::GemmAttrs{};
  if (!attr.plain()) return false;
  const SymShape* left = shape_of(g, n.inputs[0]);
  if (left == nullptr || left->size() < 2) return false;
  const auto b = blocks_of(g, n, attr.trans_b);
  const ValueId bias = input_of(n, 2);
  if (!b || (bias != kNoValue && !is_bias(g, bias, b->n))) return false;
  const std::int64_t bytes = b->block * b->bits / 8;
  Node fused = make_node(
      n.name, "MatMulNBits", 1,
      {n.inputs[0], g.add_constant(n.name + "_codes", by_column(*b, b->weights, b->k, {b->n, b->count, bytes}, b->count * bytes)),
       g.add_constant(n.name + "_scales", scales_by_column(*b))},
      {{"K", b->k}, {"N", b->n}, {"bits", std::int64_t{b->bits}}, {"block_size", b->block}}, "com.microsoft");
  const std::optional<Tensor> zeros = zeros_by_column(*b);
  if (zeros) fused.inputs.push_back(g.add_constant(n.name + "_zeros", *zeros));
  if (bias != kNoValue) {
    fused.inputs.resize(5, kNoValue);
    fused.inputs.push_back(bias);
  }
  fused.outputs = n.outputs;
  g.remove_node(id);
  g.add_node(std::move(fused));
  return true;
}

}  // namespace

bool fuse_block_weights(Graph& graph) {
  bool changed = false;
  const std::size_t count = graph.nodes().size();
  for (NodeId id = 0; id < count; ++id) changed = fuse_at(graph, id) || changed;
  return changed;
}

}  // namespace sdx::fuse
