#include "providers/cpu/layout/fuse_chains.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "graph/edit.h"
#include "ops/context.h"
#include "ops/custom.h"
#include "providers/cpu/layout/chain_step.h"

namespace sdx::cpu {
namespace {

constexpr const char* kDomain = "sdx";
constexpr const char* kName = "ElementwiseChain";
constexpr std::uint32_t kNone = UINT32_MAX;
constexpr std::size_t kMostFolds = 4;

const Shape& shape_of_output(const ChainOp& op, std::size_t i) {
  const std::size_t steps = op.chain.outputs.size();
  return i < steps ? op.shape : op.fold_shapes[i - steps];
}

const ChainOp& held_by(const Node& node) { return *static_cast<const ChainOp*>(node.custom->handle.get()); }

void infer_chain(ops::InferContext& c) {
  const ChainOp& op = held_by(c.node());
  for (std::size_t i = 0; i < op.result_types.size(); ++i) c.output(i, op.result_types[i], to_sym(shape_of_output(op, i)));
}

void run_chain(ops::OpContext& c) {
  const ChainOp& op = held_by(c.node());
  std::vector<Shape> shapes;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    shapes.push_back(c.input(i).shape());
    in.push_back(c.input(i).data());
  }
  for (std::size_t i = 0; i < op.result_types.size(); ++i) {
    out.push_back(c.output(i, op.result_types[i], shape_of_output(op, i)).mutable_data());
  }
  ChainPlan(op.chain, shapes, op.shape).run(in.data(), out.data());
}

std::shared_ptr<const ops::CustomOp> make_op(std::shared_ptr<ChainOp> chain) {
  auto op = std::make_shared<ops::CustomOp>(ops::CustomOp{ops::OpDef(kDomain, kName, 1), {}, {}, std::move(chain)});
  op->def.in("inputs", "", ops::types::any_tensor, ops::Arity::variadic);
  op->def.out("outputs", "", ops::types::any_tensor, ops::Arity::variadic);
  op->def.infer = infer_chain;
  op->def.run = run_chain;
  return op;
}

// Every edge either joins two operators of one group or leads to a higher level, so that groups never wait for one another:
// levels rise wherever the shape changes or an operator that cannot join stands between. Operators are then moved up to the
// level of their readers as far as all of these allow.
class ChainFuser {
 public:
  explicit ChainFuser(Graph& graph)
      : g_(graph), readers_(graph), state_(graph.nodes().size()), is_output_(graph.values().size(), false) {
    for (const ValueId v : graph.outputs()) is_output_[v] = true;
  }

  bool run() {
    find_candidates();
    settle_levels();
    join();
    bool changed = false;
    for (std::vector<NodeId>& group : groups_) {
      std::sort(group.begin(), group.end());
      changed = cut(group) || changed;
    }
    return changed;
  }

 private:
  struct State {
    std::optional<ChainStep> step;  // may join
    std::uint32_t level = 0;
    std::uint32_t group = kNone;
  };

  NodeId producer(ValueId v) const { return v == kNoValue ? kNoNode : g_.value(v).producer; }
  const SymShape& shape_of(NodeId id) const { return *g_.value(g_.node(id).outputs[0]).type.shape; }
  bool joins(NodeId from, NodeId to) const { return state_[from].step && state_[to].step && shape_of(from) == shape_of(to); }

  void find_candidates() {
    for (NodeId id = 0; id < g_.nodes().size(); ++id) {
      if (!g_.node(id).removed) state_[id].step = chain_step(g_, id);
    }
  }

  void settle_levels() {
    const auto rise = [&](NodeId from, NodeId to) { return joins(from, to) || !state_[from].step ? 0U : 1U; };
    const auto least = [&](NodeId from, NodeId to) { return state_[from].level + (state_[to].step ? rise(from, to) : 1U); };
    for (NodeId id = 0; id < g_.nodes().size(); ++id) {
      const Node& n = g_.node(id);
      const auto raise = [&](ValueId v) {
        const NodeId from = producer(v);
        if (from != kNoNode) state_[id].level = std::max(state_[id].level, least(from, id));
      };
      for (const ValueId v : n.inputs) raise(v);
      for (const Subgraph& s : n.subgraphs) {
        for (const ValueId v : s.captures) raise(v);
      }
    }
    for (NodeId id = static_cast<NodeId>(g_.nodes().size()); id-- > 0;) {
      if (!state_[id].step) continue;
      std::uint32_t level = kNone;
      for (const NodeId reader : readers_.of(g_.node(id).outputs[0])) {
        level = std::min(level, state_[reader].level - (joins(id, reader) ? 0U : 1U));
      }
      if (level != kNone) state_[id].level = std::max(state_[id].level, level);
    }
  }

  std::uint32_t root(std::uint32_t group) {
    while (parent_[group] != group) group = parent_[group] = parent_[parent_[group]];
    return group;
  }

  void join() {
    for (NodeId id = 0; id < g_.nodes().size(); ++id) {
      if (!state_[id].step) continue;
      std::uint32_t mine = static_cast<std::uint32_t>(parent_.size());
      parent_.push_back(mine);
      for (const ValueId v : g_.node(id).inputs) {
        const NodeId from = producer(v);
        if (from == kNoNode || !joins(from, id) || state_[from].level != state_[id].level) continue;
        const std::uint32_t other = root(state_[from].group);
        parent_[std::max(other, mine)] = std::min(other, mine);
        mine = std::min(other, mine);
      }
      state_[id].group = mine;
    }
    groups_.resize(parent_.size());
    for (NodeId id = 0; id < g_.nodes().size(); ++id) {
      if (state_[id].step) groups_[root(state_[id].group)].push_back(id);
    }
  }

  // A group in pieces that the kernel can hold, in order: later pieces read from earlier ones only.
  bool cut(const std::vector<NodeId>& group) {
    bool changed = false;
    std::vector<NodeId> piece;
    std::vector<ValueId> read;
    for (const NodeId id : group) {
      std::vector<ValueId> more;
      for (const ValueId v : g_.node(id).inputs) {
        if (v != kNoValue && std::find(read.begin(), read.end(), v) == read.end()) more.push_back(v);
      }
      if (piece.size() == Chain::kMostSteps || read.size() + more.size() > Chain::kMostInputs) {
        changed = replace(piece) || changed;
        piece.clear();
        read.clear();
      }
      piece.push_back(id);
      for (const ValueId v : g_.node(id).inputs) {
        if (v != kNoValue && std::find(read.begin(), read.end(), v) == read.end()) read.push_back(v);
      }
    }
    return replace(piece) || changed;
  }

  // The reductions that can follow the piece, all over rows of one length, which is returned.
  std::int64_t find_folds(const std::vector<NodeId>& piece, std::vector<NodeId>& folds, std::vector<Chain::Fold>& made) {
    std::vector<ChainStep> steps;
    for (const NodeId id : piece) steps.push_back(*state_[id].step);
    const std::int64_t count = element_count(to_shape(shape_of(piece[0])));
    std::int64_t row = 1;
    for (std::uint32_t i = 0; i < piece.size(); ++i) {
      for (const NodeId reader : readers_.of(g_.node(piece[i]).outputs[0])) {
        const auto fold = chain_fold(g_, reader);
        if (!fold || made.size() == kMostFolds || g_.node(reader).removed || (row != 1 && fold->row != row)) continue;
        if (row == 1 && !can_fold(steps, count, fold->row)) continue;
        row = fold->row;
        folds.push_back(reader);
        made.push_back({fold->op, i});
      }
    }
    return row;
  }

  // Steps with operands by number; those of the chain's inputs come to `fused`.
  void add_steps(const std::vector<NodeId>& piece, Chain& chain, Node& fused) {
    std::unordered_map<ValueId, std::int32_t> number, steps;  // of inputs, of results
    for (std::size_t i = 0; i < piece.size(); ++i) steps.emplace(g_.node(piece[i]).outputs[0], static_cast<std::int32_t>(i));
    for (const NodeId id : piece) {
      for (int k = 0; k < state_[id].step->operands; ++k) {
        const ValueId v = g_.node(id).inputs[static_cast<std::size_t>(k)];
        if (steps.contains(v) || !number.emplace(v, static_cast<std::int32_t>(fused.inputs.size())).second) continue;
        fused.inputs.push_back(v);
        chain.input_bytes.push_back(static_cast<std::uint8_t>(bit_width(g_.value(v).type.elem) / 8));
      }
    }
    const auto inputs = static_cast<std::int32_t>(fused.inputs.size());
    for (const NodeId id : piece) {
      ChainStep step = *state_[id].step;
      const bool swapped = step.operand[0] == 1;  // see chain_step.h
      for (int k = 0; k < step.operands; ++k) {
        const ValueId v = g_.node(id).inputs[static_cast<std::size_t>(swapped ? 1 - k : k)];
        const auto own = steps.find(v);
        step.operand[k] = own != steps.end() ? inputs + own->second : number.at(v);
      }
      chain.steps.push_back(step);
    }
  }

  bool replace(const std::vector<NodeId>& piece) {
    if (piece.empty()) return false;
    auto op = std::make_shared<ChainOp>();
    std::vector<NodeId> folds;
    op->chain.row = find_folds(piece, folds, op->chain.folds);
    if (piece.size() + folds.size() < 2) return false;
    op->shape = to_shape(shape_of(piece[0]));
    Node fused;
    add_steps(piece, op->chain, fused);
    for (std::size_t i = 0; i < piece.size(); ++i) {
      const ValueId out = g_.node(piece[i]).outputs[0];
      const auto is_inside = [&](NodeId reader) {
        return std::find(piece.begin(), piece.end(), reader) != piece.end() ||
               std::find(folds.begin(), folds.end(), reader) != folds.end();
      };
      if (!is_output_[out] && std::ranges::all_of(readers_.of(out), is_inside)) continue;
      op->chain.outputs.push_back(static_cast<std::uint32_t>(i));
      op->result_types.push_back(g_.value(out).type.elem);
      fused.outputs.push_back(out);
    }
    for (const NodeId id : folds) {
      const ValueId out = g_.node(id).outputs[0];
      op->result_types.push_back(DataType::float32);
      op->fold_shapes.push_back(to_shape(*g_.value(out).type.shape));
      fused.outputs.push_back(out);
    }
    if (fused.outputs.empty() || fused.outputs.size() > Chain::kMostOutputs) return false;
    fused.op_type = kName;
    fused.domain = kDomain;
    fused.version = 1;
    fused.custom = make_op(std::move(op));
    for (const NodeId id : piece) g_.remove_node(id);
    for (const NodeId id : folds) g_.remove_node(id);
    g_.add_node(std::move(fused));
    return true;
  }

  Graph& g_;
  Readers readers_;
  std::vector<State> state_;
  std::vector<bool> is_output_;
  std::vector<std::uint32_t> parent_;
  std::vector<std::vector<NodeId>> groups_;
};

}  // namespace

const ChainOp* chain_of(const Node& node) {
  return node.custom && node.domain == kDomain && node.op_type == kName ? &held_by(node) : nullptr;
}

bool fuse_chains(Graph& graph) { return ChainFuser(graph).run(); }

}  // namespace sdx::cpu
