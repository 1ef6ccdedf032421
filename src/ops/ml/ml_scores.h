#pragma once
// Processing of scores in ai.onnx.ml models: post_transform and class labels. If ai.onnx.ml-1 leaves the rules open (one score
// for two classes, for example), they are those of ONNX Runtime.

#include <cstdint>
#include <string>
#include <vector>

#include "ops/context.h"
#include "ops/signature.h"

namespace sdx::ops {

enum class PostTransform : std::uint8_t { none, softmax, logistic, softmax_zero, probit };

struct PostTransformAttrs {
  std::string_view post_transform = "NONE";

  void fields(auto& f) { f("post_transform", post_transform); }
};
// Throws Error(invalid_model) for an unknown word.
PostTransform post_transform_of(const Attributes& attrs);

template <class T>
T logistic_score(T v);
template <class T>
T probit(T v);
// Two or more scores, in place.
template <class T>
void transform_scores(PostTransform how, T* scores, std::size_t n);

// The ways in which one score becomes two.
enum class SecondScore : std::uint8_t {
  complement,  // 1 - s, s: all weights are positive, so s is a probability
  opposite,    // -s, s
};
// scores[0] is the one score; scores[0] and scores[1] become the two classes'.
template <class T>
void split_score(PostTransform how, SecondScore second, T* scores);

// One of the two lists.
struct ClassLabelAttrs {
  IntList ints;
  StringList strings;

  static constexpr std::string_view ints_name(std::string_view op) {
    return op == "LinearClassifier" || op == "SVMClassifier" ? "classlabels_ints" : "classlabels_int64s";
  }
  void fields(auto& f, const OpId& op) {
    f(ints_name(op.name), ints);
    f("classlabels_strings", strings);
  }
};
struct ClassLabels {
  std::vector<std::int64_t> ints;
  std::vector<std::string> strings;
  std::size_t size() const { return strings.empty() ? ints.size() : strings.size(); }
  DataType type() const { return strings.empty() ? DataType::int64 : DataType::string; }
  // Throws Error(runtime_failure) when there are fewer labels.
  void store(Tensor& out, std::int64_t at, std::int64_t label) const;
};
// Throws Error(invalid_model) when both are given.
ClassLabels class_labels(const Node& node);

// [N, C], or [C] as one row. Throws Error.
struct Rows {
  std::int64_t count = 0, width = 0;
};
Rows rows_of(const OpContext& c, const Tensor& x);
// The extent of the first axis of input 0 (1 for a single row); unknown when its rank is.
Dim rows_of(const InferContext& c);

}  // namespace sdx::ops
