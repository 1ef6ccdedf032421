#include "quantize/fixed/plan.h"

#include <algorithm>
#include <array>

#include "base/words.h"
#include "quantize/model/edit.h"
#include "quantize/model/model_file.h"
#include "tensor/element.h"

namespace sdx::quantize {
namespace {

struct Entry {
  std::string_view ops;
  StaticKind kind;
  bool gains;  // our engine and others compute it with bytes
};

using enum StaticKind;
constexpr std::array kOperators{
    Entry{"Conv", weighted, true},
    Entry{"ConvTranspose", weighted, false},
    Entry{"Gemm MatMul", weighted, true},
    Entry{"Reshape Transpose Squeeze Unsqueeze Flatten MaxPool", mover, true},
    Entry{"AveragePool Slice Split Pad Gather GatherElements Resize TopK Expand DepthToSpace SpaceToDepth", mover, false},
    Entry{"Relu Clip", bounding, true},
    Entry{"Add Concat Sigmoid LeakyRelu GlobalAveragePool", pointwise, true},
    Entry{"Mul Sub Div Softmax Where ArgMax CumSum Tanh HardSigmoid HardSwish Elu Gelu PRelu ReduceMean", pointwise, false},
    Entry{"InstanceNormalization LayerNormalization BatchNormalization", norm, false},
};

const Entry* entry_of(const Node& node) {
  if (!node.domain.empty()) return nullptr;
  const auto at =
      std::find_if(kOperators.begin(), kOperators.end(), [&](const Entry& e) { return has_word(e.ops, node.op_type); });
  return at == kOperators.end() ? nullptr : &*at;
}

// Whether an operator without an entry can stand between DequantizeLinear and QuantizeLinear. Tables of EmbedLayerNormalization
// are quantised in another way.
bool takes_pairs(const Node& n) {
  constexpr std::string_view kNever = "QuantizeLinear DequantizeLinear DynamicQuantizeLinear Constant EmbedLayerNormalization";
  return n.subgraphs.empty() && !has_word(kNever, n.op_type);
}

bool one_shape(const Graph& g, const Node& n) {
  for (const ValueId v : n.inputs) {
    const Type &a = g.value(n.inputs[0]).type, &b = g.value(v).type;
    if (!a.shape || !b.shape || a.shape->size() != b.shape->size()) return false;
    if (!std::equal(a.shape->begin(), a.shape->end(), b.shape->begin())) return false;
  }
  return true;
}

// x * Sigmoid(x): a table of bytes in our engine, with the sigmoid quantised between too, and two integer operators in ONNX
// Runtime.
bool is_silu(const Graph& g, const Node& n) {
  if (n.op_type != "Mul" || n.inputs.size() != 2) return false;
  const auto is_sigmoid = [&](ValueId v, ValueId of) {
    const NodeId from = g.value(v).producer;
    return from != kNoNode && is_op(g.node(from), "Sigmoid") && g.node(from).inputs[0] == of;
  };
  return is_sigmoid(n.inputs[0], n.inputs[1]) || is_sigmoid(n.inputs[1], n.inputs[0]);
}

// Functions of one variable, or of one variable and single constants: of bytes they are tables.
bool is_function(const Graph& g, const Node& n) {
  constexpr std::string_view kFunctions =
      "Add Clip Div Elu Erf HardSigmoid HardSwish LeakyRelu Max Min Mul Relu Sigmoid Softplus Sub Tanh";
  if (!n.domain.empty() || !has_word(kFunctions, n.op_type)) return false;
  return std::ranges::all_of(n.inputs, [&](ValueId v) {
    if (v == kNoValue) return true;
    const Tensor* t = fixed_value(g, v);
    return has_floats(g, v) && (t == nullptr || t->size() == 1);
  });
}

// A factor for each element, or for each channel of an image, as in squeeze-and-excitation.
bool is_product(const Graph& g, const Node& n) {
  if (!is_op(n, "Mul") || n.inputs.size() != 2) return false;
  const auto &a = g.value(n.inputs[0]).type.shape, &b = g.value(n.inputs[1]).type.shape;
  if (!a || !b || a->size() != 4 || b->size() != 4 || !std::equal(a->begin(), a->begin() + 2, b->begin())) return false;
  const auto by_channel = [](const SymShape& v) { return v[2] == Dim(1) && v[3] == Dim(1); };
  return std::equal(a->begin() + 2, a->end(), b->begin() + 2) || by_channel(*a) || by_channel(*b);
}

// Pads with something else than 0, or interpolates beyond its inputs' range.
bool leaves_range(const Graph& g, const Node& n) {
  if (n.op_type == "Resize") return n.attributes.get_string("mode", "nearest") == "cubic";
  if (n.op_type != "Pad" || n.attributes.get_string("mode", "constant") != "constant") return false;
  const ValueId value = input_of(n, 2);
  if (value == kNoValue) return false;
  const Tensor* t = fixed_value(g, value);
  return t == nullptr || t->size() == 0 || element_as_double(*t, 0) != 0;
}

class Planner {
 public:
  Planner(const Graph& graph, const StaticQuantOptions& options, QuantReport& report)
      : g_(graph), o_(options), report_(report), readers_(graph), choice_(graph, options, static_operators(), false) {
    plan_.nodes.resize(g_.nodes().size());
  }

  StaticPlan run() {
    const bool explicit_ops = !o_.op_types_to_quantize.empty();
    if (explicit_ops) {
      choose_asked();
    } else {
      choose_gaining();
    }
    for (NodeId id = 0; id < g_.nodes().size(); ++id) {
      if (plan_.nodes[id]) add_values(id, explicit_ops);
    }
    plan_.activations.assign(plan_.chosen.begin(), plan_.chosen.end());
    return std::move(plan_);
  }

 private:
  void choose_asked();
  void choose_gaining();
  bool gains(const Node& n, const std::set<ValueId>& bytes) const;
  ValueId argument(const Node& n, const std::set<ValueId>& bytes) const;
  void add_values(NodeId id, bool all);
  std::string refusal(const Node& n) const;
  bool candidate(NodeId id, bool note);
  bool only_read_by_bounding(ValueId v) const;
  bool excludes_output(const Node& n) const {
    const auto& list = o_.extra.op_types_to_exclude_output_quantization;
    return std::find(list.begin(), list.end(), n.op_type) != list.end();
  }

  const Graph& g_;
  const StaticQuantOptions& o_;
  QuantReport& report_;
  Readers readers_;
  Choice choice_;
  std::set<ValueId> wanted_;
  std::map<ValueId, ValueId> argument_;  // functions of one value that could be bytes, and that value
  StaticPlan plan_;
};

// Why a node of a chosen operator cannot be quantised; empty: it can.
std::string Planner::refusal(const Node& n) const {
  const StaticKind kind = static_kind(n);
  if (n.outputs.empty() || n.inputs.empty()) return "it has no inputs";
  const DataType first = n.inputs[0] == kNoValue ? DataType::undefined : g_.value(n.inputs[0]).type.elem;
  if (first == DataType::float16 && o_.quant_format != QuantFormat::qdq) return "QOperator has no float16";
  if (entry_of(n) == nullptr) return {};
  if (!has_floats(g_, n.inputs[0]) && n.op_type != "Where") return "it does not compute in float32 or float16";
  if (kind == weighted) {
    const Tensor* w = fixed_value(g_, n.inputs[1]);
    const bool alone = o_.op_types_to_quantize.empty();
    const bool needs = n.op_type == "MatMul" ? o_.extra.matmul_const_b_only.value_or(alone) : alone;
    if (w == nullptr && needs && given_scales(g_, n.inputs[1]).empty()) return "its weights are not a constant";
    if (w != nullptr && w->dtype() != first) return "its weights are not floats";
    if (w != nullptr && w->rank() < 2) return "its weights are not a matrix";
    if (fixed_value(g_, n.inputs[0]) != nullptr) return "its first operand is constant";
  }
  return {};
}

bool Planner::candidate(NodeId id, bool note) {
  const Node& n = g_.node(id);
  if (static_kind(n) == none || !choice_.wants(g_, n)) return false;
  if (entry_of(n) == nullptr && o_.quant_format != QuantFormat::qdq) return false;
  const std::string why = refusal(n);
  if (why.empty()) return true;
  if (note && static_kind(n) == weighted) note_kept(report_, g_, n, why);
  return false;
}

void Planner::choose_asked() {
  std::set<ValueId> codes;  // values that nodes before quantise
  for (NodeId id = 0; id < g_.nodes().size(); ++id) {
    const Node& n = g_.node(id);
    if (!candidate(id, true)) continue;
    const bool follows = static_kind(n) == mover || static_kind(n) == bounding;
    if (follows && !codes.contains(n.inputs[0]) && !o_.extra.force_quantize_no_input_check) continue;
    plan_.nodes[id] = true;
    for (const std::size_t i : data_inputs(g_, n)) codes.insert(n.inputs[i]);
    if (!excludes_output(n)) codes.insert(n.outputs[0]);
  }
}

bool Planner::only_read_by_bounding(ValueId v) const {
  const NodeId reader = readers_.only(v);
  return reader != kNoNode && static_kind(g_.node(reader)) == bounding;
}

// Whether it pays to compute the node in bytes, if these values are bytes.
bool Planner::gains(const Node& n, const std::set<ValueId>& bytes) const {
  if (!entry_of(n)->gains && !is_silu(g_, n) && !is_product(g_, n)) return false;
  const std::vector<std::size_t> data = data_inputs(g_, n);
  const bool from_bytes = std::all_of(data.begin(), data.end(), [&](std::size_t i) { return bytes.contains(n.inputs[i]); });
  return !data.empty() && from_bytes && (n.op_type != "Add" || one_shape(g_, n));
}

// The value that the node is a function of, if that is one of these values or a function of one; otherwise kNoValue. Products of
// matrices stay float before a function, which would otherwise receive rounded values.
ValueId Planner::argument(const Node& n, const std::set<ValueId>& bytes) const {
  if (!is_function(g_, n) || n.outputs.size() != 1) return kNoValue;
  ValueId found = kNoValue;
  for (const ValueId v : n.inputs) {
    if (v == kNoValue || fixed_value(g_, v) != nullptr) continue;
    const auto known = argument_.find(v);
    const ValueId root = known == argument_.end() ? v : known->second;
    const NodeId from = g_.value(root).producer;
    if (!bytes.contains(root) || (found != kNoValue && root != found) || from == kNoNode) return kNoValue;
    if (static_kind(g_.node(from)) == weighted && !is_op(g_.node(from), "Conv")) return kNoValue;
    found = root;
  }
  return found;
}

void Planner::choose_gaining() {
  // Forward: finds values that could be bytes without quantising anything for it.
  std::vector<bool> able(g_.nodes().size());
  std::set<ValueId> bytes;
  for (NodeId id = 0; id < g_.nodes().size(); ++id) {
    const Node& n = g_.node(id);
    if (n.outputs.empty()) continue;
    const Entry* known = candidate(id, true) ? entry_of(n) : nullptr;
    const ValueId of = choice_.wants(g_, n) ? argument(n, bytes) : kNoValue;
    const bool continues = of != kNoValue && std::ranges::any_of(n.inputs, [&](ValueId v) { return argument_.contains(v); });
    if (known != nullptr && !continues && (known->kind == weighted || gains(n, bytes))) {
      able[id] = true;
      bytes.insert(n.outputs[0]);
    } else if (of != kNoValue) {
      argument_[n.outputs[0]] = of;
      bytes.insert(n.outputs[0]);
    }
  }
  // Backward: finds the values that are wanted as bytes.
  for (NodeId id = static_cast<NodeId>(g_.nodes().size()); id-- > 0;) {
    const Node& n = g_.node(id);
    // A table from what the function is of; nothing between is quantised.
    if (const auto of = n.outputs.empty() ? argument_.end() : argument_.find(n.outputs[0]);
        of != argument_.end() && wanted_.contains(n.outputs[0])) {
      wanted_.insert(of->second);
    }
    if (!able[id]) continue;
    const StaticKind kind = static_kind(n);
    // Integer convolutions give bytes.
    const bool convolves = n.op_type == "Conv" || n.op_type == "ConvTranspose";
    if (convolves && !only_read_by_bounding(n.outputs[0])) wanted_.insert(n.outputs[0]);
    const NodeId before = g_.value(n.inputs[0]).producer;
    const bool ends_conv = kind == bounding && before != kNoNode && g_.node(before).op_type == "Conv" && able[before] &&
                           only_read_by_bounding(n.inputs[0]);
    if (ends_conv) wanted_.insert(n.outputs[0]);
    if (kind != weighted && !wanted_.contains(n.outputs[0])) continue;
    plan_.nodes[id] = true;
    for (const std::size_t i : data_inputs(g_, n)) wanted_.insert(n.inputs[i]);
  }
}

void Planner::add_values(NodeId id, bool all) {
  const Node& n = g_.node(id);
  const StaticKind kind = static_kind(n);
  const bool own_scales = kind != mover || leaves_range(g_, n) || fixed_value(g_, n.inputs[0]) != nullptr;
  for (const std::size_t i : data_inputs(g_, n)) {
    const NodeId before = g_.value(n.inputs[i]).producer;
    // The input of Relu goes from the preceding node to it without being quantised.
    const bool through = kind == bounding && before != kNoNode && plan_.nodes[before] && static_kind(g_.node(before)) != mover &&
                         only_read_by_bounding(n.inputs[i]);
    if (!through) plan_.chosen.insert(n.inputs[i]);
  }
  const bool numbers = n.op_type == "ArgMax";
  if (numbers || excludes_output(n)) return;
  for (std::size_t i = 0; i < n.outputs.size(); ++i) {
    const ValueId out = n.outputs[i];
    if (!has_floats(g_, out) || (i > 0 && entry_of(n) != nullptr && n.op_type != "Split")) continue;
    if (kind == weighted && !all && !wanted_.contains(out)) continue;
    const bool bounded = only_read_by_bounding(out) && plan_.nodes[readers_.only(out)];
    if (bounded && kind != mover) continue;
    plan_.chosen.insert(out);
    if (!own_scales) plan_.like[out] = n.inputs[0];
  }
}

}  // namespace

StaticKind static_kind(const Node& node) {
  const Entry* e = entry_of(node);
  if (e == nullptr) return takes_pairs(node) ? pointwise : none;
  return e->kind;
}

std::vector<std::string> static_operators() {
  std::vector<std::string> names;
  for (const Entry& e : kOperators) {
    for_each_word(e.ops, [&](std::string_view op) { names.emplace_back(op); });
  }
  return names;
}

bool has_floats(const Graph& graph, ValueId v) {
  return v != kNoValue && (graph.value(v).type.elem == DataType::float32 || graph.value(v).type.elem == DataType::float16);
}

std::vector<float> given_scales(const Graph& graph, ValueId v) {
  const NodeId from = v == kNoValue ? kNoNode : graph.value(v).producer;
  if (from == kNoNode || graph.node(from).op_type != "DequantizeLinear" || graph.node(from).inputs.size() < 2) return {};
  const Node& n = graph.node(from);
  const Tensor* scale = fixed_value(graph, n.inputs[1]);
  if (scale == nullptr || fixed_value(graph, n.inputs[0]) == nullptr || scale->rank() > 1) return {};
  std::vector<float> out;
  for (std::int64_t i = 0; i < scale->size(); ++i) out.push_back(static_cast<float>(element_as_double(*scale, i)));
  return out;
}

std::vector<std::size_t> data_inputs(const Graph& graph, const Node& node) {
  std::vector<std::size_t> out;
  const StaticKind kind = static_kind(node);
  const auto add = [&](std::size_t i) {
    const ValueId v = input_of(node, i);
    if (has_floats(graph, v) && fixed_value(graph, v) == nullptr && given_scales(graph, v).empty()) out.push_back(i);
  };
  if (kind == weighted) {
    add(0);
    add(1);
  } else if (kind == pointwise) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) add(i);
  } else {
    add(0);
  }
  return out;
}

std::int64_t channel_axis(const Node& node, std::size_t rank) {
  if (node.op_type == "Conv") return 0;
  if (node.op_type == "ConvTranspose") return 1;
  if (node.op_type == "Gemm") return node.attributes.get_int("transB", 0) != 0 ? 0 : 1;
  return static_cast<std::int64_t>(rank) - 1;
}

StaticPlan plan_static(const Graph& graph, const StaticQuantOptions& options, QuantReport& report) {
  return Planner(graph, options, report).run();
}

}  // namespace sdx::quantize
