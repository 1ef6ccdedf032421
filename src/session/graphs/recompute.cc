#include "session/graphs/recompute.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/words.h"
#include "ops/op.h"
#include "passes/pass.h"

namespace sdx::session {
namespace {

// At most a few operations for an element of their output.
constexpr std::string_view kCheap =
    "Abs Add Cast CastLike Clip Div Elu Equal Erf Exp Gelu Greater HardSigmoid HardSwish LayerNormalization LeakyRelu Less Mish "
    "Mul Neg Not Pow QuickGelu Reciprocal Relu Selu Sigmoid SimplifiedLayerNormalization Softplus Softsign Sqrt Sub Swish Tanh "
    "Where FastGelu";

bool is_cheap(const Node& n) { return has_word(kCheap, n.op_type); }

bool may_repeat(const Node& n) {
  if (n.custom || !n.subgraphs.empty() || n.op_type == "BatchNormInternal") return false;
  const ops::OpDef* const def = ops::find(n);
  return def != nullptr && def->deterministic;
}

class Recompute {
 public:
  Recompute(Graph& graph, ValueId forward, const std::vector<bool>& wanted, bool automatic) : graph_(graph), forward_(forward) {
    chosen_.assign(graph.values().size(), false);
    for (ValueId v = 0; v < std::min<std::size_t>(forward, wanted.size()); ++v) {
      const NodeId from = graph.value(v).producer;
      chosen_[v] = wanted[v] && from != kNoNode && may_repeat(graph.node(from));
    }
    if (automatic) choose_cheap();
  }

  void run() {
    const auto nodes = static_cast<NodeId>(graph_.nodes().size());
    for (NodeId id = 0; id < nodes; ++id) {
      if (graph_.node(id).removed || is_forward(graph_.node(id))) continue;
      // Repeating adds nodes, and so may move none of the inputs that are read here.
      for (std::size_t i = 0; i < graph_.node(id).inputs.size(); ++i) {
        const ValueId read = graph_.node(id).inputs[i];
        if (read == kNoValue || !is_chosen(read)) continue;
        const ValueId again = repeated(read);
        graph_.node(id).inputs[i] = again;
      }
    }
    graph_.compact();
  }

 private:
  // Chooses values whose inputs are available anyway: parameters, values that the backward part keeps for another reason, and
  // recomputed values.
  void choose_cheap() {
    std::vector<bool> there(graph_.values().size(), false);
    for (ValueId v = 0; v < graph_.values().size(); ++v) there[v] = graph_.value(v).producer == kNoNode || chosen_[v];
    for (const Node& n : graph_.nodes()) {
      if (n.removed || is_forward(n)) continue;
      for (const ValueId v : n.inputs) {
        if (v != kNoValue) there[v] = true;
      }
    }
    for (const Node& n : graph_.nodes()) {
      if (n.removed || !is_forward(n) || !is_cheap(n) || !may_repeat(n)) continue;
      const auto is_there = [&](ValueId v) { return v == kNoValue || there[v]; };
      if (!std::all_of(n.inputs.begin(), n.inputs.end(), is_there)) continue;
      for (const ValueId v : n.outputs) {
        if (v != kNoValue && v < forward_) chosen_[v] = there[v] = true;
      }
    }
  }

  bool is_forward(const Node& n) const {
    return std::any_of(n.outputs.begin(), n.outputs.end(), [&](ValueId v) { return v < forward_; });
  }
  bool is_chosen(ValueId v) const { return v < chosen_.size() && chosen_[v]; }

  // Producers first, without recursion: chains of cheap nodes may be long.
  ValueId repeated(ValueId value) {
    std::vector<ValueId> open{value};
    while (!open.empty()) {
      const ValueId v = open.back();
      if (again_.contains(v)) {
        open.pop_back();
        continue;
      }
      const NodeId from = graph_.value(v).producer;
      bool ready = true;
      for (const ValueId in : graph_.node(from).inputs) {
        if (in == kNoValue || !is_chosen(in) || again_.contains(in)) continue;
        open.push_back(in);
        ready = false;
      }
      if (ready) repeat_node(from);
    }
    return again_.at(value);
  }

  void repeat_node(NodeId id) {
    Node copy = graph_.node(id);
    copy.name.insert(0, kAgain);
    for (ValueId& in : copy.inputs) {
      if (in != kNoValue && is_chosen(in)) in = again_.at(in);
    }
    for (ValueId& out : copy.outputs) {
      if (out == kNoValue) continue;
      const ValueId fresh = graph_.add_value(std::string(kAgain) + graph_.value(out).name, graph_.value(out).type);
      again_[out] = fresh;
      out = fresh;
    }
    graph_.add_node(std::move(copy));
  }

  Graph& graph_;
  ValueId forward_;
  std::vector<bool> chosen_;  // by value
  std::map<ValueId, ValueId> again_;
};

}  // namespace

void recompute(Graph& graph, ValueId forward, const std::vector<bool>& wanted, bool automatic) {
  Recompute(graph, forward, wanted, automatic).run();
}

}  // namespace sdx::session
