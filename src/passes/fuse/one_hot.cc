// Rows of a table, chosen by a product with one-hot vectors (how JAX writes an embedding): Linear(Cast(Equal(i, 0 .. N - 1)), W).
// Indices without a row give zeros there, so the table gets a row of them at either end and indices are clipped to these.

#include <cmath>
#include <cstring>

#include "graph/edit.h"
#include "ops/math/fused_activation.h"
#include "ops/matrix/signatures.h"
#include "passes/fuse/fuse.h"
#include "tensor/element.h"

namespace sdx::fuse {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 22;  // of the table that is created

struct OneHot {
  ValueId index = kNoValue;  // its last extent is 1
  std::int64_t rows = 0;
};

// 0, 1, … along the last axis, the only one that is longer than 1. 0: something else.
std::int64_t counts_to(const Tensor* t) {
  if (t == nullptr || t->rank() == 0 || t->size() < 2 || t->shape().back() != t->size()) return 0;
  for (std::int64_t i = 0; i < t->size(); ++i) {
    if (element_as_int(*t, i) != i) return 0;
  }
  return t->size();
}

// The value that Cast and Equal turn into the vectors `v`, if these have no other readers.
OneHot one_hot(const Graph& g, ValueId v, const Readers& readers) {
  const Node* cast = made_by(g, v, "Cast", 1);
  if (cast == nullptr || !is_f32(g, v) || readers.only(v) == kNoNode) return {};
  const Node* equal = made_by(g, cast->inputs[0], "Equal", 2);
  if (equal == nullptr || equal->version < 7 || readers.only(cast->inputs[0]) == kNoNode) return {};
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const ValueId index = equal->inputs[side];
    const SymShape* shape = shape_of(g, index);
    const DataType type = g.value(index).type.elem;
    if (shape == nullptr || shape->empty() || (type != DataType::int32 && type != DataType::int64)) continue;
    const Tensor* numbers = constant_input(g, *equal, 1 - side);
    const Dim& last = shape->back();
    const std::int64_t rows = counts_to(numbers);
    if (rows > 0 && numbers->rank() <= shape->size() && last.is_const() && last.value() == 1) return {index, rows};
  }
  return {};
}

float float_at(const Tensor& t, std::int64_t i) {
  float v = 0;
  std::memcpy(&v, static_cast<const char*>(t.data()) + i * 4, sizeof(v));
  return v;
}

// [rows + 2, n]: zeros, the rows of w, zeros; plus the bias. Undefined where a product with 0 would not be 0.
Tensor padded_table(const Tensor& w, bool transposed, const Tensor* bias, std::int64_t rows, std::int64_t n) {
  Tensor table(DataType::float32, {rows + 2, n});
  auto* to = static_cast<float*>(table.mutable_data());
  for (std::int64_t r = -1; r <= rows; ++r) {
    for (std::int64_t j = 0; j < n; ++j, ++to) {
      const bool inside = r >= 0 && r < rows;
      const float v = inside ? float_at(w, transposed ? j * rows + r : r * n + j) : 0.0F;
      if (!std::isfinite(v)) return {};
      *to = bias != nullptr ? v + float_at(*bias, j) : v;
    }
  }
  return table;
}

template <class T>
ValueId clipped_index(Graph& g, const std::string& name, ValueId index, std::int64_t rows) {
  const ValueId axis = g.add_constant(name + "_axis", Tensor::of<std::int64_t>({1}, {-1}));
  const ValueId low = g.add_constant(name + "_low", Tensor::scalar<T>(T{-1}));
  const ValueId high = g.add_constant(name + "_high", Tensor::scalar<T>(static_cast<T>(rows)));
  const ValueId one = g.add_constant(name + "_one", Tensor::scalar<T>(T{1}));
  const auto step = [&](const char* end, const char* op, int version, std::vector<ValueId> inputs) {
    return add_node(g, make_node(name + end, op, version, std::move(inputs)), name + end);
  };
  const ValueId flat = step("_index", "Squeeze", 13, {index, axis});
  return step("_row", "Add", 14, {step("_clipped", "Clip", 13, {flat, low, high}), one});
}

bool fuse(Graph& g, NodeId id, const Readers& readers) {
  // Only this node is copied, because other nodes may hold whole subgraphs.
  if (const Node& n = g.node(id); n.removed || n.domain != "sdx" || n.op_type != "Linear") return false;
  const Node linear = g.node(id);
  if (linear.outputs.size() != 1 || linear.outputs[0] == kNoValue) return false;
  if (!ops::parse<ops::FusedActivationFields>(linear).activation.empty()) return false;
  if (linear.inputs.size() > 3 && linear.inputs[3] != kNoValue) return false;
  const bool has_bias = linear.inputs.size() > 2 && linear.inputs[2] != kNoValue;
  const Tensor *w = constant_input(g, linear, 1), *bias = constant_input(g, linear, 2);
  if (w == nullptr || w->dtype() != DataType::float32 || w->rank() != 2 || has_bias != (bias != nullptr)) return false;
  const OneHot hot = one_hot(g, linear.inputs[0], readers);
  const bool transposed = ops::parse<ops::LinearAttrs>(linear).trans_b;
  const std::int64_t rows = w->shape()[transposed ? 1 : 0], n = w->shape()[transposed ? 0 : 1];
  // A file may hold Linear itself, whose bias inference does not check.
  if (has_bias && (bias->dtype() != DataType::float32 || bias->shape() != Shape{n})) return false;
  if (hot.index == kNoValue || hot.rows != rows || w->size() > kMostElements) return false;
  Tensor table = padded_table(*w, transposed, bias, rows, n);
  if (table.dtype() == DataType::undefined) return false;
  const ValueId out = linear.outputs[0];
  const std::string name = g.value(out).name;
  g.remove_node(id);
  const bool narrow = g.value(hot.index).type.elem == DataType::int32;
  const ValueId row =
      narrow ? clipped_index<std::int32_t>(g, name, hot.index, rows) : clipped_index<std::int64_t>(g, name, hot.index, rows);
  add_node(g, make_node(linear.name, "Gather", 13, {g.add_constant(name + "_table", std::move(table)), row}), out);
  return true;
}

}  // namespace

bool fuse_one_hot(Graph& graph) {
  bool changed = false;
  const Readers readers(graph);
  const std::size_t count = graph.nodes().size();
  for (NodeId id = 0; id < count; ++id) changed = fuse(graph, id, readers) || changed;
  return changed;
}

}  // namespace sdx::fuse
