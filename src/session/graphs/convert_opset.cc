#include "session/graphs/convert_opset.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/words.h"
#include "graph/edit.h"
#include "ops/op.h"
#include "tensor/element.h"

namespace sdx::session {
namespace {

constexpr int kNewest = 21;

// Changes one node so that it may have version `since` or a later one, until the next rule.
using Change = void (*)(Graph& graph, NodeId id);

void add_input_at(Graph& graph, NodeId id, std::size_t place, Tensor value) {
  const ValueId v = graph.add_constant(graph.value(graph.node(id).outputs.at(0)).name + "/constant", std::move(value));
  std::vector<ValueId>& inputs = graph.node(id).inputs;
  while (inputs.size() <= place) inputs.push_back(kNoValue);
  inputs[place] = v;
}

void ints_to_input(Graph& graph, NodeId id, const char* attribute, std::size_t place) {
  Attributes& a = graph.node(id).attributes;
  if (!a.has(attribute)) return;
  const std::vector<std::int64_t> values = a.get_ints(attribute);
  a.erase(attribute);
  add_input_at(graph, id, place, from_ints(values));
}

// A scalar of the type of input 0.
void float_to_input(Graph& graph, NodeId id, const char* attribute, std::size_t place, double otherwise, bool always) {
  Node& n = graph.node(id);
  if (!n.attributes.has(attribute) && !always) return;
  const double value = n.attributes.get_float(attribute, static_cast<float>(otherwise));
  n.attributes.erase(attribute);
  const DataType elem = graph.value(n.inputs.at(0)).type.elem;
  Tensor t(elem == DataType::undefined ? DataType::float32 : elem, {});
  set_element(t, 0, value);
  add_input_at(graph, id, place, std::move(t));
}

void axes(Graph& graph, NodeId id) { ints_to_input(graph, id, "axes", 1); }
void split(Graph& graph, NodeId id) { ints_to_input(graph, id, "split", 1); }
void split_evenly(Graph& graph, NodeId id) {
  Node& n = graph.node(id);
  if (n.inputs.size() < 2 || n.inputs[1] == kNoValue) {
    n.attributes.set("num_outputs", static_cast<std::int64_t>(n.outputs.size()));
  }
}

void slice(Graph& graph, NodeId id) {
  ints_to_input(graph, id, "starts", 1);
  ints_to_input(graph, id, "ends", 2);
  ints_to_input(graph, id, "axes", 3);
}

void top_k(Graph& graph, NodeId id) {
  const std::int64_t k = graph.node(id).attributes.get_int("k");
  graph.node(id).attributes.erase("k");
  add_input_at(graph, id, 1, from_ints({k}));
}

void pad(Graph& graph, NodeId id) {
  ints_to_input(graph, id, "pads", 1);
  float_to_input(graph, id, "value", 2, 0, false);
}

void clip(Graph& graph, NodeId id) {
  float_to_input(graph, id, "min", 1, 0, false);
  float_to_input(graph, id, "max", 2, 0, false);
}

void dropout(Graph& graph, NodeId id) {
  graph.node(id).attributes.erase("is_test");
  const float ratio = graph.node(id).attributes.get_float("ratio", 0.5F);
  graph.node(id).attributes.erase("ratio");
  add_input_at(graph, id, 1, Tensor::scalar<float>(ratio));
}

// Upsample, and Resize before 11, stretch without half pixels.
void upsample(Graph& graph, NodeId id) {
  Node& n = graph.node(id);
  if (n.attributes.has("scales")) {
    const std::vector<float> scales = n.attributes.get_floats("scales");
    n.attributes.erase("scales");
    Tensor t(DataType::float32, {static_cast<std::int64_t>(scales.size())});
    std::copy(scales.begin(), scales.end(), t.mutable_values<float>().begin());
    add_input_at(graph, id, 1, std::move(t));
  }
  Node& changed = graph.node(id);
  changed.op_type = "Resize";
  changed.inputs.insert(changed.inputs.begin() + 1, kNoValue);
  changed.attributes.set("coordinate_transformation_mode", std::string("asymmetric"));
  changed.attributes.set("nearest_mode", std::string("floor"));
}

void scatter(Graph& graph, NodeId id) { graph.node(id).op_type = "ScatterElements"; }

void roi_align(Graph& graph, NodeId id) {
  graph.node(id).attributes.set("coordinate_transformation_mode", std::string("output_half_pixel"));
}

void grid_sample(Graph& graph, NodeId id) {
  Attributes& a = graph.node(id).attributes;
  const std::string mode = a.get_string("mode", "bilinear");
  a.set("mode", mode == "bilinear" ? std::string("linear") : mode == "bicubic" ? std::string("cubic") : mode);
}

void batch_norm(Graph& graph, NodeId id) {
  Node& n = graph.node(id);
  if (n.attributes.get_int("spatial", 1) == 0) {
    fail(ErrorCode::not_implemented, "{} normalises each element separately (spatial 0)", graph.describe(id));
  }
  for (const char* old : {"spatial", "is_test", "consumed_inputs"}) n.attributes.erase(old);
}

// Before 14 more outputs meant training: the running statistics, then the batch's.
void batch_norm_outputs(Graph& graph, NodeId id) {
  Node& n = graph.node(id);
  while (n.outputs.size() > 1 && n.outputs.back() == kNoValue) n.outputs.pop_back();
  if (n.outputs.size() <= 1) return;
  n.attributes.set("training_mode", std::int64_t{1});
  const auto users = graph.uses();
  for (std::size_t i = 3; i < n.outputs.size(); ++i) {
    if (n.outputs[i] == kNoValue) continue;
    if (!users[n.outputs[i]].empty())
      fail(ErrorCode::not_implemented, "{} has the batch's statistics as outputs", graph.describe(id));
    graph.value(n.outputs[i]).producer = kNoNode;
  }
  n.outputs.resize(std::min<std::size_t>(n.outputs.size(), 3));
}

// The version of the newest rule: its operators have kept their meaning since.
ValueId add_op(Graph& graph, const std::string& op, std::vector<ValueId> inputs, const std::string& output,
               Attributes attributes = {}) {
  return add_node(graph, make_node({}, op, kNewest, std::move(inputs), std::move(attributes)), output);
}

// Before 13 the axes from `axis` on (1 where it is not given) were one.
void softmax(Graph& graph, NodeId id) {
  const Node old = graph.node(id);
  const Type& type = graph.value(old.inputs.at(0)).type;
  if (!type.shape) fail(ErrorCode::not_implemented, "{}: the rank of its input is not known", graph.describe(id));
  const auto rank = static_cast<std::int64_t>(type.shape->size());
  const std::int64_t given = old.attributes.get_int("axis", 1);
  const std::int64_t axis = given < 0 ? given + rank : given;
  if (axis == rank - 1) {
    graph.node(id).attributes.set("axis", std::int64_t{-1});
    return;
  }
  const std::string& name = graph.value(old.outputs.at(0)).name;
  Attributes from_axis;
  from_axis.set("axis", axis);
  const ValueId flat = add_op(graph, "Flatten", {old.inputs[0]}, name + "/flat", from_axis);
  Attributes last;
  last.set("axis", std::int64_t{-1});
  const ValueId soft = add_op(graph, old.op_type, {flat}, name + "/rows", last);
  const ValueId shape = add_op(graph, "Shape", {old.inputs[0]}, name + "/shape");
  Node& n = graph.node(id);
  n.op_type = "Reshape";
  n.attributes = {};
  n.inputs = {soft, shape};
}

void refuse_group_norm(Graph& graph, NodeId id) {
  fail(ErrorCode::not_implemented, "{} has one scale for each group (opset 18 to 20)", graph.describe(id));
}

struct Rule {
  std::string_view ops;
  int since;
  Change change;
};

// The rules of one operator are in the order of versions.
constexpr std::array kRules{
    Rule{"BatchNormalization", 9, batch_norm},
    Rule{"BatchNormalization", 14, batch_norm_outputs},
    Rule{"Clip", 11, clip},
    Rule{"Dropout", 12, dropout},
    Rule{"GridSample", 20, grid_sample},
    Rule{"GroupNormalization", 21, refuse_group_norm},
    Rule{"Hardmax LogSoftmax Softmax", 13, softmax},
    Rule{"Pad", 11, pad},
    Rule{"ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSumSquare", 18, axes},
    Rule{"ReduceSum Squeeze Unsqueeze", 13, axes},
    Rule{"Resize", 11, upsample},
    Rule{"RoiAlign", 16, roi_align},
    Rule{"Scatter", 11, scatter},
    Rule{"Slice", 10, slice},
    Rule{"Split", 13, split},
    Rule{"Split", 18, split_evenly},
    Rule{"TopK", 10, top_k},
    Rule{"Upsample", 10, upsample},
};

[[noreturn]] void refuse(const Graph& graph, NodeId id, int target, const std::string& why) {
  const Node& n = graph.node(id);
  fail(ErrorCode::not_implemented, "{} is of opset {} and cannot be written in opset {}{}; export the model with opset 13 to {}",
       graph.describe(id), n.version, target, why, kNewest);
}

// A definition may serve several versions that mean different things, so the rules come first.
void convert_node(Graph& graph, NodeId id, int target) {
  const Node before = graph.node(id);
  const ops::OpDef* const own = ops::find(before);
  if (own == nullptr) return;
  bool changed = false;
  for (const Rule& rule : kRules) {
    if (!has_word(rule.ops, before.op_type) || before.version >= rule.since || rule.since > target) continue;
    rule.change(graph, id);
    changed = true;
  }
  Node& n = graph.node(id);
  const ops::OpDef* const def = ops::table().find("", n.op_type, target);
  n.version = target;
  if (!changed && def == own) return;
  n.version = before.version;  // for the message
  if (def == nullptr || (def->deprecated_at != 0 && def->deprecated_at <= target)) refuse(graph, id, target, "");
  for (const auto& [name, value] : n.attributes.items()) {
    const auto known = [&](const ops::AttrDef& a) { return a.name == name; };
    if (std::none_of(def->attributes.begin(), def->attributes.end(), known)) {
      refuse(graph, id, target, ", which does not know its attribute '" + name + "'");
    }
  }
  n.version = target;
  ops::check_node(graph, n, *def);
}

}  // namespace

void convert_opset(Graph& graph, int target) {
  const auto nodes = static_cast<NodeId>(graph.nodes().size());  // rules add nodes of the right version
  for (NodeId id = 0; id < nodes; ++id) {
    if (graph.node(id).removed) continue;
    for (Subgraph& s : graph.node(id).subgraphs) convert_opset(*s.graph, target);
    if (graph.node(id).domain.empty() && graph.node(id).version != target) convert_node(graph, id, target);
  }
  graph.compact();
}

}  // namespace sdx::session
