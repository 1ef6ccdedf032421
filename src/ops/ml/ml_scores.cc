#include "ops/ml/ml_scores.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sdx::ops {
namespace {

// Winitzki's approximation of the inverse error function (2008), with a = 0.147. In float, as in ONNX Runtime.
float inverse_erf(float x) {
  const float sign = x < 0 ? -1.0f : 1.0f;
  const float log = std::log((1.0f - x) * (1.0f + x));
  const float v = 2.0f / (3.14159f * 0.147f) + 0.5f * log;
  return sign * std::sqrt(-v + std::sqrt(v * v - log / 0.147f));
}

template <class T>
void softmax(T* scores, std::size_t n) {
  const T top = *std::max_element(scores, scores + n);
  T sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    scores[i] = std::exp(scores[i] - top);
    sum += scores[i];
  }
  for (std::size_t i = 0; i < n; ++i) scores[i] /= sum;
}

// Scores of zero (within 1e-7) stay zero. Source: ONNX Runtime; ai.onnx.ml names the transform only.
template <class T>
void softmax_zero(T* scores, std::size_t n) {
  const T top = *std::max_element(scores, scores + n);
  const T shift = std::exp(-top);
  T sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const bool zero = scores[i] <= T(0.0000001f) && scores[i] >= T(-0.0000001f);
    scores[i] = zero ? scores[i] * shift : std::exp(scores[i] - top);
    sum += scores[i];
  }
  for (std::size_t i = 0; i < n; ++i) scores[i] /= sum;
}

}  // namespace

PostTransform post_transform_of(const Attributes& attrs) {
  const std::string_view word = parse<PostTransformAttrs>(attrs).post_transform;
  if (word == "NONE") return PostTransform::none;
  if (word == "SOFTMAX") return PostTransform::softmax;
  if (word == "LOGISTIC") return PostTransform::logistic;
  if (word == "SOFTMAX_ZERO") return PostTransform::softmax_zero;
  if (word == "PROBIT") return PostTransform::probit;
  fail(ErrorCode::invalid_model, "post_transform is '{}'; expected NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT", word);
}

template <class T>
T logistic_score(T v) {
  const T p = T(1) / (T(1) + std::exp(-std::abs(v)));  // never overflows
  return v < 0 ? T(1) - p : p;
}

template <class T>
T probit(T v) {
  return static_cast<T>(1.41421356f * inverse_erf(2.0f * static_cast<float>(v) - 1.0f));
}

template <class T>
void transform_scores(PostTransform how, T* scores, std::size_t n) {
  if (n == 0) return;
  switch (how) {
    case PostTransform::none: return;
    case PostTransform::softmax: return softmax(scores, n);
    case PostTransform::softmax_zero: return softmax_zero(scores, n);
    case PostTransform::logistic: std::transform(scores, scores + n, scores, logistic_score<T>); return;
    case PostTransform::probit: std::transform(scores, scores + n, scores, probit<T>); return;
  }
}

template <class T>
void split_score(PostTransform how, SecondScore second, T* scores) {
  const T s = scores[0];
  if (how == PostTransform::probit) {
    scores[0] = probit(s);  // ONNX Runtime writes this one and leaves the other
    scores[1] = -scores[0];
  } else if (how == PostTransform::logistic) {
    scores[1] = logistic_score(s);
    scores[0] = logistic_score(-s);
  } else {
    scores[1] = s;
    scores[0] = second == SecondScore::complement ? T(1) - s : -s;
  }
}

template float logistic_score(float);
template double logistic_score(double);
template float probit(float);
template double probit(double);
template void transform_scores(PostTransform, float*, std::size_t);
template void transform_scores(PostTransform, double*, std::size_t);
template void split_score(PostTransform, SecondScore, float*);
template void split_score(PostTransform, SecondScore, double*);

void ClassLabels::store(Tensor& out, std::int64_t at, std::int64_t label) const {
  if (label < 0 || static_cast<std::size_t>(label) >= size()) {
    fail(ErrorCode::runtime_failure, "class {} is chosen, but the node has {} class labels", label, size());
  }
  const auto l = static_cast<std::size_t>(label);
  if (strings.empty()) {
    static_cast<std::int64_t*>(out.mutable_data())[at] = ints[l];
  } else {
    static_cast<std::string*>(out.mutable_data())[at] = strings[l];
  }
}

ClassLabels class_labels(const Node& node) {
  const auto attr = parse<ClassLabelAttrs>(node);
  ClassLabels labels{to_vector(attr.ints), to_vector(attr.strings)};
  if (!labels.ints.empty() && !labels.strings.empty()) {
    fail(ErrorCode::invalid_model, "both {} and classlabels_strings are given; expected one of them",
         ClassLabelAttrs::ints_name(node.op_type));
  }
  return labels;
}

Rows rows_of(const OpContext& c, const Tensor& x) {
  if (x.rank() == 1) return {1, x.dim(0)};
  if (x.rank() == 2) return {x.dim(0), x.dim(1)};
  c.fail("X must be a matrix [rows, features] or one row, received {}", to_string(x.shape()));
}

Dim rows_of(const InferContext& c) {
  const SymShape* x = c.shape(0);
  if (x == nullptr) return Dim::unknown();
  if (x->size() == 1) return 1;
  if (x->size() == 2) return (*x)[0];
  c.fail("X must be a matrix [rows, features] or one row, received {}", to_string(*x));
}

}  // namespace sdx::ops
