// TreeEnsembleRegressor and TreeEnsembleClassifier: ai.onnx.ml 1, 3 (_as_tensor attributes), 5 (unchanged). TreeEnsemble:
// ai.onnx.ml 5.
// With two classes ai.onnx.ml leaves open what scores mean; the rules below are ONNX Runtime's, measured. Where it leaves
// a second score unwritten (one score, weights for both classes, one base value), the two are -s and s here.

#include <algorithm>
#include <set>
#include <span>

#include "base/thread_pool.h"
#include "ops/ml/ml_scores.h"
#include "ops/ml/tree_forest.h"
#include "ops/op.h"
#include "ops/quant/quant_codec.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

constexpr const char* kDomain = "ai.onnx.ml";
constexpr TypeSet kInputs = set_of(DataType::float32, DataType::float64, DataType::int64, DataType::int32);
constexpr std::int64_t kMaxTargets = std::int64_t{1} << 20;

// Row `r` as T: integers and f16 convert, float and double are read in place.
template <class T>
std::vector<T> features_of(const Tensor& x) {
  std::vector<T> out(static_cast<std::size_t>(x.size()));
  const auto copy = [&](const auto* in) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(in[i]);
  };
  switch (x.dtype()) {
    case DataType::float32: copy(static_cast<const float*>(x.data())); break;
    case DataType::float64: copy(static_cast<const double*>(x.data())); break;
    case DataType::int64: copy(static_cast<const std::int64_t*>(x.data())); break;
    case DataType::int32: copy(static_cast<const std::int32_t*>(x.data())); break;
    default: {
      const std::vector<float> floats = decode_floats(x);
      copy(floats.data());
    }
  }
  return out;
}

template <class T>
void check_width(const OpContext& c, const TreeForest<T>& forest, const Rows& rows) {
  if (forest.max_feature >= rows.width) c.fail("a node tests feature {}, X has {}", forest.max_feature, rows.width);
}

// Calls fn(row number, scores, room for as many results) for each row, on all threads.
template <class T, class F>
void for_each_row(const OpContext& c, const TreeForest<T>& forest, TreeAggregate how, const Rows& rows, std::size_t targets,
                  F&& fn) {
  check_width(c, forest, rows);
  const std::vector<T> x = features_of<T>(c.input(0));
  // A tree stays in the caches for a block of rows.
  const std::int64_t block =
      std::clamp<std::int64_t>(65536 / static_cast<std::int64_t>(std::max<std::size_t>(1, targets)), 1, 64);
  parallel_for(rows.count, 16, [&](std::int64_t begin, std::int64_t end) {
    std::vector<TreeScore<T>> scores(targets * static_cast<std::size_t>(std::min(block, end - begin)));
    std::vector<T> room(targets);
    for (std::int64_t first = begin; first < end; first += block) {
      c.stop().check();
      const std::int64_t count = std::min(block, end - first);
      const auto found = std::span(scores).first(targets * static_cast<std::size_t>(count));
      score_rows(forest, how, x.data() + first * rows.width, count, rows.width, found);
      for (std::int64_t r = 0; r < count; ++r) fn(first + r, found.subspan(targets * static_cast<std::size_t>(r), targets), room);
    }
  });
}

// --- regression ---

struct TreeRegressorAttrs {
  std::int64_t n_targets = 1;
  std::string_view aggregate_function = "SUM";

  void fields(auto& f) {
    f("n_targets", n_targets);
    f("aggregate_function", aggregate_function);
  }
};

struct TreeEnsembleAttrs {  // TreeEnsemble 5
  std::int64_t n_targets = 1;
  std::int64_t aggregate_function = 1;  // TreeAggregate: the sum
  std::int64_t post_transform = 0;      // PostTransform: none

  void fields(auto& f) {
    f("n_targets", n_targets);
    f("aggregate_function", aggregate_function);
    f("post_transform", post_transform);
  }
};

std::int64_t checked_targets(std::int64_t n) {
  if (n < 1 || n > kMaxTargets) fail(ErrorCode::invalid_model, "n_targets must be between 1 and {}, received {}", kMaxTargets, n);
  return n;
}

TreeAggregate aggregate_of(std::string_view word) {
  if (word == "SUM") return TreeAggregate::sum;
  if (word == "AVERAGE") return TreeAggregate::average;
  if (word == "MIN") return TreeAggregate::min;
  if (word == "MAX") return TreeAggregate::max;
  fail(ErrorCode::invalid_model, "aggregate_function is '{}'; expected SUM, AVERAGE, MIN or MAX", word);
}

// One target knows PROBIT only (ONNX Runtime).
template <class T>
void finish_row(PostTransform post, std::span<const TreeScore<T>> scores, const std::vector<T>& base, std::vector<T>& out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = scores[i].value + (base.empty() ? T(0) : base[i]);
  if (out.size() > 1) {
    transform_scores(post, out.data(), out.size());
  } else if (post == PostTransform::probit) {
    out[0] = probit(out[0]);
  }
}

void infer_regressor(InferContext& c) {
  c.output(0, DataType::float32, SymShape{rows_of(c), checked_targets(parse<TreeRegressorAttrs>(c).n_targets)});
}

template <class T>
struct Regressor {
  std::int64_t targets;
  PostTransform post;
  TreeAggregate how;
  TreeForest<T> forest;
  std::vector<T> base;
};

template <class T>
Regressor<T> regressor_of(const OpContext& c) {
  const auto attr = parse<TreeRegressorAttrs>(c);
  const std::int64_t targets = checked_targets(attr.n_targets);
  Regressor<T> k{targets, post_transform_of(c.attrs()), aggregate_of(attr.aggregate_function),
                 build_forest<T>(c.attrs(), "target", targets), numbers_of<T>(c.attrs(), "base_values")};
  if (!k.base.empty() && static_cast<std::int64_t>(k.base.size()) != targets) {
    c.fail("base_values has {} elements; expected one for each of the {} targets", k.base.size(), targets);
  }
  return k;
}

template <class T>
void regress(OpContext& c) {
  const Rows rows = rows_of(c, c.input(0));
  const auto k = c.once<Regressor<T>>([&] { return regressor_of<T>(c); });
  const std::int64_t targets = k->targets;
  Tensor& y = c.output(0, DataType::float32, {rows.count, targets});
  auto* out = static_cast<float*>(y.mutable_data());
  for_each_row<T>(c, k->forest, k->how, rows, static_cast<std::size_t>(targets),
                  [&](std::int64_t r, std::span<const TreeScore<T>> scores, std::vector<T>& done) {
                    finish_row<T>(k->post, scores, k->base, done);
                    for (std::size_t i = 0; i < done.size(); ++i)
                      out[r * targets + static_cast<std::int64_t>(i)] = static_cast<float>(done[i]);
                  });
}

void run_regressor(OpContext& c) {
  if (c.input(0).dtype() == DataType::float64) return regress<double>(c);
  regress<float>(c);
}

// --- TreeEnsemble-5 ---

void infer_ensemble(InferContext& c) {
  c.output(0, c.dtype(0), SymShape{rows_of(c), checked_targets(parse<TreeEnsembleAttrs>(c).n_targets)});
}

template <class T>
void ensemble(OpContext& c) {
  const Rows rows = rows_of(c, c.input(0));
  const auto attr = parse<TreeEnsembleAttrs>(c);
  const std::int64_t targets = checked_targets(attr.n_targets), how = attr.aggregate_function, post = attr.post_transform;
  if (how < 0 || how > 3) c.fail("aggregate_function must be 0 (average), 1 (sum), 2 (min) or 3 (max), received {}", how);
  if (post < 0 || post > 4) c.fail("post_transform must be 0 to 4, received {}", post);
  const auto forest = c.once<TreeForest<T>>([&] { return build_forest_v5<T>(c.attrs(), targets); });
  const DataType elem = c.input(0).dtype();
  Tensor& y = c.output(0, elem, {rows.count, targets});
  for_each_row<T>(c, *forest, static_cast<TreeAggregate>(how), rows, static_cast<std::size_t>(targets),
                  [&](std::int64_t r, std::span<const TreeScore<T>> scores, std::vector<T>& done) {
                    // The numbers of PostTransform are TreeEnsemble-5's.
                    finish_row<T>(static_cast<PostTransform>(post), scores, {}, done);
                    if constexpr (std::is_same_v<T, double>) {
                      std::copy(done.begin(), done.end(), static_cast<double*>(y.mutable_data()) + r * targets);
                    } else {
                      encode_floats(elem, done.data(), r * targets, targets, true, y.mutable_data());
                    }
                  });
}

void run_ensemble(OpContext& c) {
  if (c.input(0).dtype() == DataType::float64) return ensemble<double>(c);
  ensemble<float>(c);
}

// --- classification ---

void infer_classifier(InferContext& c) {
  const ClassLabels labels = class_labels(c.node());
  const Dim rows = rows_of(c);
  c.output(0, labels.type(), SymShape{rows});
  c.output(1, DataType::float32, SymShape{rows, static_cast<std::int64_t>(labels.size())});
}

template <class T>
struct Classifier {
  ClassLabels labels;
  bool one_sided;  // two classes, and all weights are for the same one of them
  bool positive;   // no weight is negative
  std::vector<T> base;
  PostTransform post;
  TreeForest<T> forest;

  // The class, 0 or 1, of two scores, or of one that stands for both.
  std::int64_t pick(T score) const { return one_sided && positive ? score > T(0.5f) : score > 0; }

  std::int64_t two(std::span<TreeScore<T>> s, T* out) const {
    if (base.size() == 2 && s[1].has) {
      // base_values[0] counts for nothing: ONNX Runtime takes the one score to stand for both classes.
      s[1].value = base[1] + s[0].value;
      s[0].value = -s[1].value;
    } else if (base.size() == 2) {
      s[0] = {s[0].value + base[0], true};
    } else if (base.size() == 1) {
      s[0].value += base[0];
    }
    const std::int64_t label = pick(s[1].has ? s[1].value : s[0].has || !base.empty() ? s[0].value : T(0));
    out[0] = s[0].has || (!s[1].has && !base.empty()) ? s[0].value : T(0);
    out[1] = s[1].has ? s[1].value : T(0);
    if (s[1].has || base.size() == 2) {
      transform_scores(post, out, 2);
    } else {
      split_score(post, one_sided && positive ? SecondScore::complement : SecondScore::opposite, out);
    }
    return label;
  }

  std::int64_t many(std::span<TreeScore<T>> s, T* out) const {
    std::int64_t best = -1;
    for (std::size_t i = 0; i < s.size(); ++i) {
      if (!base.empty()) s[i] = {s[i].value + base[i], true};
      out[i] = s[i].has ? s[i].value : T(0);
      if (s[i].has && (best < 0 || out[i] > out[static_cast<std::size_t>(best)])) best = static_cast<std::int64_t>(i);
    }
    transform_scores(post, out, s.size());
    return std::max<std::int64_t>(best, 0);
  }
};

template <class T>
Classifier<T> classifier_of(const OpContext& c) {
  Classifier<T> k{.labels = class_labels(c.node()),
                  .one_sided = false,
                  .positive = true,
                  .base = numbers_of<T>(c.attrs(), "base_values"),
                  .post = post_transform_of(c.attrs()),
                  .forest = {}};
  const std::size_t classes = k.labels.size(), n = k.base.size();
  if (classes == 0) c.fail("no class labels: expected classlabels_int64s or classlabels_strings");
  k.forest = build_forest<T>(c.attrs(), "class", static_cast<std::int64_t>(classes));
  const std::vector<std::int64_t> ids = c.attrs().get_ints("class_ids");
  const std::set<std::int64_t> used(ids.begin(), ids.end());
  k.one_sided = classes == 2 && used.size() == 1;
  for (const T w : numbers_of<T>(c.attrs(), "class_weights")) k.positive = k.positive && !(w < 0);
  if (n != 0 && n != classes && !(classes == 2 && n == 1)) {
    c.fail("base_values has {} elements; expected one for each of the {} classes", n, classes);
  }
  return k;
}

template <class T>
void classify(OpContext& c) {
  const Rows rows = rows_of(c, c.input(0));
  const auto k = c.once<Classifier<T>>([&] { return classifier_of<T>(c); });
  const ClassLabels& labels = k->labels;
  const auto classes = static_cast<std::int64_t>(labels.size());
  Tensor& y = c.output(0, labels.type(), {rows.count});
  Tensor& z = c.output(1, DataType::float32, {rows.count, classes});
  auto* out = static_cast<float*>(z.mutable_data());
  for_each_row<T>(c, k->forest, TreeAggregate::sum, rows, labels.size(),
                  [&](std::int64_t r, std::span<TreeScore<T>> scores, std::vector<T>& done) {
                    if (classes == 1) {
                      finish_row<T>(k->post, scores, k->base, done);
                      const bool chosen = done[0] > 0;
                      // With one class, ONNX Runtime answers 1 or 0: whether the row belongs to it.
                      if (labels.strings.empty()) {
                        static_cast<std::int64_t*>(y.mutable_data())[r] = chosen ? 1 : 0;
                      } else {
                        labels.store(y, r, 0);
                      }
                    } else {
                      labels.store(y, r, classes == 2 ? k->two(scores, done.data()) : k->many(scores, done.data()));
                    }
                    for (std::size_t i = 0; i < done.size(); ++i)
                      out[r * classes + static_cast<std::int64_t>(i)] = static_cast<float>(done[i]);
                  });
}

void run_classifier(OpContext& c) {
  if (c.input(0).dtype() == DataType::float64) return classify<double>(c);
  classify<float>(c);
}

void add_tree_attributes(OpDef& def, const char* prefix) {
  for (const char* name : {"nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids",
                           "nodes_missing_value_tracks_true"}) {
    def.attr(name, AttrKind::ints);
  }
  for (const char* name : {"nodes_values", "nodes_hitrates", "base_values"}) {
    def.attr(name, AttrKind::floats);
    def.attr(name + std::string("_as_tensor"), AttrKind::t);
  }
  def.attr("nodes_modes", AttrKind::strings).attrs<PostTransformAttrs>();
  const std::string p(prefix);
  for (const char* name : {"_treeids", "_nodeids", "_ids"}) def.attr(p + name, AttrKind::ints);
  def.attr(p + "_weights", AttrKind::floats).attr(p + "_weights_as_tensor", AttrKind::t);
}

}  // namespace

void register_tree_ensemble(OpTable& t) {
  OpDef regressor(kDomain, "TreeEnsembleRegressor", 1);
  regressor.in("X", "T", kInputs).out("Y", "", bit(DataType::float32));
  regressor.attrs<TreeRegressorAttrs>();
  add_tree_attributes(regressor, "target");
  t.add(std::move(regressor).infer_with(infer_regressor).run_with(run_regressor));

  OpDef classifier(kDomain, "TreeEnsembleClassifier", 1);
  classifier.in("X", "T1", kInputs).out("Y", "", types::string | types::int64).out("Z", "", bit(DataType::float32));
  classifier.attrs<ClassLabelAttrs>();
  add_tree_attributes(classifier, "class");
  t.add(std::move(classifier).infer_with(infer_classifier).run_with(run_classifier));

  constexpr TypeSet kReals = set_of(DataType::float32, DataType::float64, DataType::float16);
  OpDef ensemble5(kDomain, "TreeEnsemble", 5);
  ensemble5.in("X", "T", kReals).out("Y", "T", kReals);
  ensemble5.attrs<TreeEnsembleAttrs>();
  for (const char* name : {"tree_roots", "nodes_featureids", "nodes_truenodeids", "nodes_trueleafs", "nodes_falsenodeids",
                           "nodes_falseleafs", "leaf_targetids"}) {
    ensemble5.attr(name, AttrKind::ints, true);
  }
  ensemble5.attr("nodes_missing_value_tracks_true", AttrKind::ints).attr("nodes_modes", AttrKind::t, true);
  ensemble5.attr("nodes_splits", AttrKind::t, true).attr("leaf_weights", AttrKind::t, true);
  ensemble5.attr("membership_values", AttrKind::t).attr("nodes_hitrates", AttrKind::t);
  t.add(std::move(ensemble5).infer_with(infer_ensemble).run_with(run_ensemble));
}

}  // namespace sdx::ops
