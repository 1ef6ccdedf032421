#include "quantize/weights/operators.h"

#include <algorithm>

#include "graph/edit.h"
#include "tensor/types.h"

namespace sdx::quantize {
namespace {

Tensor float_tensor(const std::vector<float>& values, DataType type, Shape shape) {
  Tensor out(type, std::move(shape));
  void* const to = out.mutable_data();
  if (type == DataType::float16) {
    std::transform(values.begin(), values.end(), static_cast<std::uint16_t*>(to), float_to_half);
  } else if (type == DataType::bfloat16) {
    std::transform(values.begin(), values.end(), static_cast<BFloat16*>(to), [](float v) { return BFloat16(v); });
  } else {
    std::copy(values.begin(), values.end(), static_cast<float*>(to));
  }
  return out;
}

Tensor byte_tensor(const std::vector<std::uint8_t>& bytes, DataType type, Shape shape) {
  Tensor out(type, std::move(shape));
  std::copy_n(bytes.begin(), std::min(bytes.size(), out.bytes()), static_cast<std::uint8_t*>(out.mutable_data()));
  return out;
}

std::vector<std::uint8_t> as_codes(const std::vector<float>& zeros) {
  std::vector<std::uint8_t> out(zeros.size());
  std::transform(zeros.begin(), zeros.end(), out.begin(), [](float z) { return static_cast<std::uint8_t>(z); });
  return out;
}

// [rows, columns] to [columns, rows].
template <class T>
std::vector<T> turned(const std::vector<T>& from, std::int64_t rows, std::int64_t columns) {
  std::vector<T> out(from.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c)
      out[static_cast<std::size_t>(c * rows + r)] = from[static_cast<std::size_t>(r * columns + c)];
  }
  return out;
}

// Codes without the padding of rows.
std::vector<std::uint8_t> dense_codes(const BlockMatrix& m) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(m.rows * m.columns));
  for (std::int64_t r = 0; r < m.rows; ++r) std::copy_n(m.codes.data() + r * m.width(), m.columns, out.data() + r * m.columns);
  return out;
}

// Signed integers where there are no zero points: code 0 is the smallest.
void to_signed(std::vector<std::uint8_t>& codes, int bits) {
  const auto middle = static_cast<std::uint8_t>(1 << (bits - 1)), mask = static_cast<std::uint8_t>((1 << bits) - 1);
  for (std::uint8_t& c : codes) c = static_cast<std::uint8_t>((c - middle) & mask);
}

class Constants {
 public:
  Constants(const Target& target, const BlockMatrix& matrix, WeightForm form)
      : graph_(*target.weight.scope->graph), name_(graph_.value(target.weight.value).name), m_(matrix) {
    out_.form = form;
    out_.owner = target.weight.scope;
    out_.format = matrix.format;
    out_.k = target.k;
    out_.n = target.n;
    type_ = target.weight.tensor->dtype();
    suffix_ = "_Q" + std::to_string(matrix.format.bits);
  }

  // MatMulNBits: rows of whole blocks, low bits first; zero points packed the same way, a row of them at a time.
  Operands matmul() {
    const BlockFormat& f = m_.format;
    out_.codes = add(suffix_, byte_tensor(packed_rows(m_.codes, m_.rows, m_.width(), f.bits), DataType::uint8,
                                          {m_.rows, m_.blocks, f.block * f.bits / 8}));
    out_.scales = add("_scales", float_tensor(m_.scales, type_, {m_.rows, m_.blocks}));
    if (m_.float_zeros) {
      out_.zeros = add("_zero_points", float_tensor(m_.zeros, type_, {m_.rows, m_.blocks}));
    } else if (!f.symmetric) {
      const std::int64_t bytes = (m_.blocks * f.bits + 7) / 8;
      out_.zeros = add("_zero_points", byte_tensor(packed_rows(as_codes(m_.zeros), m_.rows, m_.blocks, f.bits), DataType::uint8,
                                                   {m_.rows, bytes}));
    }
    return out_;
  }

  // DequantizeLinear: the matrix in the layout that it had, one scale for each block along k.
  Operands blocks(bool transposed) {
    std::vector<std::uint8_t> codes = dense_codes(m_), zeros = as_codes(m_.zeros);
    std::vector<float> scales = m_.scales;
    Shape shape{m_.rows, m_.columns}, scale_shape{m_.rows, m_.blocks};
    if (!transposed) {
      codes = turned(codes, m_.rows, m_.columns);
      scales = turned(scales, m_.rows, m_.blocks);
      zeros = turned(zeros, m_.rows, m_.blocks);
      std::reverse(shape.begin(), shape.end());
      std::reverse(scale_shape.begin(), scale_shape.end());
    }
    return integers(std::move(codes), zeros, scales, std::move(shape), std::move(scale_shape));
  }

  // GatherBlockQuantized: 4-bit integers, or bytes with `bits` where that is another number.
  Operands table(const Shape& shape) {
    const BlockFormat& f = m_.format;
    Shape scale_shape = shape;
    scale_shape.back() = m_.blocks;
    if (f.bits == 4) return integers(dense_codes(m_), as_codes(m_.zeros), m_.scales, shape, scale_shape);
    const std::vector<std::uint8_t> codes = packed_rows(dense_codes(m_), m_.rows, m_.columns, f.bits);
    out_.codes = add(suffix_, byte_tensor(codes, DataType::uint8, {m_.rows, static_cast<std::int64_t>(codes.size()) / m_.rows}));
    out_.scales = add("_scales", float_tensor(m_.scales, type_, scale_shape));
    if (!f.symmetric) {
      const std::vector<std::uint8_t> zeros = packed_rows(as_codes(m_.zeros), m_.rows, m_.blocks, f.bits);
      out_.zeros =
          add("_zero_points", byte_tensor(zeros, DataType::uint8, {m_.rows, static_cast<std::int64_t>(zeros.size()) / m_.rows}));
    }
    return out_;
  }

 private:
  Operands integers(std::vector<std::uint8_t> codes, const std::vector<std::uint8_t>& zeros, const std::vector<float>& scales,
                    Shape shape, Shape scale_shape) {
    const BlockFormat& f = m_.format;
    if (f.symmetric) to_signed(codes, f.bits);
    const DataType type =
        f.bits == 8 ? (f.symmetric ? DataType::int8 : DataType::uint8) : (f.symmetric ? DataType::int4 : DataType::uint4);
    const auto flat = [&](const std::vector<std::uint8_t>& v) {
      return packed_rows(v, 1, static_cast<std::int64_t>(v.size()), f.bits);
    };
    out_.codes = add(suffix_, byte_tensor(flat(codes), type, std::move(shape)));
    out_.scales = add("_scales", float_tensor(scales, type_, scale_shape));
    if (!f.symmetric) out_.zeros = add("_zero_points", byte_tensor(flat(zeros), type, std::move(scale_shape)));
    return out_;
  }

  ValueId add(const std::string& suffix, Tensor tensor) { return graph_.add_constant(name_ + suffix, std::move(tensor)); }

  Graph& graph_;
  std::string name_, suffix_;
  const BlockMatrix& m_;
  DataType type_ = DataType::float32;
  Operands out_;
};

void to_matmul_nbits(Scope& scope, Node& node, const Operands& o, const std::vector<ValueId>& weights, int accuracy_level) {
  ValueId bias = kNoValue;
  if (node.op_type == "Gemm" && node.inputs.size() > 2) bias = node.inputs[2];
  if (bias != kNoValue) {
    const OwnedConstant given = constant_in(scope, bias);
    if (given.tensor->rank() != 1) {
      bias = scope.graph->add_constant(scope.graph->value(bias).name + "_row", given.tensor->reshaped({o.n}));
    }
  }
  node.inputs = {node.inputs[0], weights[0], weights[1]};
  if (weights[2] != kNoValue || bias != kNoValue) node.inputs.push_back(weights[2]);
  if (bias != kNoValue) node.inputs.insert(node.inputs.end(), {kNoValue, bias});
  node.op_type = "MatMulNBits";
  node.domain = "com.microsoft";
  node.version = 1;
  node.attributes = {};
  node.attributes.set("K", o.k);
  node.attributes.set("N", o.n);
  node.attributes.set("bits", std::int64_t{o.format.bits});
  node.attributes.set("block_size", o.format.block);
  if (accuracy_level != 0) node.attributes.set("accuracy_level", std::int64_t{accuracy_level});
}

void to_gather(Node& node, const Operands& o, const std::vector<ValueId>& weights, std::size_t rank) {
  const std::int64_t axis = node.attributes.get_int("axis", 0);
  node.inputs = {weights[0], node.inputs[1], weights[1]};
  if (weights[2] != kNoValue) node.inputs.push_back(weights[2]);
  node.op_type = "GatherBlockQuantized";
  node.domain = "com.microsoft";
  node.version = 1;
  node.attributes = {};
  node.attributes.set("gather_axis", axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
  node.attributes.set("quantize_axis", static_cast<std::int64_t>(rank) - 1);
  node.attributes.set("block_size", o.format.block);
  if (o.format.bits != 4) node.attributes.set("bits", std::int64_t{o.format.bits});
}

// DequantizeLinear in front of the node.
void dequantize_before(Graph& graph, Node& node, const Target& t, const Operands& o, const std::vector<ValueId>& weights) {
  const int version = std::max(node.version, 21);
  Node d = make_node(node.name.empty() ? "" : node.name + "_DequantizeLinear", "DequantizeLinear", version,
                     {weights[0], weights[1]}, {{"axis", std::int64_t{t.transposed ? 1 : 0}}, {"block_size", o.format.block}});
  if (weights[2] != kNoValue) d.inputs.push_back(weights[2]);
  const bool gemm_transposed = node.op_type == "Gemm" && t.transposed;
  const DataType type = t.weight.tensor->dtype();
  const ValueId whole = add_node(graph, std::move(d), graph.value(weights[0]).name + "_dequantized",
                                 Type::tensor(type, t.transposed ? SymShape{o.n, o.k} : SymShape{o.k, o.n}));
  if (!t.transposed || gemm_transposed) {
    node.inputs[1] = whole;
    return;
  }
  Node turn = make_node({}, "Transpose", version, {whole}, {{"perm", std::vector<std::int64_t>{1, 0}}});
  node.inputs[1] =
      add_node(graph, std::move(turn), graph.value(whole).name + "_transposed", Type::tensor(type, SymShape{o.k, o.n}));
}

}  // namespace

Operands make_operands(const Target& target, const BlockMatrix& matrix, WeightForm form, bool gather) {
  Constants constants(target, matrix, form);
  if (gather) return constants.table(target.weight.tensor->shape());
  return form == WeightForm::qdq ? constants.blocks(target.transposed) : constants.matmul();
}

void use_operands(const Target& target, const Operands& o, int accuracy_level) {
  Scope& scope = *target.scope;
  std::vector<ValueId> weights;
  for (const ValueId v : {o.codes, o.scales, o.zeros}) weights.push_back(v == kNoValue ? v : value_in(scope, *o.owner, v));
  Node& node = scope.graph->node(target.node);
  if (node.op_type == "Gather") return to_gather(node, o, weights, target.weight.tensor->rank());
  if (o.form == WeightForm::qdq) return dequantize_before(*scope.graph, node, target, o, weights);
  to_matmul_nbits(scope, node, o, weights, accuracy_level);
}

}  // namespace sdx::quantize
