// Nodes that compute a byte from one byte become a table of 256 bytes: DequantizeLinear, functions of one variable, arithmetic
// with single constants, and QuantizeLinear, in any arrangement. SiLU of quantised networks is x * Sigmoid(x) with two more
// roundings between; HardSwish and Gelu are written likewise. The nodes themselves compute the table for all bytes.

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/words.h"
#include "graph/edit.h"
#include "ops/evaluate.h"
#include "ops/quant/signatures.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/qdq_parts.h"

namespace sdx::fuse {
namespace {

constexpr std::size_t kMaxNodes = 24;

constexpr std::string_view kFunctions =
    "Abs Add Celu Clip Div Elu Erf Exp Gelu HardSigmoid HardSwish LeakyRelu Log Max Min Mish Mul Neg Pow Relu Selu Sigmoid "
    "Softplus Softsign Sqrt Sub Swish Tanh";

bool is_quantizing(const Graph& g, const Node& n, ValueId bytes) {
  if (!is_byte(g.value(bytes).type.elem) || scale_of(g, n, 1) == nullptr || !zero_fits(g, n, 1)) return false;
  return ops::parse<ops::QuantizeAttrs>(n).block_size == 0;
}

// Whether each element of the only result depends only on the same element of the inputs.
bool is_elementwise(const Graph& g, const Node& n) {
  if (n.removed || n.outputs.size() != 1) return false;
  if (n.domain == "com.microsoft") return n.op_type == "QLinearSigmoid" || n.op_type == "QLinearLeakyRelu";
  if (!n.domain.empty()) return false;
  if (n.op_type == "DequantizeLinear") return is_quantizing(g, n, n.inputs[0]);
  if (n.op_type == "QuantizeLinear") return is_quantizing(g, n, n.outputs[0]);
  return has_word(kFunctions, n.op_type);
}

// The nodes between one tensor of bytes and a quantizer.
class Cone {
 public:
  // through: bytes that such nodes make count as steps on the way, not as the beginning.
  Cone(const Graph& g, bool through) : g_(g), through_(through) {}

  bool reaches(const Node& quantizer) { return take(quantizer.inputs[0]) && leaf_ != kNoValue; }
  ValueId leaf() const { return leaf_; }
  const std::vector<NodeId>& nodes() const { return nodes_; }  // in the order of computing

 private:
  bool take(ValueId v) {
    if (v == kNoValue || v == leaf_) return true;
    if (const Tensor* t = constant_of(g_, v)) return t->size() == 1;
    const NodeId id = g_.value(v).producer;
    const bool bytes = is_byte(g_.value(v).type.elem);
    if (id == kNoNode || (bytes && !through_) || !is_elementwise(g_, g_.node(id))) {
      if (!bytes || leaf_ != kNoValue) return false;
      leaf_ = v;
      return true;
    }
    if (std::ranges::find(nodes_, id) != nodes_.end()) return true;
    if (++depth_ > kMaxNodes || nodes_.size() >= kMaxNodes) return false;
    for (const ValueId in : g_.node(id).inputs) {
      if (!take(in)) return false;
    }
    --depth_;
    nodes_.push_back(id);
    return true;
  }

  const Graph& g_;
  bool through_;
  std::size_t depth_ = 0;
  ValueId leaf_ = kNoValue;
  std::vector<NodeId> nodes_;
};

// The results of the nodes and then the quantizer for the bytes 0 to 255; nullopt if one of them cannot be computed.
std::optional<Tensor> table_of(const Graph& g, const Cone& cone, const Node& quantizer) {
  const Type& leaf = g.value(cone.leaf()).type;
  Shape shape(std::max<std::size_t>(1, leaf.shape->size()), 1);
  shape.back() = 256;
  Tensor all(leaf.elem, shape);
  auto* byte = static_cast<std::uint8_t*>(all.mutable_data());
  for (int i = 0; i < 256; ++i) byte[i] = static_cast<std::uint8_t>(i);
  std::map<ValueId, Value> known;
  known.emplace(cone.leaf(), std::move(all));
  const auto compute = [&](const Node& n) {
    std::vector<const Value*> in;
    for (const ValueId v : n.inputs) {
      if (v != kNoValue && !known.contains(v)) known.emplace(v, constant_of(g, v)->aligned());
      in.push_back(v == kNoValue ? nullptr : &known.at(v));
    }
    const ops::OpDef* def = ops::find(n);
    return def != nullptr && known.emplace(n.outputs[0], ops::evaluate(n, *def, in).at(0)).second;
  };
  try {
    for (const NodeId id : cone.nodes()) {
      if (!compute(g.node(id))) return std::nullopt;
    }
    if (!compute(quantizer)) return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;  // left for the run to report
  }
  const Value& result = known.at(quantizer.outputs[0]);
  if (!result.is_tensor() || !is_byte(result.tensor().dtype()) || result.tensor().size() != 256) return std::nullopt;
  Tensor table(result.tensor().dtype(), {256});
  std::copy_n(static_cast<const std::uint8_t*>(result.tensor().data()), 256, static_cast<std::uint8_t*>(table.mutable_data()));
  return table;
}

bool fuse_at(Graph& g, NodeId id, Readers& readers) {
  // Only this node is copied, because other nodes may hold whole subgraphs.
  if (const Node& n = g.node(id); n.removed || n.op_type != "QuantizeLinear" || !n.domain.empty()) return false;
  const Node quantizer = g.node(id);
  if (!is_quantizing(g, quantizer, quantizer.outputs.at(0))) return false;
  for (const bool through : {false, true}) {
    Cone cone(g, through);
    // A DequantizeLinear alone is qdq-to-integer's.
    if (!cone.reaches(quantizer) || cone.nodes().size() < 2 || !same_shape(g, cone.leaf(), quantizer.outputs[0])) continue;
    auto table = table_of(g, cone, quantizer);
    if (!table) return false;
    const ValueId bytes = g.add_constant(quantizer.name + "_table", std::move(*table));
    g.remove_node(id);
    add_node(g, make_node(quantizer.name, "ByteTable", 1, {cone.leaf(), bytes}, {}, "sdx"), quantizer.outputs[0]);
    readers.update();
    for (auto node = cone.nodes().rbegin(); node != cone.nodes().rend(); ++node) {
      if (!readers.is_read(g.node(*node).outputs[0])) g.remove_node(*node);
    }
    return true;
  }
  return false;
}

}  // namespace

bool byte_tables(Graph& graph) {
  bool changed = false;
  const std::size_t count = graph.nodes().size();
  Readers readers(graph);
  for (NodeId id = 0; id < count; ++id) changed = fuse_at(graph, id, readers) || changed;
  return changed;
}

}  // namespace sdx::fuse
