#include "providers/cpu/layout/channels_last.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "graph/edit.h"
#include "ops/conv/conv_geometry.h"
#include "ops/conv/signatures.h"
#include "ops/math/fused_activation.h"
#include "ops/math/signatures.h"
#include "passes/fuse/match.h"

namespace sdx::cpu {
namespace {

// [N, C, H, W] with constant extents but for the batch; null otherwise.
const SymShape* picture(const Graph& g, ValueId v) {
  const SymShape* s = shape_of(g, v);
  const bool fits = s != nullptr && s->size() == 4 && is_f32(g, v) &&
                    std::all_of(s->begin() + 1, s->end(), [](const Dim& d) { return d.is_const() && d.value() > 0; });
  return fits ? s : nullptr;
}

// Whether a Reshape between `four`, [N, C, H, W], and `three` only joins H and W.
bool joins_pixels(const SymShape& four, const SymShape& three) {
  return three.size() == 3 && three[0] == four[0] && three[1] == four[1] && is_const(three[2], four[2].value() * four[3].value());
}

// The value that a picture is a transposition of: [N, H, W, C] or, if `flat`, [N, H W, C].
struct Last {
  ValueId value = kNoValue;
  bool flat = false;
};
Last last_form(const Graph& g, ValueId v) {
  const SymShape* s = picture(g, v);
  if (s == nullptr) return {};
  if (const Node* t = made_by(g, v, "Transpose", 1); t != nullptr && fuse::has_perm(*t, {0, 3, 1, 2})) {
    return {t->inputs[0], false};
  }
  const Node* apart = made_by(g, v, "Reshape", 2);
  const Node* t = apart == nullptr ? nullptr : made_by(g, apart->inputs[0], "Transpose", 1);
  if (t == nullptr || !fuse::has_perm(*t, {0, 2, 1})) return {};
  return joins_pixels(*s, *shape_of(g, apart->inputs[0])) ? Last{t->inputs[0], true} : Last{};
}

// The transpositions that read the picture's channels last.
struct Turns {
  std::vector<NodeId> four, three;
  bool others = false;
};
Turns turns_of(const Graph& g, ValueId v, const Readers& readers) {
  Turns r;
  r.others = is_output(g, v);
  const SymShape& s = *picture(g, v);
  for (const NodeId id : readers.of(v)) {
    const Node& n = g.node(id);
    if (n.removed) continue;
    if (is_op(n, "Transpose") && fuse::has_perm(n, {0, 2, 3, 1})) {
      r.four.push_back(id);
      continue;
    }
    const ValueId joined = is_op(n, "Reshape") && n.inputs[0] == v ? n.outputs[0] : kNoValue;
    const SymShape* to = shape_of(g, joined);
    if (to == nullptr || !joins_pixels(s, *to)) {
      r.others = true;
      continue;
    }
    if (is_output(g, joined)) r.others = true;
    for (const NodeId turn : readers.of(joined)) {
      if (g.node(turn).removed) continue;
      const bool turns = is_op(g.node(turn), "Transpose") && fuse::has_perm(g.node(turn), {0, 2, 1});
      turns ? r.three.push_back(turn) : void(r.others = true);
    }
  }
  return r;
}

bool is_depthwise(const Graph& g, const Node& n) {
  const bool fused = n.domain == "com.microsoft" && n.op_type == "FusedConv";
  if (n.removed || (!fused && !is_op(n, "Conv"))) return false;
  const Tensor* w = constant_input(g, n, ops::ConvIn::kW);
  return w != nullptr && w->dtype() == DataType::float32 && w->rank() == 4 && w->size() > 0 && w->shape()[1] == 1 &&
         ops::group_of(n.attributes) == w->shape()[0] && !ops::crops(n.attributes);
}

// The word and parameters of an activation that the kernel can apply to its results; no word for other nodes.
struct Word {
  std::string name;
  std::vector<float> params;
};
Word activation_of(const Node& n) {
  if (n.removed || n.inputs.size() != 1 || n.outputs.size() != 1) return {};
  const bool microsoft = n.domain == "com.microsoft";
  if (!microsoft && !n.domain.empty()) return {};
  if (microsoft) {
    const bool known = n.op_type == "QuickGelu" || n.op_type == "Gelu" || n.op_type == "FastGelu";
    if (!known) return {};
    const float alpha = ops::parse<ops::ActivationAttrs>(n).alpha;
    return alpha == 0 ? Word{n.op_type, {}} : Word{n.op_type, {alpha}};
  }
  if (n.op_type == "Gelu") return {ops::parse<ops::GeluAttrs>(n).tanh() ? "FastGelu" : "Gelu", {}};
  for (const char* word : {"Relu", "HardSwish", "Sigmoid", "Tanh"}) {
    if (n.op_type == word) return {word, {}};
  }
  return {};
}

class Rewrite {
 public:
  Rewrite(Graph& g, Readers& readers, NodeId id) : g_(g), readers_(readers), id_(id), name_(g.node(id).name), version_(13) {}

  bool run() {
    const Node n = g_.node(id_);
    const ValueId out = n.outputs.at(0);
    const ValueId z = input_of(n, ops::ConvIn::kZ);
    if (picture(g_, out) == nullptr) return false;
    const SymShape shape = *picture(g_, out);
    const Last x = last_form(g_, n.inputs[0]), sum = z == kNoValue ? Last{} : last_form(g_, z);
    if (x.value == kNoValue || (z != kNoValue && sum.value == kNoValue)) return false;
    readers_.update();
    const Turns turns = turns_of(g_, out, readers_);
    if (turns.four.empty() && turns.three.empty()) return false;

    Node conv = n;
    conv.domain = "sdx", conv.op_type = "ChannelsLastConv", conv.version = 1;
    conv.inputs[0] = pictured(x, n.inputs[0]);
    if (z != kNoValue) conv.inputs[ops::ConvIn::kZ] = z == n.inputs[0] ? conv.inputs[0] : pictured(sum, z);
    const ValueId last = g_.add_value(g_.value(out).name + "_last");
    conv.outputs = {last};
    const NodeId follower = turns.others ? kNoNode : sole_activation(turns, n);
    ValueId replaced = kNoValue;
    if (follower != kNoNode) {
      Word word = activation_of(g_.node(follower));
      conv.attributes.set("activation", std::move(word.name));
      if (!word.params.empty()) conv.attributes.set("activation_params", std::move(word.params));
      replaced = g_.node(follower).outputs[0];
      readers_.remove_node(g_, follower);
    }
    readers_.remove_node(g_, id_);
    g_.add_node(std::move(conv));
    if (turns.others) transpose(last, out);
    for (const NodeId id : turns.four) replace(id, last, replaced);
    for (const NodeId id : turns.three) {
      const ValueId flat = g_.add_value(g_.value(last).name + "_flat");
      add_reshape(g_, name_ + "/pixels", version_, last, g_.value(flat).name + "_shape",
                  {0, shape[2].value() * shape[3].value(), shape[1].value()}, flat);
      replace(id, flat, replaced);
    }
    return true;
  }

 private:
  // The form with four axes.
  ValueId pictured(const Last& l, ValueId plain) {
    if (!l.flat) return l.value;
    const SymShape s = *picture(g_, plain);
    const ValueId v = g_.add_value(g_.value(plain).name + "_last");
    return add_reshape(g_, name_ + "/rows", version_, l.value, g_.value(v).name + "_shape",
                       {0, s[2].value(), s[3].value(), s[1].value()}, v);
  }

  // The activation that alone reads the convolution's result, which has none yet.
  NodeId sole_activation(const Turns& r, const Node& conv) const {
    if (r.four.size() + r.three.size() != 1) return kNoNode;
    if (conv.domain == "com.microsoft" && !ops::parse<ops::FusedActivationFields>(conv).activation.empty()) return kNoNode;
    const ValueId turned = g_.node(r.four.empty() ? r.three[0] : r.four[0]).outputs[0];
    const NodeId id = readers_.only(turned);
    return id != kNoNode && !activation_of(g_.node(id)).name.empty() ? id : kNoNode;
  }

  void transpose(ValueId from, ValueId to) {
    add_node(g_, make_node(name_ + "/plain", "Transpose", version_, {from}, {{"perm", std::vector<std::int64_t>{0, 3, 1, 2}}}),
             to);
  }

  // The transposition's result, or that of the activation behind it, is `by`.
  void replace(NodeId turn, ValueId by, ValueId activated) {
    const ValueId was = activated != kNoValue ? activated : g_.node(turn).outputs[0];
    readers_.remove_node(g_, turn);
    readers_.update();
    readers_.replace(g_, was, by);
  }

  Graph& g_;
  Readers& readers_;
  NodeId id_;
  std::string name_;
  int version_;  // of the nodes around the convolution
};

void remove_unread(Graph& g) {
  const Readers readers(g);
  std::vector<NodeId> left(g.nodes().size());
  std::iota(left.begin(), left.end(), NodeId{0});
  while (!left.empty()) {
    const Node& n = g.node(left.back());
    const NodeId id = left.back();
    left.pop_back();
    if (!is_op(n, "Transpose") && !is_op(n, "Reshape")) continue;
    if (readers.is_read(n.outputs.at(0))) continue;
    const NodeId before = g.value(n.inputs.at(0)).producer;
    g.remove_node(id);
    if (before != kNoNode) left.push_back(before);
  }
}

}  // namespace

bool channels_last(Graph& graph) {
  bool changed = false;
  const std::size_t count = graph.nodes().size();
  std::optional<Readers> readers;
  for (NodeId id = 0; id < count; ++id) {
    if (!is_depthwise(graph, graph.node(id))) continue;
    if (!readers) readers.emplace(graph);
    changed = Rewrite(graph, *readers, id).run() || changed;
  }
  if (changed) remove_unread(graph);
  return changed;
}

}  // namespace sdx::cpu
