#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/words.h"
#include "ops/infer.h"
#include "passes/pass.h"
#include "quantize/fixed/qdq.h"
#include "quantize/model/edit.h"

namespace sdx::quantize {
namespace {

struct Operand {
  ValueId codes = kNoValue, scale = kNoValue, zero = kNoValue;
};

class Converter {
 public:
  explicit Converter(Graph& graph, int opset) : g_(graph), opset_(opset), readers_(graph) {}

  void run() {
    const std::size_t count = g_.nodes().size();
    for (NodeId id = 0; id < count; ++id) {
      const Node n = g_.node(id);
      if (n.removed || !n.domain.empty() || n.outputs.empty()) continue;
      if (n.op_type == "ArgMax") {
        arg_max(id, n);
      } else if (is_move(n)) {
        move(id, n);
      } else {
        convert(id, n);
      }
    }
  }

 private:
  static bool is_move(const Node& n) {
    constexpr std::string_view kMoves = "Split Pad Slice Gather Resize DepthToSpace";
    return has_word(kMoves, n.op_type);
  }

  // The result of DequantizeLinear for one tensor with one scale.
  std::optional<Operand> operand(ValueId v) const {
    const NodeId from = v == kNoValue ? kNoNode : g_.value(v).producer;
    if (from == kNoNode || g_.node(from).op_type != "DequantizeLinear" || g_.node(from).inputs.size() != 3) return {};
    const Node& d = g_.node(from);
    const Tensor* scale = fixed_value(g_, d.inputs[1]);
    if (scale == nullptr || scale->size() != 1) return {};
    return Operand{d.inputs[0], d.inputs[1], d.inputs[2]};
  }
  // The QuantizeLinear that alone reads the value.
  NodeId quantizer(ValueId v) const {
    const NodeId q = readers_.only(v);
    return q != kNoNode && g_.node(q).op_type == "QuantizeLinear" && g_.node(q).inputs.size() == 3 ? q : kNoNode;
  }
  DataType type_of(ValueId zero) const { return g_.value(zero).type.elem; }

  void convert(NodeId id, const Node& n);
  void move(NodeId id, const Node& n);
  void arg_max(NodeId id, const Node& n);
  bool inputs_for(const Node& n, const Operand& y, Node& to) const;

  Graph& g_;
  int opset_;
  Readers readers_;
};

// Fills in operator, inputs and attributes; false: there is no such operator.
bool Converter::inputs_for(const Node& n, const Operand& y, Node& to) const {
  std::vector<Operand> x;
  for (const ValueId v : n.inputs) {
    const auto o = operand(v);
    if (o && type_of(o->zero) != type_of(y.zero)) return false;
    x.push_back(o.value_or(Operand{}));
  }
  const auto all_from = [&](std::size_t first) {
    return std::all_of(x.begin() + static_cast<std::ptrdiff_t>(first), x.end(),
                       [](const Operand& o) { return o.codes != kNoValue; });
  };
  const auto push = [&](const Operand& o) { to.inputs.insert(to.inputs.end(), {o.codes, o.scale, o.zero}); };
  const auto push_result = [&] { to.inputs.insert(to.inputs.end(), {y.scale, y.zero}); };
  if ((n.op_type == "Add" || n.op_type == "Mul") && x.size() == 2 && all_from(0)) {
    to.op_type = "QLinear" + n.op_type;
    push(x[0]);
    push(x[1]);
    push_result();
    return true;
  }
  if (n.op_type == "Where" && x.size() == 3 && all_from(1)) {
    to.op_type = "QLinearWhere";
    to.inputs = {n.inputs[0]};
    push(x[1]);
    push(x[2]);
    push_result();
    return true;
  }
  if (x.empty() || !all_from(0)) return false;
  if (n.op_type == "AveragePool" && n.attributes.get_ints("dilations").empty()) {
    to.op_type = "QLinearAveragePool";
    to.attributes = n.attributes;
  } else if (n.op_type == "Softmax") {
    to.op_type = "QLinearSoftmax";
    to.attributes.set("axis", n.attributes.get_int("axis", -1));
    to.attributes.set("opset", std::int64_t{opset_});
  } else {
    return false;
  }
  push(x[0]);
  push_result();
  return true;
}

void Converter::convert(NodeId id, const Node& n) {
  const NodeId q = quantizer(n.outputs[0]);
  if (q == kNoNode) return;
  Node to;
  to.name = n.name;
  to.domain = "com.microsoft";
  to.version = 1;
  const Node last = g_.node(q);
  if (!inputs_for(n, {kNoValue, last.inputs[1], last.inputs[2]}, to)) return;
  to.outputs = last.outputs;
  g_.remove_node(q);
  g_.remove_node(id);
  g_.add_node(std::move(to));
}

// Picks or moves bytes where all sides have one scale.
void Converter::move(NodeId id, const Node& n) {
  const auto x = operand(n.inputs[0]);
  if (!x || (n.op_type == "Resize" && n.attributes.get_string("mode", "nearest") != "nearest")) return;
  // A constant value of Pad would have to be bytes as well.
  if (n.op_type == "Pad" && n.attributes.get_string("mode", "constant") == "constant") return;
  const auto number = [&](ValueId v) { return fixed_value(g_, v); };
  std::vector<NodeId> ends;
  for (const ValueId out : n.outputs) {
    const NodeId q = out == kNoValue ? kNoNode : quantizer(out);
    if (q == kNoNode || type_of(g_.node(q).inputs[2]) != type_of(x->zero)) return;
    const Tensor *s = number(g_.node(q).inputs[1]), *z = number(g_.node(q).inputs[2]);
    const Tensor *xs = number(x->scale), *xz = number(x->zero);
    const auto same = [](const Tensor* a, const Tensor* b) {
      return a != nullptr && b != nullptr && a->bytes() == b->bytes() && std::memcmp(a->data(), b->data(), a->bytes()) == 0;
    };
    if (!same(s, xs) || !same(z, xz)) return;
    ends.push_back(q);
  }
  Node moved = n;
  moved.inputs[0] = x->codes;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    moved.outputs[i] = g_.node(ends[i]).outputs[0];
    g_.remove_node(ends[i]);
  }
  g_.remove_node(id);
  g_.add_node(std::move(moved));
}

// The largest code is at the place of the largest value.
void Converter::arg_max(NodeId id, const Node& n) {
  const auto x = operand(n.inputs[0]);
  if (!x) return;
  Node moved = n;
  moved.inputs[0] = x->codes;
  g_.remove_node(id);
  g_.add_node(std::move(moved));
}

}  // namespace

void make_qoperator(Model& model) {
  Graph& g = model.graph;
  g.compact();
  ops::infer_in_place(g);
  PassOptions only;
  for (const std::string& name : pass_names()) {
    if (name != "qdq-to-integer") only.disabled.push_back(name);
  }
  run_passes(g, only);
  Converter(g, model.opsets[""]).run();
  g.compact();
  ops::infer_in_place(g);
  for (const Node& n : g.nodes()) {
    if (!n.removed && n.domain == "com.microsoft") model.opsets.try_emplace("com.microsoft", 1);
  }
}

}  // namespace sdx::quantize
