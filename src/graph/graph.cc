#include "graph/graph.h"

#include <algorithm>
#include <queue>

#include "base/error.h"
#include "base/system/printable.h"

namespace sdx {

Subgraph::Subgraph(const Subgraph& other)
    : attribute(other.attribute),
      graph(other.graph ? std::make_unique<Graph>(*other.graph) : nullptr),
      captures(other.captures) {}

Subgraph& Subgraph::operator=(const Subgraph& other) {
  if (this != &other) *this = Subgraph(other);
  return *this;
}

const Subgraph* Node::subgraph(std::string_view attribute) const {
  for (const Subgraph& s : subgraphs) {
    if (s.attribute == attribute) return &s;
  }
  return nullptr;
}

std::string Graph::unique_name(std::string name) {
  if (!name.empty() && !by_name_.contains(name)) return name;
  const std::string base = name.empty() ? "value" : name;
  std::string candidate;
  do {
    candidate = base + "_" + std::to_string(next_suffix_++);
  } while (by_name_.contains(candidate));
  return candidate;
}

ValueId Graph::add_value(std::string name, Type type) {
  const auto id = static_cast<ValueId>(values_.size());
  ValueInfo info;
  info.name = unique_name(std::move(name));
  info.declared = type;
  info.type = std::move(type);
  by_name_.emplace(info.name, id);
  values_.push_back(std::move(info));
  return id;
}

ValueId Graph::add_input(std::string name, Type type) {
  const ValueId id = add_value(std::move(name), std::move(type));
  values_[id].is_input = true;
  inputs_.push_back(id);
  return id;
}

ValueId Graph::add_constant(std::string name, Tensor tensor) {
  const ValueId id = add_value(std::move(name), Type::tensor(tensor.dtype(), to_sym(tensor.shape())));
  values_[id].constant = std::move(tensor);
  return id;
}

void Graph::add_output(ValueId id, std::string name) {
  outputs_.push_back(id);
  output_names_.push_back(name.empty() ? values_.at(id).name : std::move(name));
}

void Graph::remove_output(std::size_t index) {
  outputs_.erase(outputs_.begin() + static_cast<std::ptrdiff_t>(index));
  output_names_.erase(output_names_.begin() + static_cast<std::ptrdiff_t>(index));
}

void Graph::remove_input(std::size_t index) {
  const ValueId id = inputs_.at(index);
  inputs_.erase(inputs_.begin() + static_cast<std::ptrdiff_t>(index));
  values_[id].is_input = std::find(inputs_.begin(), inputs_.end(), id) != inputs_.end();
}

void Graph::permute_inputs(const std::vector<std::size_t>& order) {
  SDX_ASSERT(order.size() == inputs_.size());
  std::vector<ValueId> moved;
  for (const std::size_t i : order) moved.push_back(inputs_.at(i));
  inputs_ = std::move(moved);
}

std::optional<ValueId> Graph::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? std::nullopt : std::optional(it->second);
}

void Graph::rename(ValueId id, std::string name) {
  by_name_.erase(values_.at(id).name);
  values_[id].name = unique_name(std::move(name));
  by_name_.emplace(values_[id].name, id);
}

NodeId Graph::add_node(Node node) {
  const auto id = static_cast<NodeId>(nodes_.size());
  for (const ValueId v : node.outputs) {
    if (v == kNoValue) continue;
    ValueInfo& out = values_.at(v);
    if (out.producer != kNoNode || out.is_input || out.constant) {
      fail(ErrorCode::invalid_model, "value '{}' is produced twice; every name may be assigned once (single static assignment)",
           out.name);
    }
    out.producer = id;
  }
  nodes_.push_back(std::move(node));
  return id;
}

void Graph::remove_node(NodeId id) {
  Node& n = nodes_.at(id);
  for (const ValueId v : n.outputs) {
    if (v != kNoValue) values_[v].producer = kNoNode;
  }
  n.removed = true;
  n.inputs.clear();
  n.outputs.clear();
  n.subgraphs.clear();
}

void Graph::replace_uses(ValueId from, ValueId to) {
  for (Node& n : nodes_) {
    std::replace(n.inputs.begin(), n.inputs.end(), from, to);
    for (Subgraph& s : n.subgraphs) std::replace(s.captures.begin(), s.captures.end(), from, to);
  }
  std::replace(outputs_.begin(), outputs_.end(), from, to);
}

std::vector<std::vector<NodeId>> Graph::uses() const {
  std::vector<std::vector<NodeId>> out(values_.size());
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    const auto add = [&](ValueId v) {
      if (v != kNoValue && (out[v].empty() || out[v].back() != id)) out[v].push_back(id);
    };
    for (const ValueId v : nodes_[id].inputs) add(v);
    for (const Subgraph& s : nodes_[id].subgraphs) {
      for (const ValueId v : s.captures) add(v);
    }
  }
  return out;
}

std::vector<NodeId> Graph::compact() {
  const auto users = uses();
  // A cast of a graph's input waits for its first reader: else a language model's whole cache would be widened before the first
  // layer.
  const auto is_lazy = [&](const Node& n) {
    return n.op_type == "Cast" && n.domain.empty() && n.inputs.size() == 1 && n.inputs[0] != kNoValue &&
           value(n.inputs[0]).producer == kNoNode;
  };
  std::vector<bool> lazy(nodes_.size(), false);
  for (NodeId id = 0; id < nodes_.size(); ++id) lazy[id] = !nodes_[id].removed && is_lazy(nodes_[id]);
  std::vector<std::uint32_t> waiting(nodes_.size(), 0);
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    if (lazy[id]) continue;
    for (const ValueId v : nodes_[id].outputs) {
      if (v == kNoValue) continue;
      for (const NodeId user : users[v]) ++waiting[user];
    }
  }
  std::size_t alive = 0;
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    if (nodes_[id].removed) continue;
    ++alive;
    if (waiting[id] == 0 && !lazy[id]) ready.push(id);
  }
  std::vector<NodeId> order;
  const auto place_cast = [&](ValueId v) {
    const NodeId from = v != kNoValue ? value(v).producer : kNoNode;
    if (from == kNoNode || !lazy[from]) return;
    lazy[from] = false;
    order.push_back(from);
  };
  while (!ready.empty()) {
    const NodeId id = ready.top();
    ready.pop();
    for (const ValueId v : nodes_[id].inputs) place_cast(v);
    for (const Subgraph& s : nodes_[id].subgraphs) {
      for (const ValueId v : s.captures) place_cast(v);
    }
    order.push_back(id);
    for (const ValueId v : nodes_[id].outputs) {
      if (v == kNoValue) continue;
      for (const NodeId user : users[v]) {
        if (--waiting[user] == 0) ready.push(user);
      }
    }
  }
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    if (lazy[id]) order.push_back(id);
  }
  if (order.size() != alive) {
    std::vector<bool> placed(nodes_.size(), false);
    for (const NodeId id : order) placed[id] = true;
    for (NodeId id = 0; id < nodes_.size(); ++id) {
      if (!placed[id] && !nodes_[id].removed) {
        fail(ErrorCode::invalid_model, "the graph has a cycle through {}", describe(id));
      }
    }
  }
  std::vector<NodeId> moved(nodes_.size(), kNoNode);
  StableVector<Node> sorted;
  for (const NodeId id : order) {
    moved[id] = static_cast<NodeId>(sorted.size());
    sorted.push_back(std::move(nodes_[id]));
  }
  nodes_ = std::move(sorted);
  for (ValueInfo& v : values_) {
    if (v.producer != kNoNode) v.producer = moved[v.producer];
  }
  return moved;
}

void Graph::drop_unused_values() {
  std::vector<bool> used(values_.size(), false);
  const auto mark = [&](ValueId v) {
    if (v != kNoValue) used[v] = true;
  };
  for (const Node& n : nodes_) {
    for (const ValueId v : n.inputs) mark(v);
    for (const ValueId v : n.outputs) mark(v);
    for (const Subgraph& s : n.subgraphs) {
      for (const ValueId v : s.captures) mark(v);
    }
  }
  for (const ValueId v : inputs_) mark(v);
  for (const ValueId v : outputs_) mark(v);
  std::vector<ValueId> moved(values_.size(), kNoValue);
  StableVector<ValueInfo> kept;
  by_name_.clear();
  for (ValueId v = 0; v < values_.size(); ++v) {
    if (!used[v]) continue;
    moved[v] = static_cast<ValueId>(kept.size());
    by_name_.emplace(values_[v].name, moved[v]);
    kept.push_back(std::move(values_[v]));
  }
  values_ = std::move(kept);
  const auto renumber = [&](std::vector<ValueId>& ids) {
    for (ValueId& v : ids) {
      if (v != kNoValue) v = moved[v];
    }
  };
  for (Node& n : nodes_) {
    renumber(n.inputs);
    renumber(n.outputs);
    for (Subgraph& s : n.subgraphs) renumber(s.captures);
  }
  renumber(inputs_);
  renumber(outputs_);
}

void Graph::verify() const {
  const auto check = [&](bool holds, const std::string& what) {
    if (!holds) fail(ErrorCode::internal, "graph '{}' is inconsistent: {}", name, what);
  };
  for (const auto& [key, id] : by_name_) {
    check(id < values_.size() && values_[id].name == key, "name table entry '" + key + "'");
  }
  check(by_name_.size() == values_.size(), "every value has a name of its own");
  std::vector<bool> ready(values_.size(), false);
  for (ValueId v = 0; v < values_.size(); ++v) {
    const ValueInfo& info = values_[v];
    if (info.constant || info.is_input) ready[v] = true;
    check(!(info.constant || info.is_input) || info.producer == kNoNode,
          "'" + info.name + "' is an input or constant and also produced by a node");
    if (info.producer != kNoNode) {
      check(info.producer < nodes_.size(), "producer of '" + info.name + "' in range");
      const Node& n = nodes_[info.producer];
      check(std::find(n.outputs.begin(), n.outputs.end(), v) != n.outputs.end(),
            "the producer of '" + info.name + "' lists it as an output");
    }
  }
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    const Node& n = nodes_[id];
    if (n.removed) continue;
    const auto read = [&](ValueId v) {
      check(v < values_.size(), describe(id) + " reads a value out of range");
      check(ready[v], describe(id) + " reads '" + values_[v].name + "' before it is produced");
    };
    for (const ValueId v : n.inputs) {
      if (v != kNoValue) read(v);
    }
    for (const Subgraph& s : n.subgraphs) {
      for (const ValueId v : s.captures) read(v);
      check(s.graph != nullptr, describe(id) + " has an empty subgraph");
      check(s.graph->inputs().size() >= s.captures.size(), describe(id) + " has more captures than subgraph inputs");
      s.graph->verify();
    }
    for (const ValueId v : n.outputs) {
      if (v == kNoValue) continue;
      check(v < values_.size() && values_[v].producer == id, describe(id) + " does not own its outputs");
      ready[v] = true;
    }
  }
  check(outputs_.size() == output_names_.size(), "outputs and their names");
  for (const ValueId v : outputs_) {
    check(v < values_.size(), "graph output out of range");
    check(ready[v], "graph output '" + values_[v].name + "' is never produced");
  }
}

std::string Graph::describe(NodeId id) const {
  const Node& n = nodes_.at(id);
  const std::string type = one_line(n.domain.empty() ? n.op_type : n.domain + "." + n.op_type);
  if (!n.name.empty()) return "node '" + one_line(n.name) + "' (" + type + ")";
  for (const ValueId v : n.outputs) {
    if (v != kNoValue) return "node (" + type + ") producing '" + one_line(values_[v].name) + "'";
  }
  return "node " + std::to_string(id) + " (" + type + ")";
}

}  // namespace sdx
