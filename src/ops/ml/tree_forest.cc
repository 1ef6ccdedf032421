#include "ops/ml/tree_forest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "base/error.h"
#include "ops/quant/quant_codec.h"

namespace sdx::ops {
namespace {

constexpr std::size_t kMaxNodes = std::numeric_limits<std::int32_t>::max();

template <class L>
const L& list_of(const Attributes& attrs, std::string_view name) {
  static const L kEmpty;
  const AttributeValue* value = attrs.find(name);
  if (value == nullptr) return kEmpty;
  const L* list = std::get_if<L>(value);
  if (list == nullptr) fail(ErrorCode::invalid_model, "attribute '{}' has the wrong type ({})", name, kind_name(*value));
  return *list;
}

const std::vector<std::int64_t>& ints_of(const Attributes& attrs, std::string_view name) {
  return list_of<std::vector<std::int64_t>>(attrs, name);
}

void check_length(std::string_view name, std::size_t received, std::size_t expected) {
  if (received == expected) return;
  fail(ErrorCode::invalid_model, "attribute '{}' has {} elements; expected {}, as many as the others of its group", name,
       received, expected);
}

NodeMode mode_of(const std::string& word) {
  if (word == "BRANCH_LEQ") return NodeMode::leq;
  if (word == "LEAF") return NodeMode::leaf;
  if (word == "BRANCH_LT") return NodeMode::lt;
  if (word == "BRANCH_GTE") return NodeMode::gte;
  if (word == "BRANCH_GT") return NodeMode::gt;
  if (word == "BRANCH_EQ") return NodeMode::eq;
  if (word == "BRANCH_NEQ") return NodeMode::neq;
  fail(ErrorCode::invalid_model, "node mode '{}' is unknown; expected BRANCH_LEQ, _LT, _GTE, _GT, _EQ, _NEQ or LEAF", word);
}

std::int32_t feature_of(std::int64_t feature) {
  if (feature < 0 || feature > std::numeric_limits<std::int32_t>::max()) {
    fail(ErrorCode::invalid_model, "a node tests feature {}, but no input has it", feature);
  }
  return static_cast<std::int32_t>(feature);
}

std::int32_t target_of(std::int64_t target, std::int64_t targets) {
  if (target < 0 || target >= targets) {
    fail(ErrorCode::invalid_model, "a leaf gives weight to class or target {}; there are {}", target, targets);
  }
  return static_cast<std::int32_t>(target);
}

// (tree, node id) -> position in the lists. Nodes of a tree usually stand together and count from 0, which needs no table.
class NodeIndex {
 public:
  NodeIndex(const std::vector<std::int64_t>& trees, const std::vector<std::int64_t>& ids)
      : trees_(trees), ids_(ids), last_start_(ids.size()) {
    std::size_t start = 0;
    for (std::size_t i = 0; i < ids.size() && regular_; ++i) {
      if (i == 0 || trees[i] != trees[i - 1]) {
        start = i;
        regular_ = starts_.emplace(trees[i], i).second;
      }
      regular_ = regular_ && ids[i] == static_cast<std::int64_t>(i - start);
    }
    if (regular_) return;
    starts_.clear();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!table_[trees[i]].emplace(ids[i], i).second) {
        fail(ErrorCode::invalid_model, "node {} of tree {} is listed twice", ids[i], trees[i]);
      }
    }
  }

  std::size_t find(std::int64_t tree, std::int64_t id) {
    if (regular_) {
      if (tree != last_tree_ || last_start_ == ids_.size()) {
        const auto start = starts_.find(tree);
        last_tree_ = tree;
        last_start_ = start != starts_.end() ? start->second : ids_.size();
      }
      if (id >= 0 && static_cast<std::size_t>(id) < ids_.size() - last_start_) {
        const std::size_t at = last_start_ + static_cast<std::size_t>(id);
        if (trees_[at] == tree) return at;
      }
    } else if (const auto ids = table_.find(tree); ids != table_.end()) {
      if (const auto at = ids->second.find(id); at != ids->second.end()) return at->second;
    }
    fail(ErrorCode::invalid_model, "tree {} has no node {}, but a branch or a weight refers to it", tree, id);
  }

 private:
  const std::vector<std::int64_t>& trees_;
  const std::vector<std::int64_t>& ids_;
  bool regular_ = true;
  std::unordered_map<std::int64_t, std::size_t> starts_;
  std::int64_t last_tree_ = 0;  // questions about one tree come together
  std::size_t last_start_;
  std::unordered_map<std::int64_t, std::unordered_map<std::int64_t, std::size_t>> table_;
};

// Every walk must end, from any starting point: depth-first search that marks the nodes of the present path.
template <class T>
void refuse_cycles(const TreeForest<T>& f) {
  enum : std::uint8_t { kNew, kOnPath, kDone };
  std::vector<std::uint8_t> state(f.nodes.size(), kNew);
  std::vector<std::int32_t> path;
  for (std::size_t start = 0; start < f.nodes.size(); ++start) {
    if (state[start] != kNew) continue;
    path.push_back(static_cast<std::int32_t>(start));
    while (!path.empty()) {
      const auto at = static_cast<std::size_t>(path.back());
      const auto& node = f.nodes[at];
      if (state[at] != kNew || node.mode == NodeMode::leaf) {
        state[at] = kDone;  // both children have been seen, or it was reached before
        path.pop_back();
        continue;
      }
      state[at] = kOnPath;
      for (const std::int32_t next : {node.no, node.yes}) {
        const std::uint8_t s = state[static_cast<std::size_t>(next)];
        if (s == kOnPath)
          fail(ErrorCode::invalid_model, "the branches of tree node {} (counted from 0 in the list) lead back to it", next);
        if (s == kNew) path.push_back(next);
      }
    }
  }
}

template <class T>
void read_nodes(const Attributes& attrs, const std::vector<std::int64_t>& trees, NodeIndex& index, TreeForest<T>& f) {
  const auto& features = ints_of(attrs, "nodes_featureids");
  const auto& yes = ints_of(attrs, "nodes_truenodeids");
  const auto& no = ints_of(attrs, "nodes_falsenodeids");
  const auto& missing = ints_of(attrs, "nodes_missing_value_tracks_true");
  const auto& modes = list_of<std::vector<std::string>>(attrs, "nodes_modes");
  const std::vector<T> values = numbers_of<T>(attrs, "nodes_values");
  check_length("nodes_featureids", features.size(), trees.size());
  check_length("nodes_truenodeids", yes.size(), trees.size());
  check_length("nodes_falsenodeids", no.size(), trees.size());
  check_length("nodes_modes", modes.size(), trees.size());
  check_length("nodes_values", values.size(), trees.size());
  if (!missing.empty()) check_length("nodes_missing_value_tracks_true", missing.size(), trees.size());
  f.nodes.resize(trees.size());
  for (std::size_t i = 0; i < trees.size(); ++i) {
    auto& node = f.nodes[i];
    node.mode = mode_of(modes[i]);
    if (node.mode == NodeMode::leaf) continue;
    node.value = values[i];
    node.feature = feature_of(features[i]);
    node.missing_is_yes = !missing.empty() && missing[i] != 0;
    node.yes = static_cast<std::int32_t>(index.find(trees[i], yes[i]));
    node.no = static_cast<std::int32_t>(index.find(trees[i], no[i]));
    f.max_feature = std::max(f.max_feature, node.feature);
  }
}

// A tree's root is the first listed of its nodes that no branch leads to.
template <class T>
void find_roots(const std::vector<std::int64_t>& trees, TreeForest<T>& f) {
  std::vector<bool> child(f.nodes.size(), false);
  for (const auto& node : f.nodes) {
    if (node.mode == NodeMode::leaf) continue;
    child[static_cast<std::size_t>(node.yes)] = true;
    child[static_cast<std::size_t>(node.no)] = true;
  }
  std::unordered_map<std::int64_t, bool> has_root;
  for (std::size_t i = 0; i < trees.size(); ++i) {
    if (i > 0 && trees[i] == trees[i - 1] && child[i]) continue;
    bool& rooted = has_root[trees[i]];
    if (rooted || child[i]) continue;
    rooted = true;
    f.roots.push_back(static_cast<std::int32_t>(i));
  }
  for (const auto& [tree, rooted] : has_root) {
    if (!rooted) fail(ErrorCode::invalid_model, "tree {} has no root: a branch leads to each of its nodes", tree);
  }
}

// Groups the weights by leaf, keeping their order. Weights given to inner nodes are never reached.
template <class T>
void read_weights(const Attributes& attrs, const std::string& prefix, std::int64_t targets, NodeIndex& index, TreeForest<T>& f) {
  const auto& trees = ints_of(attrs, prefix + "_treeids");
  const auto& ids = ints_of(attrs, prefix + "_nodeids");
  const auto& to = ints_of(attrs, prefix + "_ids");
  const std::vector<T> values = numbers_of<T>(attrs, prefix + "_weights");
  check_length(prefix + "_nodeids", ids.size(), trees.size());
  check_length(prefix + "_ids", to.size(), trees.size());
  check_length(prefix + "_weights", values.size(), trees.size());
  if (trees.size() > kMaxNodes) fail(ErrorCode::invalid_model, "{} leaf weights are too many", trees.size());
  std::vector<std::size_t> nodes(trees.size());
  std::vector<std::int32_t> counts(f.nodes.size(), 0);
  for (std::size_t i = 0; i < trees.size(); ++i) {
    nodes[i] = index.find(trees[i], ids[i]);
    ++counts[nodes[i]];
  }
  std::vector<std::int32_t> next(f.nodes.size(), 0);
  std::int32_t at = 0;
  for (std::size_t i = 0; i < f.nodes.size(); ++i) {
    next[i] = at;
    if (f.nodes[i].mode == NodeMode::leaf) {
      f.nodes[i].yes = at;
      f.nodes[i].no = counts[i];
    }
    at += counts[i];
  }
  f.weights.resize(trees.size());
  for (std::size_t i = 0; i < trees.size(); ++i) {
    f.weights[static_cast<std::size_t>(next[nodes[i]]++)] = {target_of(to[i], targets), values[i]};
  }
}

template <class T>
std::vector<T> numbers_in(const Tensor& t) {
  if (t.dtype() == DataType::float64) {
    const Tensor aligned = t.aligned();
    const auto v = aligned.values<double>();
    return {v.begin(), v.end()};
  }
  const std::vector<float> v = decode_floats(t.aligned());
  return {v.begin(), v.end()};
}

// TreeEnsemble-5: branch i's child is a node or a leaf, as nodes_*leafs says; leaves follow the nodes.
std::int32_t child_v5(std::int64_t id, bool is_leaf, std::size_t nodes, std::size_t leaves) {
  const std::size_t limit = is_leaf ? leaves : nodes;
  if (id < 0 || static_cast<std::size_t>(id) >= limit) {
    fail(ErrorCode::invalid_model, "a branch leads to {} {}; there are {}", is_leaf ? "leaf" : "node", id, limit);
  }
  return static_cast<std::int32_t>(is_leaf ? nodes + static_cast<std::size_t>(id) : static_cast<std::size_t>(id));
}

// membership_values: one list per member node, in the nodes' order, NaN after each.
template <class T>
void read_members(const Attributes& attrs, std::size_t nodes, TreeForest<T>& f) {
  if (attrs.has("membership_values")) f.members = numbers_in<T>(attrs.get_tensor("membership_values"));
  if (f.members.size() > kMaxNodes) fail(ErrorCode::invalid_model, "{} membership_values are too many", f.members.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < nodes; ++i) {
    auto& node = f.nodes[i];
    if (node.mode != NodeMode::member) continue;
    if (at >= f.members.size())
      fail(ErrorCode::invalid_model, "membership_values has fewer lists than there are BRANCH_MEMBER nodes");
    const std::size_t first = at;
    while (at < f.members.size() && !std::isnan(f.members[at])) ++at;
    node.first_member = static_cast<std::int32_t>(first);
    node.members = static_cast<std::int32_t>(at - first);
    ++at;
  }
}

template <class T>
void set_plain(TreeForest<T>& f, std::int64_t targets) {
  f.plain = std::all_of(f.nodes.begin(), f.nodes.end(), [](const auto& node) {
    return node.mode == NodeMode::leaf || (node.mode == NodeMode::leq && !node.missing_is_yes);
  });
  if (!f.plain || f.max_feature < 0) return;
  f.steps.reserve(f.nodes.size());
  for (const auto& node : f.nodes) {
    const auto self = static_cast<std::int32_t>(f.steps.size());
    const bool leaf = node.mode == NodeMode::leaf;
    f.steps.push_back(
        {leaf ? static_cast<T>(node.yes) : node.value, node.feature, {leaf ? self : node.no, leaf ? self : node.yes}});
  }
  constexpr std::size_t kExact = std::size_t{1} << 24;  // a float counts so far
  f.dense = f.weights.size() < kExact && std::all_of(f.nodes.begin(), f.nodes.end(), [&](const auto& node) {
              if (node.mode != NodeMode::leaf) return true;
              if (node.no != targets) return false;
              for (std::int32_t i = 0; i < node.no; ++i) {
                if (f.weights[static_cast<std::size_t>(node.yes) + static_cast<std::size_t>(i)].target != i) return false;
              }
              return true;
            });
}

template <class T>
bool decide(const typename TreeForest<T>::Node& node, const std::vector<T>& members, T x) {
  switch (node.mode) {
    case NodeMode::leq: return x <= node.value;
    case NodeMode::lt: return x < node.value;
    case NodeMode::gte: return x >= node.value;
    case NodeMode::gt: return x > node.value;
    case NodeMode::eq: return x == node.value;
    case NodeMode::neq: return x != node.value;
    case NodeMode::member: {
      const auto first = members.begin() + node.first_member;
      return std::find(first, first + node.members, x) != first + node.members;
    }
    case NodeMode::leaf: break;
  }
  return false;
}

}  // namespace

template <class T>
const typename TreeForest<T>::Node& TreeForest<T>::leaf(std::int32_t root, const T* row) const {
  const Node* node = &nodes[static_cast<std::size_t>(root)];
  if (plain) {
    while (node->mode != NodeMode::leaf) {
      node = &nodes[static_cast<std::size_t>(row[node->feature] <= node->value ? node->yes : node->no)];
    }
    return *node;
  }
  while (node->mode != NodeMode::leaf) {
    const T x = row[node->feature];
    const bool yes = decide<T>(*node, members, x) || (node->missing_is_yes && std::isnan(x));
    node = &nodes[static_cast<std::size_t>(yes ? node->yes : node->no)];
  }
  return *node;
}

template <class T>
std::vector<T> numbers_of(const Attributes& attrs, const std::string& name) {
  const auto& floats = list_of<std::vector<float>>(attrs, name);
  const std::string tensor = name + "_as_tensor";
  if (!attrs.has(tensor)) return {floats.begin(), floats.end()};
  if (!floats.empty()) fail(ErrorCode::invalid_model, "both {} and {} are given; expected one of them", name, tensor);
  return numbers_in<T>(attrs.get_tensor(tensor));
}

template <class T>
TreeForest<T> build_forest(const Attributes& attrs, const std::string& prefix, std::int64_t targets) {
  const auto& trees = ints_of(attrs, "nodes_treeids");
  const auto& ids = ints_of(attrs, "nodes_nodeids");
  check_length("nodes_nodeids", ids.size(), trees.size());
  if (trees.size() > kMaxNodes) fail(ErrorCode::invalid_model, "{} tree nodes are too many", trees.size());
  NodeIndex index(trees, ids);
  TreeForest<T> f;
  read_nodes(attrs, trees, index, f);
  find_roots(trees, f);
  read_weights(attrs, prefix, targets, index, f);
  refuse_cycles(f);
  set_plain(f, targets);
  return f;
}

template <class T>
TreeForest<T> build_forest_v5(const Attributes& attrs, std::int64_t targets) {
  const auto& features = ints_of(attrs, "nodes_featureids");
  const auto& yes = ints_of(attrs, "nodes_truenodeids");
  const auto& no = ints_of(attrs, "nodes_falsenodeids");
  const auto& yes_leaf = ints_of(attrs, "nodes_trueleafs");
  const auto& no_leaf = ints_of(attrs, "nodes_falseleafs");
  const auto& missing = ints_of(attrs, "nodes_missing_value_tracks_true");
  const auto& leaf_targets = ints_of(attrs, "leaf_targetids");
  const std::vector<T> splits = numbers_in<T>(attrs.get_tensor("nodes_splits"));
  const std::vector<T> leaf_weights = numbers_in<T>(attrs.get_tensor("leaf_weights"));
  const Tensor& modes = attrs.get_tensor("nodes_modes");
  const std::size_t n = features.size();
  const std::size_t leaves = leaf_targets.size();
  check_length("nodes_truenodeids", yes.size(), n);
  check_length("nodes_falsenodeids", no.size(), n);
  check_length("nodes_trueleafs", yes_leaf.size(), n);
  check_length("nodes_falseleafs", no_leaf.size(), n);
  check_length("nodes_splits", splits.size(), n);
  check_length("nodes_modes", static_cast<std::size_t>(modes.size()), n);
  if (!missing.empty()) check_length("nodes_missing_value_tracks_true", missing.size(), n);
  check_length("leaf_weights", leaf_weights.size(), leaves);
  if (modes.dtype() != DataType::uint8)
    fail(ErrorCode::invalid_model, "nodes_modes must be uint8, received {}", modes.type_string());
  if (n > kMaxNodes - leaves || leaves > kMaxNodes) fail(ErrorCode::invalid_model, "{} tree nodes are too many", n);
  TreeForest<T> f;
  f.nodes.resize(n + leaves);
  for (std::size_t i = 0; i < n; ++i) {
    auto& node = f.nodes[i];
    const std::uint8_t mode = modes.values<std::uint8_t>()[i];
    if (mode > 6) fail(ErrorCode::invalid_model, "node mode {} is unknown; expected 0 to 6", static_cast<int>(mode));
    node.mode = static_cast<NodeMode>(mode);
    node.value = splits[i];
    node.feature = feature_of(features[i]);
    node.missing_is_yes = !missing.empty() && missing[i] != 0;
    node.yes = child_v5(yes[i], yes_leaf[i] != 0, n, leaves);
    node.no = child_v5(no[i], no_leaf[i] != 0, n, leaves);
    f.max_feature = std::max(f.max_feature, node.feature);
  }
  for (std::size_t i = 0; i < leaves; ++i) {
    f.nodes[n + i].yes = static_cast<std::int32_t>(i);
    f.nodes[n + i].no = 1;
    f.weights.push_back({target_of(leaf_targets[i], targets), leaf_weights[i]});
  }
  for (const std::int64_t root : ints_of(attrs, "tree_roots")) f.roots.push_back(child_v5(root, false, n, leaves));
  read_members(attrs, n, f);
  refuse_cycles(f);
  set_plain(f, targets);
  return f;
}

// A forest is bound by the wait for the next node, and by branches that are guessed wrongly half of the time. Walks go side by
// side without branches.
constexpr std::size_t kWalks = 8;
using Places = std::array<std::int32_t, kWalks>;

// The leaves that walks from `roots` reach.
template <class T>
Places walk(const TreeForest<T>& f, const Places& roots, const std::array<const T*, kWalks>& rows) {
  const auto* steps = f.steps.data();
  Places at = roots;
  for (std::int32_t moved = 1; moved != 0;) {
    moved = 0;
    for (std::size_t i = 0; i < kWalks; ++i) {
      const auto& step = steps[at[i]];
      const std::int32_t next = step.next[rows[i][step.feature] <= step.value ? 1 : 0];
      moved |= next ^ at[i];
      at[i] = next;
    }
  }
  return at;
}

template <class T>
void add_leaf(const TreeForest<T>& f, TreeAggregate how, const typename TreeForest<T>::Node& leaf, TreeScore<T>* out) {
  for (std::int32_t i = 0; i < leaf.no; ++i) {
    const auto& weight = f.weights[static_cast<std::size_t>(leaf.yes) + static_cast<std::size_t>(i)];
    TreeScore<T>& score = out[weight.target];
    if (how == TreeAggregate::min) {
      score.value = score.has ? std::min(score.value, weight.value) : weight.value;
    } else if (how == TreeAggregate::max) {
      score.value = score.has ? std::max(score.value, weight.value) : weight.value;
    } else {
      score.value += weight.value;
    }
    score.has = true;
  }
}

template <class T>
void score_rows(const TreeForest<T>& f, TreeAggregate how, const T* rows, std::int64_t count, std::int64_t width,
                std::span<TreeScore<T>> out) {
  // Dense leaves differ only in where their weights begin.
  const bool dense = f.dense && (how == TreeAggregate::sum || how == TreeAggregate::average);
  std::fill(out.begin(), out.end(), TreeScore<T>{T(0), dense && !f.roots.empty()});
  const std::int64_t targets = count == 0 ? 0 : static_cast<std::int64_t>(out.size()) / count;
  const auto add = [&](std::int32_t place, TreeScore<T>* scores) {
    if (!dense) return add_leaf(f, how, f.nodes[static_cast<std::size_t>(place)], scores);
    const auto* weight = f.weights.data() + static_cast<std::int64_t>(f.steps[static_cast<std::size_t>(place)].value);
    for (std::int64_t i = 0; i < targets; ++i) scores[i].value += weight[i].value;
  };
  constexpr auto kMany = static_cast<std::int64_t>(kWalks);
  const std::int64_t together = f.steps.empty() ? 0 : count / kMany * kMany;  // rows that walk one tree side by side
  Places roots;
  std::array<const T*, kWalks> from;
  for (const std::int32_t root : f.roots) {
    roots.fill(root);
    for (std::int64_t r = 0; r < together; r += kMany) {
      for (std::size_t i = 0; i < kWalks; ++i) from[i] = rows + (r + static_cast<std::int64_t>(i)) * width;
      const Places found = walk(f, roots, from);
      for (std::size_t i = 0; i < kWalks; ++i) add(found[i], out.data() + (r + static_cast<std::int64_t>(i)) * targets);
    }
  }
  for (std::int64_t r = together; r < count; ++r) {
    const T* row = rows + r * width;
    TreeScore<T>* scores = out.data() + r * targets;
    std::size_t tree = 0;
    from.fill(row);
    for (; !f.steps.empty() && tree + kWalks <= f.roots.size(); tree += kWalks) {
      std::copy_n(f.roots.begin() + static_cast<std::ptrdiff_t>(tree), kWalks, roots.begin());
      for (const std::int32_t place : walk(f, roots, from)) add(place, scores);
    }
    for (; tree < f.roots.size(); ++tree) {
      const auto& leaf = f.leaf(f.roots[tree], row);
      add(static_cast<std::int32_t>(&leaf - f.nodes.data()), scores);
    }
  }
  if (how != TreeAggregate::average || f.roots.empty()) return;
  for (TreeScore<T>& score : out) score.value /= static_cast<T>(f.roots.size());
}

#define SDX_FOREST(T)                                                                       \
  template struct TreeForest<T>;                                                            \
  template std::vector<T> numbers_of(const Attributes&, const std::string&);                \
  template TreeForest<T> build_forest(const Attributes&, const std::string&, std::int64_t); \
  template TreeForest<T> build_forest_v5(const Attributes&, std::int64_t);                  \
  template void score_rows(const TreeForest<T>&, TreeAggregate, const T*, std::int64_t, std::int64_t, std::span<TreeScore<T>>);
SDX_FOREST(float)
SDX_FOREST(double)
#undef SDX_FOREST

}  // namespace sdx::ops
