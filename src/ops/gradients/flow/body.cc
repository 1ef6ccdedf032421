#include "ops/gradients/flow/body.h"

#include <algorithm>

#include "base/error.h"
#include "graph/edit.h"
#include "ops/op.h"

namespace sdx::ops::flow {
namespace {

// Constants of at most this many elements are copied, so that gradient functions see them; larger ones are captured.
constexpr std::int64_t kCopiedElements = 1024;

bool is_random(const Node& n) {
  const OpDef* def = find(n);
  return def != nullptr && !def->deterministic;
}

bool holds_random(const Node& n) {
  return std::any_of(n.subgraphs.begin(), n.subgraphs.end(), [](const Subgraph& s) {
    const auto& nodes = s.graph->nodes();
    return std::any_of(nodes.begin(), nodes.end(),
                       [](const Node& inner) { return !inner.removed && (is_random(inner) || holds_random(inner)); });
  });
}

}  // namespace

Body::Body(GradientContext& c, std::size_t index) : context_(c), graph_(*c.node().subgraphs.at(index).graph) {
  const Node& node = c.node();
  first_operand_ = node.inputs.size();
  for (std::size_t i = 0; i < index; ++i) first_operand_ += node.subgraphs[i].captures.size();
  outside_ = node.subgraphs[index].captures;
  const std::vector<ValueId> inputs = graph_.inputs();
  const auto split = inputs.end() - static_cast<std::ptrdiff_t>(outside_.size());
  formals_.assign(inputs.begin(), split);
  captured_.assign(split, inputs.end());
  outputs_ = graph_.outputs();
  for (std::size_t i = inputs.size(); i-- > 0;) graph_.remove_input(i);
  for (std::size_t i = outputs_.size(); i-- > 0;) graph_.remove_output(i);
  own_nodes_ = static_cast<NodeId>(graph_.nodes().size());
  for (std::size_t j = 0; j < captured_.size(); ++j) {
    const ValueInfo& info = c.graph().value(outside_[j]);
    if (info.constant && !info.is_input && !wanted(j) && info.constant->size() <= kCopiedElements) {
      graph_.value(captured_[j]).constant = info.constant;
    }
  }
}

Body::Found Body::back(const std::vector<Seed>& seeds, const std::vector<ValueId>& sources) {
  std::vector<ValueId> xs = sources;
  std::vector<std::size_t> numbers;
  for (std::size_t j = 0; j < captured_.size(); ++j) {
    if (!wanted(j)) continue;
    numbers.push_back(j);
    xs.push_back(captured_[j]);
  }
  const std::vector<ValueId> gradients = append_backward(graph_, seeds, xs, context_.fused());
  const auto split = gradients.begin() + static_cast<std::ptrdiff_t>(sources.size());
  Found found;
  found.sources.assign(gradients.begin(), split);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const ValueId g = gradients[sources.size() + i];
    if (g != kNoValue) found.captures.emplace_back(numbers[i], g);
  }
  return found;
}

ValueId Body::capture(ValueId outer) {
  for (const auto& [inside, outside] : new_captures_) {
    if (outside == outer) return inside;
  }
  const ValueInfo& info = context_.graph().value(outer);
  const ValueId inside = graph_.add_value(info.name, info.type);
  new_captures_.emplace_back(inside, outer);
  return inside;
}

void Body::note_uses() {
  used_.assign(graph_.values().size(), false);
  for (const Node& n : graph_.nodes()) {
    if (n.removed) continue;
    for (const ValueId v : operands(n)) {
      if (v != kNoValue) used_[v] = true;
    }
  }
  for (const ValueId v : graph_.outputs()) used_[v] = true;
}

void Body::prune() {
  const std::vector<bool> needed = needed_for(graph_, graph_.outputs());
  for (auto id = static_cast<NodeId>(graph_.nodes().size()); id-- > 0;) {
    const Node& n = graph_.node(id);
    const auto read = [&](ValueId v) { return v != kNoValue && needed[v]; };
    if (!n.removed && std::none_of(n.outputs.begin(), n.outputs.end(), read)) graph_.remove_node(id);
  }
  note_uses();
}

std::vector<ValueId> Body::take_random() {
  std::vector<ValueId> taken;
  bool any = false;
  for (NodeId id = 0; id < own_nodes_; ++id) {
    const Node& n = graph_.node(id);
    if (n.removed) continue;
    if (holds_random(n)) {
      fail(ErrorCode::not_implemented,
           "no gradient through {}: random operators two graphs deep; move them out of the inner graph", graph_.describe(id));
    }
    if (!is_random(n)) continue;
    for (const ValueId v : n.outputs) {
      if (v != kNoValue && used(v)) taken.push_back(v);
    }
    graph_.remove_node(id);
    any = true;
  }
  if (any) prune();
  std::erase_if(taken, [&](ValueId v) { return !used(v); });
  return taken;
}

void Body::provide(ValueId v, const char* op, std::vector<ValueId> inputs) {
  add_node(graph_, make_node({}, op, 21, std::move(inputs)), v);
}

Subgraph Body::finish(const char* attribute) {
  note_uses();
  for (std::size_t j = 0; j < captured_.size(); ++j) {
    const ValueInfo& info = graph_.value(captured_[j]);
    if (used_[captured_[j]] && !info.constant) provide(captured_[j], capture(outside_[j]));
  }
  note_uses();
  Subgraph s;
  s.attribute = attribute;
  for (const auto& [inside, outside] : new_captures_) {
    if (inside >= used_.size() || !used_[inside]) continue;
    const ValueId input = graph_.add_input(graph_.value(inside).name, graph_.value(inside).type);
    graph_.replace_uses(inside, input);
    s.captures.push_back(outside);
  }
  graph_.compact();
  graph_.drop_unused_values();
  s.graph = std::make_unique<Graph>(std::move(graph_));
  return s;
}

Graph& own_body(GradientContext& c, std::size_t index) { return *c.graph().node(c.id()).subgraphs.at(index).graph; }

ValueId add_result(GradientContext& c, std::size_t index, ValueId v, Type type) {
  Graph& body = own_body(c, index);
  const ValueId result = append_node(body, "Identity", {v});
  body.value(result).type = body.value(v).type;
  body.add_output(result);
  const ValueId outer = c.graph().add_value(body.value(v).name + "_each", std::move(type));
  c.graph().node(c.id()).outputs.push_back(outer);
  c.graph().value(outer).producer = c.id();
  return outer;
}

}  // namespace sdx::ops::flow
