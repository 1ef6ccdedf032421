#pragma once
// Decision trees in compact form: what TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble (ai.onnx.ml 1, 3, 5)
// share. Building takes time linear in the number of nodes; walking is bounded because cycles are refused when building.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <sdx/tensor.hpp>

#include "graph/attribute.h"

namespace sdx::ops {

// The numbers are those of TreeEnsemble-5's nodes_modes; a leaf is ours.
enum class NodeMode : std::uint8_t { leq = 0, lt = 1, gte = 2, gt = 3, eq = 4, neq = 5, member = 6, leaf = 7 };

template <class T>  // float or double
struct TreeForest {
  struct Node {
    T value = 0;  // what the feature is compared with; of a member node: unused
    std::int32_t feature = 0;
    std::int32_t yes = 0;  // the next node; of a leaf: its first weight
    std::int32_t no = 0;   // of a leaf: the number of its weights
    std::int32_t first_member = 0, members = 0;
    NodeMode mode = NodeMode::leaf;
    bool missing_is_yes = false;
  };
  struct Weight {
    std::int32_t target = 0;
    T value = 0;
  };
  // A node of a plain forest for walks side by side: a leaf leads to itself.
  struct Step {
    T value = 0;  // of a leaf: its first weight
    std::int32_t feature = 0;
    std::int32_t next[2] = {0, 0};  // [1]: x <= value
  };
  std::vector<Node> nodes;
  std::vector<Step> steps;  // one for each node; none where the forest is not plain or has no branch
  std::vector<std::int32_t> roots;
  std::vector<Weight> weights;
  std::vector<T> members;
  std::int32_t max_feature = -1;
  bool dense = false;  // each leaf has one weight for each target, in order, and `steps` can count them
  bool plain = false;  // all branches are `feature <= value`, and what is missing goes to `no`: what nearly all tools write

  // The leaf that a row of features reaches. max_feature < width of the row.
  const Node& leaf(std::int32_t root, const T* row) const;
};

// Reads the attributes of TreeEnsembleClassifier and -Regressor. `prefix` is "class" or "target": the names of the weights'
// attributes. Throws Error(invalid_model) for lists of different lengths, unknown nodes, duplicates, cycles, and targets outside
// [0, targets).
template <class T>
TreeForest<T> build_forest(const Attributes& attrs, const std::string& prefix, std::int64_t targets);

// Reads the attributes of TreeEnsemble-5.
template <class T>
TreeForest<T> build_forest_v5(const Attributes& attrs, std::int64_t targets);

// Reads `name` as floats, or `name`_as_tensor (float32, float64 or float16).
template <class T>
std::vector<T> numbers_of(const Attributes& attrs, const std::string& name);

enum class TreeAggregate : std::uint8_t { average = 0, sum = 1, min = 2, max = 3 };

template <class T>
struct TreeScore {
  T value = 0;
  bool has = false;  // some tree had a weight for it
};

// The scores of `count` rows of `width` features: `out` has one entry per row and target. Each row's trees are added in their
// order, so the results do not depend on how many rows there are. max_feature < width.
template <class T>
void score_rows(const TreeForest<T>& forest, TreeAggregate how, const T* rows, std::int64_t count, std::int64_t width,
                std::span<TreeScore<T>> out);

}  // namespace sdx::ops
