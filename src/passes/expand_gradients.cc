#include "passes/expand_gradients.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/suggest.h"
#include "graph/edit.h"
#include "ops/backward.h"
#include "ops/control/signatures.h"
#include "ops/gradient.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "tensor/element.h"

namespace sdx {
namespace {

constexpr int kEmitted = 21;  // opset version of the nodes below

// Gradients of gradients multiply nodes: a small file could ask for more than any machine holds.
constexpr std::size_t kMostNodes = 200'000;

bool is_gradient(const Node& n) { return !n.removed && n.domain == "ai.onnx.preview.training" && n.op_type == "Gradient"; }

class Expansion {
 public:
  Expansion(Graph& graph, const GradientOptions& options) : graph_(graph), options_(options) {}

  // False when a Gradient on the way must be expanded before.
  bool run(NodeId gradient) {
    node_ = graph_.node(gradient);
    read_names();
    find_between();
    if (meets_gradient()) return false;
    if (moved_) repeat_between();
    if (depends_[y_]) accumulate(y_, filled_like(y_, 1));
    go_back_all();
    graph_.remove_node(gradient);
    for (std::size_t i = 0; i < node_.outputs.size(); ++i) {
      if (node_.outputs[i] != kNoValue) emit_to("Identity", {result(i)}, node_.outputs[i]);
    }
    return true;
  }

  std::vector<ValueId> append(ValueId y, std::span<const ValueId> xs) {
    sources_.assign(xs.begin(), xs.end());
    differentiated_ = sources_.size();
    for (const auto& [also, seed] : options_.also) {
      y_ = also;
      check_differentiable();
    }
    y_ = y;
    check_differentiable();
    find_between();
    SDX_ASSERT(!meets_gradient());
    if (depends_[y_]) accumulate(y_, options_.seed != kNoValue ? options_.seed : filled_like(y_, 1));
    for (const auto& [also, seed] : options_.also) {
      if (depends_[also]) accumulate(also, seed);
    }
    go_back_all();
    std::vector<ValueId> out;
    for (const ValueId x : sources_) out.push_back(gradient_of(x));
    return out;
  }

 private:
  bool meets_gradient() const {
    return std::any_of(between_.begin(), between_.end(), [&](NodeId id) { return is_gradient(graph_.node(id)); });
  }

  void go_back_all() {
    for (std::size_t i = between_.size(); i-- > 0;) go_back(between_[i]);
  }

  void check_differentiable() const {
    const Type& t = graph_.value(y_).type;
    if (!t.is_tensor() || (ops::types::floats & ops::bit(t.elem)) == 0) {
      fail(ErrorCode::invalid_model, "the gradient of '{}', which is {}; expected a tensor of floats", graph_.value(y_).name,
           t.str());
    }
  }

  ValueId named(const std::string& name) const {
    if (const auto found = graph_.find(name)) return *found;
    std::vector<std::string> names;
    for (const ValueInfo& v : graph_.values()) names.push_back(v.name);
    const std::string near = closest(name, names);
    fail(ErrorCode::invalid_model, "the graph has no value '{}'{}", name, near.empty() ? "" : "; did you mean '" + near + "'?");
  }

  void read_names() {
    const auto attr = ops::parse<ops::GradientAttrs>(node_);
    for (const std::string& name : attr.xs) sources_.push_back(named(name));
    for (const std::string& name : attr.zs) sources_.push_back(named(name));
    differentiated_ = attr.xs.size();
    y_ = named(std::string(attr.y));
    check_differentiable();
    for (std::size_t i = 0; i < sources_.size(); ++i) moved_ = moved_ || node_.inputs[i] != sources_[i];
  }

  // The nodes on the way from the sources to y, in order, and which values depend on those that are differentiated by.
  void find_between() {
    std::vector<bool> needed(graph_.values().size(), false);
    std::vector<bool> source(graph_.values().size(), false);
    for (const ValueId v : sources_) source[v] = true;
    needed[y_] = !source[y_];
    for (const auto& [also, seed] : options_.also) needed[also] = !source[also];
    // Nodes after the Gradient are visited, too: it refers to y by name, which implies no order.
    for (NodeId id = static_cast<NodeId>(graph_.nodes().size()); id-- > 0;) {
      const Node& n = graph_.node(id);
      const bool used = std::any_of(n.outputs.begin(), n.outputs.end(), [&](ValueId v) { return v != kNoValue && needed[v]; });
      if (n.removed || !used) continue;
      between_.push_back(id);
      const auto need = [&](ValueId v) {
        if (v != kNoValue && !source[v]) needed[v] = true;
      };
      for (const ValueId v : n.inputs) need(v);
      for (const Subgraph& s : n.subgraphs) std::for_each(s.captures.begin(), s.captures.end(), need);
    }
    std::reverse(between_.begin(), between_.end());
    keep_what_follows(source);
  }

  // Keeps those of these nodes that a source reaches.
  void keep_what_follows(const std::vector<bool>& source) {
    std::vector<bool> reached = source;
    depends_.assign(graph_.values().size(), false);
    for (std::size_t i = 0; i < differentiated_; ++i) depends_[sources_[i]] = true;
    std::erase_if(between_, [&](NodeId id) {
      const Node& n = graph_.node(id);
      bool any = false;
      bool differentiable = false;
      const auto look = [&](ValueId v) {
        any = any || (v != kNoValue && reached[v]);
        differentiable = differentiable || (v != kNoValue && depends_[v]);
      };
      for (const ValueId v : n.inputs) look(v);
      for (const Subgraph& s : n.subgraphs) std::for_each(s.captures.begin(), s.captures.end(), look);
      for (const ValueId v : n.outputs) {
        if (v == kNoValue) continue;
        reached[v] = any;
        // Rounding counts as the identity: numbers that stand for floats carry gradients, which are floats.
        depends_[v] = differentiable && (is_float(v) || n.op_type == "QuantizeLinear");
      }
      return !any;
    });
  }

  bool is_float(ValueId v) const { return ops::has_derivative(graph_.value(v).type); }

  // The gradient is asked for at other values than those named: the same computation, from these.
  void repeat_between() {
    std::vector<std::pair<ValueId, ValueId>> replaced;
    const auto map = [&](ValueId v) {
      const auto it = std::find_if(replaced.begin(), replaced.end(), [&](const auto& r) { return r.first == v; });
      return it == replaced.end() ? v : it->second;
    };
    const auto replace = [&](ValueId from, ValueId to) {
      replaced.emplace_back(from, to);
      if (depends_.size() < graph_.values().size()) depends_.resize(graph_.values().size(), false);
      depends_[to] = depends_[from];
    };
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const ValueId own = emit("Identity", {node_.inputs[i]});  // the same value may stand for two names
      graph_.value(own).type = graph_.value(node_.inputs[i]).type;
      replace(sources_[i], own);
      sources_[i] = own;
    }
    for (NodeId& id : between_) {
      Node copy = graph_.node(id);
      copy.name.clear();
      for (ValueId& v : copy.inputs) v = v == kNoValue ? v : map(v);
      for (Subgraph& s : copy.subgraphs) std::transform(s.captures.begin(), s.captures.end(), s.captures.begin(), map);
      for (ValueId& v : copy.outputs) {
        if (v == kNoValue) continue;
        const ValueId fresh = graph_.add_value(graph_.value(v).name, graph_.value(v).type);
        replace(v, fresh);
        v = fresh;
      }
      id = graph_.add_node(std::move(copy));
    }
    y_ = map(y_);
  }

  void emit_to(const char* op, std::vector<ValueId> inputs, ValueId output) {
    add_node(graph_, make_node({}, op, kEmitted, std::move(inputs)), output);
  }
  ValueId emit(const char* op, std::vector<ValueId> inputs) {
    return add_node(graph_, make_node({}, op, kEmitted, std::move(inputs)), "gradient");
  }

  ValueId filled_like(ValueId v, double value) {
    const Type& type = graph_.value(v).type;
    Tensor t(type.elem, {});
    set_element(t, 0, value);
    const ValueId scalar = graph_.add_constant("gradient_constant", std::move(t));
    if (type.shape && type.shape->empty()) return scalar;
    const ValueId out = emit("Expand", {scalar, emit("Shape", {v})});
    graph_.value(out).type = graph_.value(v).type;
    return out;
  }

  void accumulate(ValueId v, ValueId gradient) {
    if (gradients_.size() < graph_.values().size()) gradients_.resize(graph_.values().size(), kNoValue);
    if (gradients_[v] != kNoValue) gradient = ops::append_sum(graph_, gradients_[v], gradient, graph_.value(v).type);
    // emit() added values, but none below v
    if (is_float(v)) graph_.value(gradient).type = graph_.value(v).type;
    gradients_[v] = gradient;
  }

  ValueId gradient_of(ValueId v) const { return v < gradients_.size() ? gradients_[v] : kNoValue; }

  void go_back(NodeId id) {
    if (graph_.nodes().size() > kMostNodes) fail(ErrorCode::out_of_memory, "the gradient needs more than {} nodes", kMostNodes);
    const std::vector<ValueId> reads = ops::operands(graph_.node(id));
    std::vector<ValueId> of_outputs;
    bool any = false;
    for (const ValueId v : graph_.node(id).outputs) {
      of_outputs.push_back(v == kNoValue || is_source(v) ? kNoValue : gradient_of(v));
      any = any || of_outputs.back() != kNoValue;
    }
    if (!any) return;
    std::vector<bool> wanted;
    for (const ValueId v : reads) wanted.push_back(v != kNoValue && depends_[v]);
    if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return;
    const std::vector<ValueId> results = ops::emit_gradient(graph_, id, std::move(of_outputs), wanted, options_.fused);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i] != kNoValue && wanted[i]) accumulate(reads[i], results[i]);
    }
  }

  // Differentiation stops at sources, whatever made them.
  bool is_source(ValueId v) const { return std::find(sources_.begin(), sources_.end(), v) != sources_.end(); }

  ValueId result(std::size_t i) {
    const ValueId g = gradient_of(sources_[i]);
    return g != kNoValue ? g : filled_like(sources_[i], 0);
  }

  Graph& graph_;
  GradientOptions options_;
  Node node_;                     // the Gradient
  std::vector<ValueId> sources_;  // xs, then zs
  std::size_t differentiated_ = 0;
  ValueId y_ = kNoValue;
  bool moved_ = false;
  std::vector<NodeId> between_;
  std::vector<bool> depends_;       // by value
  std::vector<ValueId> gradients_;  // by value; kNoValue: none so far
};

// Expands one; those that others differentiate through come first.
bool expand_one(Graph& graph) {
  NodeId last = kNoNode;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    if (!is_gradient(graph.node(id))) continue;
    last = id;
    try {
      if (Expansion(graph, {}).run(id)) return true;
    } catch (Error& e) {
      e.add_context("in " + graph.describe(id));
      throw;
    }
  }
  if (last != kNoNode) fail(ErrorCode::invalid_model, "{} differentiates through itself", graph.describe(last));
  return false;
}

}  // namespace

bool expand_gradients(Graph& graph) {
  bool changed = false;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    for (Subgraph& s : graph.node(id).subgraphs) changed = expand_gradients(*s.graph) || changed;
  }
  while (expand_one(graph)) {
    graph.compact();
    ops::infer_in_place(graph);
    changed = true;
  }
  return changed;
}

std::vector<ValueId> append_gradients(Graph& graph, ValueId y, std::span<const ValueId> xs, const GradientOptions& options) {
  std::vector<ValueId> out = Expansion(graph, options).append(y, xs);
  graph.compact();
  ops::infer_in_place(graph);
  return out;
}

}  // namespace sdx
