#include <gtest/gtest.h>

#include <cmath>

#include "support/single_op.h"

namespace sdx::ops {
namespace {

using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;
using Words = std::vector<std::string>;

template <class T>
std::vector<T> list(const Tensor& t) {
  const auto v = t.values<T>();
  return {v.begin(), v.end()};
}
Tensor column(const Floats& v) { return Tensor::of<float>({static_cast<std::int64_t>(v.size()), 1}, std::span<const float>(v)); }

// One tree: x <= 0 leads to node 1, else to node 2.
SingleOp stump(const char* op, const std::string& prefix, Ints ids, Floats weights) {
  SingleOp s(op, 1, "ai.onnx.ml");
  s.with("nodes_treeids", Ints{0, 0, 0}).with("nodes_nodeids", Ints{0, 1, 2}).with("nodes_featureids", Ints{0, 0, 0});
  s.with("nodes_values", Floats{0, 0, 0}).with("nodes_modes", Words{"BRANCH_LEQ", "LEAF", "LEAF"});
  s.with("nodes_truenodeids", Ints{1, 0, 0}).with("nodes_falsenodeids", Ints{2, 0, 0});
  s.with(prefix + "_treeids", Ints{0, 0}).with(prefix + "_nodeids", Ints{1, 2});
  s.with(prefix + "_ids", std::move(ids)).with(prefix + "_weights", std::move(weights));
  return s;
}

TEST(TreeEnsemble, OneScoreForTwoClassesIsAProbability) {
  const auto out = stump("TreeEnsembleClassifier", "class", {0, 0}, {0.25F, 0.75F})
                       .with("classlabels_strings", Words{"no", "yes"})
                       .run_all({column({-1, 1})}, 2);
  EXPECT_EQ(list<std::string>(out[0]), (Words{"no", "yes"}));
  EXPECT_EQ(list<float>(out[1]), (Floats{0.75F, 0.25F, 0.25F, 0.75F}));
}

TEST(TreeEnsemble, MixedWeightsDecideBySign) {
  const auto out = stump("TreeEnsembleClassifier", "class", {0, 0}, {-0.25F, 0.25F})
                       .with("classlabels_int64s", Ints{3, 4})
                       .run_all({column({-1, 1})}, 2);
  EXPECT_EQ(list<std::int64_t>(out[0]), (Ints{3, 4}));
  EXPECT_EQ(list<float>(out[1]), (Floats{0.25F, -0.25F, -0.25F, 0.25F}));
}

TEST(TreeEnsemble, MissingValuesFollowTheirTrack) {
  SingleOp s = stump("TreeEnsembleRegressor", "target", {0, 0}, {1, 2});
  EXPECT_EQ(list<float>(s.run({column({std::nanf("")})}))[0], 2);
  s.with("nodes_missing_value_tracks_true", Ints{1, 0, 0});
  EXPECT_EQ(list<float>(s.run({column({std::nanf("")})}))[0], 1);
}

// 19 complete trees of depth 5 with pseudo-random features, thresholds and weights of two targets.
struct Wood {
  static constexpr std::int64_t kTrees = 19, kInner = 31, kLeaves = 32, kFeatures = 3;
  std::uint32_t state = 7;
  std::vector<Ints> feature{kTrees, Ints(kInner)};
  std::vector<Floats> split{kTrees, Floats(kInner)}, weight{kTrees, Floats(kLeaves)};

  std::uint32_t next(std::uint32_t below) { return (state = state * 1664525U + 1013904223U) / 65536U % below; }
  Wood() {
    for (std::size_t t = 0; t < kTrees; ++t) {
      for (auto& f : feature[t]) f = next(kFeatures);
      for (auto& v : split[t]) v = static_cast<float>(next(64)) / 64;
      for (auto& v : weight[t]) v = static_cast<float>(next(1000)) / 7;
    }
  }

  // One target, or two; each leaf has one of them.
  std::int64_t targets = 2;
  std::int64_t target(std::int64_t tree, std::int64_t node) const { return (tree + node) % targets; }

  SingleOp regressor(const std::string& aggregate) const {
    Ints trees, ids, features, yes, no, weight_trees, weight_ids, to;
    Floats values, weights;
    Words modes;
    for (std::int64_t t = 0; t < kTrees; ++t) {
      for (std::int64_t i = 0; i < kInner + kLeaves; ++i) {
        const bool inner = i < kInner;
        trees.push_back(t);
        ids.push_back(i);
        modes.push_back(inner ? "BRANCH_LEQ" : "LEAF");
        features.push_back(inner ? feature[t][i] : 0);
        values.push_back(inner ? split[t][i] : 0);
        yes.push_back(inner ? 2 * i + 1 : 0);
        no.push_back(inner ? 2 * i + 2 : 0);
        if (inner) continue;
        weight_trees.push_back(t);
        weight_ids.push_back(i);
        to.push_back(target(t, i));
        weights.push_back(weight[t][i - kInner]);
      }
    }
    SingleOp s("TreeEnsembleRegressor", 1, "ai.onnx.ml");
    s.with("nodes_treeids", trees).with("nodes_nodeids", ids).with("nodes_featureids", features).with("nodes_values", values);
    s.with("nodes_modes", modes)
        .with("nodes_truenodeids", yes)
        .with("nodes_falsenodeids", no)
        .with("target_treeids", weight_trees);
    s.with("target_nodeids", weight_ids).with("target_ids", to).with("target_weights", weights).with("n_targets", targets);
    return s.with("aggregate_function", aggregate);
  }

  // Computed by the definition, one tree after the other.
  Floats sums(const float* row) const {
    Floats out(static_cast<std::size_t>(targets), 0.0F);
    for (std::int64_t t = 0; t < kTrees; ++t) {
      std::int64_t at = 0;
      while (at < kInner) at = 2 * at + (row[feature[t][at]] <= split[t][at] ? 1 : 2);
      out[static_cast<std::size_t>(target(t, at))] += weight[t][at - kInner];
    }
    return out;
  }
};

TEST(TreeEnsemble, AnyNumberOfRowsGivesTheSumsOfTheDefinition) {
  Wood wood;
  for (const std::int64_t rows : {1, 3, 7, 8, 9, 16, 24, 31, 64, 65, 66, 200}) {
    wood.targets = rows % 3 == 0 ? 1 : 2;
    Floats x(static_cast<std::size_t>(rows * Wood::kFeatures));
    for (auto& v : x) v = static_cast<float>(wood.next(128)) / 64 - 0.5F;
    x[0] = std::nanf("");  // goes to `no`
    const Tensor in = Tensor::of<float>({rows, Wood::kFeatures}, std::span<const float>(x));
    const Floats sum = list<float>(wood.regressor("SUM").run({in})), mean = list<float>(wood.regressor("AVERAGE").run({in}));
    for (std::int64_t r = 0; r < rows; ++r) {
      const Floats expected = wood.sums(x.data() + r * Wood::kFeatures);
      for (std::int64_t i = 0; i < wood.targets; ++i) {
        EXPECT_EQ(sum[r * wood.targets + i], expected[i]) << rows << " rows, row " << r;
        EXPECT_EQ(mean[r * wood.targets + i], expected[i] / Wood::kTrees) << rows << " rows, row " << r;
      }
    }
  }
}

TEST(TreeEnsemble, TreesOfOneLeafReadNoFeature) {
  SingleOp s("TreeEnsembleRegressor", 1, "ai.onnx.ml");
  s.with("nodes_treeids", Ints{0, 1})
      .with("nodes_nodeids", Ints{0, 0})
      .with("nodes_featureids", Ints{0, 0})
      .with("nodes_values", Floats{0, 0});
  s.with("nodes_modes", Words{"LEAF", "LEAF"}).with("nodes_truenodeids", Ints{0, 0}).with("nodes_falsenodeids", Ints{0, 0});
  s.with("target_treeids", Ints{0, 1})
      .with("target_nodeids", Ints{0, 0})
      .with("target_ids", Ints{0, 0})
      .with("target_weights", Floats{2, 3});
  EXPECT_EQ(list<float>(s.run({column(Floats(9, 1.0F))})), Floats(9, 5.0F));
}

TEST(TreeEnsemble, NodesMayBeListedInAnyOrder) {
  SingleOp s("TreeEnsembleRegressor", 1, "ai.onnx.ml");
  s.with("nodes_treeids", Ints{5, 5, 5}).with("nodes_nodeids", Ints{30, 10, 20}).with("nodes_featureids", Ints{0, 0, 0});
  s.with("nodes_values", Floats{0, 0, 0}).with("nodes_modes", Words{"LEAF", "BRANCH_GT", "LEAF"});
  s.with("nodes_truenodeids", Ints{0, 20, 0}).with("nodes_falsenodeids", Ints{0, 30, 0});
  s.with("target_treeids", Ints{5, 5}).with("target_nodeids", Ints{20, 30}).with("target_ids", Ints{0, 0});
  s.with("target_weights", Floats{7, 8});
  EXPECT_EQ(list<float>(s.run({column({1, -1})})), (Floats{7, 8}));
}

TEST(TreeEnsemble, HostileTreesAreErrors) {
  const Tensor x = column({1});
  const auto fresh = [] { return stump("TreeEnsembleRegressor", "target", {0, 0}, {1, 2}); };
  EXPECT_NO_THROW(fresh().run({x}));
  EXPECT_THROW(fresh().with("nodes_falsenodeids", Ints{9, 0, 0}).run({x}), Error);  // no such node
  EXPECT_THROW(fresh().with("nodes_falsenodeids", Ints{0, 0, 0}).run({x}), Error);  // the root is its own child
  EXPECT_THROW(fresh().with("nodes_featureids", Ints{1, 0, 0}).run({x}), Error);    // no such feature
  EXPECT_THROW(fresh().with("nodes_featureids", Ints{-1, 0, 0}).run({x}), Error);
  EXPECT_THROW(fresh().with("nodes_nodeids", Ints{0, 1, 1}).run({x}), Error);  // listed twice
  EXPECT_THROW(fresh().with("target_ids", Ints{0, 1}).run({x}), Error);        // one target
  EXPECT_THROW(fresh().with("target_nodeids", Ints{1, 3}).run({x}), Error);
  EXPECT_THROW(fresh().with("nodes_values", Floats{0}).run({x}), Error);
  // Nodes 1 and 2 lead to each other; node 0 is a sound root.
  SingleOp cycle = fresh();
  cycle.with("nodes_modes", Words{"BRANCH_LEQ", "BRANCH_LEQ", "BRANCH_LEQ"});
  cycle.with("nodes_truenodeids", Ints{1, 2, 1}).with("nodes_falsenodeids", Ints{2, 2, 1});
  EXPECT_THROW(cycle.run({x}), Error);
}

TEST(LabelEncoder, NanAndUnknownKeys) {
  const Tensor x = Tensor::of<float>({3}, {std::nanf(""), 1, 2});
  const Tensor y = SingleOp("LabelEncoder", 2, "ai.onnx.ml")
                       .with("keys_floats", Floats{1, std::nanf("")})
                       .with("values_strings", Words{"one", "nan"})
                       .run({x});
  EXPECT_EQ(list<std::string>(y), (Words{"nan", "one", "_Unused"}));
}

TEST(OneHotEncoder, UnknownCategoriesAreZerosOrAnError) {
  SingleOp s("OneHotEncoder", 1, "ai.onnx.ml");
  s.with("cats_strings", Words{"a", "b"});
  const Tensor x = Tensor::of<std::string>({2}, {"b", "c"});
  EXPECT_EQ(list<float>(s.run({x})), (Floats{0, 1, 0, 0}));
  EXPECT_THROW(s.with("zeros", std::int64_t{0}).run({x}), Error);
}

TEST(Normalizer, MaxDividesByTheLargestValue) {
  SingleOp s("Normalizer", 1, "ai.onnx.ml");
  EXPECT_EQ(list<float>(s.with("norm", std::string("MAX")).run({Tensor::of<float>({2, 2}, {-4, 2, 0, 0})})),
            (Floats{-2, 1, 0, 0}));
}

TEST(LinearClassifier, OneInterceptServesTwoLabels) {
  const auto out = SingleOp("LinearClassifier", 1, "ai.onnx.ml")
                       .with("coefficients", Floats{1})
                       .with("intercepts", Floats{0.25F})
                       .with("classlabels_ints", Ints{5, 6})
                       .run_all({column({0.5F, -1})}, 2);
  EXPECT_EQ(list<std::int64_t>(out[0]), (Ints{6, 5}));
  EXPECT_EQ(list<float>(out[1]), (Floats{0.25F, 0.75F, 1.75F, -0.75F}));
}

TEST(Svm, ModelsWithoutFeaturesOrVectorsAreErrors) {
  SingleOp s("SVMClassifier", 1, "ai.onnx.ml");
  s.with("classlabels_ints", Ints{0, 1}).with("vectors_per_class", Ints{std::int64_t{1} << 40, 1}).with("rho", Floats{0});
  EXPECT_THROW(s.run({column({1})}), Error);
  EXPECT_THROW(s.run({Tensor(DataType::float32, {1, 0})}), Error);
}

}  // namespace
}  // namespace sdx::ops
