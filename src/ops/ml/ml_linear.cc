// LinearRegressor, LinearClassifier: ai.onnx.ml 1.

#include <algorithm>

#include "base/checked.h"
#include "base/thread_pool.h"
#include "ops/ml/ml_inputs.h"
#include "ops/ml/ml_scores.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

struct LinearModelAttrs {  // LinearRegressor, LinearClassifier
  FloatList coefficients, intercepts;
  std::int64_t targets = 1;  // of the regressor

  void fields(auto& f, const OpId& op) {
    if (op.name == "LinearRegressor") {
      f("coefficients", coefficients);
      f("targets", targets);
    } else {
      f.required("coefficients", coefficients);
      f.unread("multi_class", AttrKind::i);
    }
    f("intercepts", intercepts);
  }
};

constexpr std::int64_t kMaxTargets = std::int64_t{1} << 20;

std::vector<float> floats_of(const Tensor& x) {
  std::vector<float> out(static_cast<std::size_t>(x.size()));
  dispatch(x.dtype(), MlNumbers{}, "linear model", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* in = static_cast<const T*>(x.data());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(in[i]);
  });
  return out;
}

// out[row, target] = x[row] . coefficients[target] + intercepts[target]
void linear(const OpContext& c, const Rows& rows, std::int64_t targets, float* out, std::int64_t stride) {
  const auto attr = parse<LinearModelAttrs>(c);
  const FloatList coefficients = attr.coefficients, intercepts = attr.intercepts;
  // More coefficients than needed are left unused, as ONNX Runtime does: its own logreg_iris test model has twice as many.
  const auto needed = checked_mul(targets, rows.width);
  if (!needed || static_cast<std::int64_t>(coefficients.size()) < *needed) {
    c.fail("coefficients has {} elements; expected {} targets times {} features", coefficients.size(), targets, rows.width);
  }
  if (!intercepts.empty() && static_cast<std::int64_t>(intercepts.size()) != targets) {
    c.fail("intercepts has {} elements; expected one for each of the {} targets", intercepts.size(), targets);
  }
  const std::vector<float> x = floats_of(c.input(0));
  parallel_for(rows.count, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const float* row = x.data() + r * rows.width;
      for (std::int64_t t = 0; t < targets; ++t) {
        const float* k = coefficients.data() + t * rows.width;
        double sum = intercepts.empty() ? 0.0 : static_cast<double>(intercepts[static_cast<std::size_t>(t)]);
        for (std::int64_t i = 0; i < rows.width; ++i) sum += static_cast<double>(row[i]) * k[i];
        out[r * stride + t] = static_cast<float>(sum);
      }
    }
  });
}

// --- regression ---

std::int64_t targets_of(const LinearModelAttrs& attr) {
  const std::int64_t n = attr.targets;
  if (n < 1 || n > kMaxTargets) fail(ErrorCode::invalid_model, "targets must be between 1 and {}, received {}", kMaxTargets, n);
  return n;
}

void infer_regressor(InferContext& c) {
  c.output(0, DataType::float32, SymShape{rows_of(c), targets_of(parse<LinearModelAttrs>(c))});
}

void run_regressor(OpContext& c) {
  const Rows rows = rows_of(c, c.input(0));
  const std::int64_t targets = targets_of(parse<LinearModelAttrs>(c));
  const PostTransform post = post_transform_of(c.attrs());
  Tensor& y = c.output(0, DataType::float32, {rows.count, targets});
  auto* out = static_cast<float*>(y.mutable_data());
  linear(c, rows, targets, out, targets);
  for (std::int64_t r = 0; r < rows.count; ++r) {
    float* row = out + r * targets;
    if (targets > 1) {
      transform_scores(post, row, static_cast<std::size_t>(targets));
    } else if (post == PostTransform::probit) {
      row[0] = probit(row[0]);
    }
  }
}

// --- classification ---

// The models's own scores: one per intercept, else one per label.
std::int64_t scores_of(const LinearModelAttrs& attr, const ClassLabels& labels) {
  const auto intercepts = static_cast<std::int64_t>(attr.intercepts.size());
  return intercepts > 0 ? intercepts : static_cast<std::int64_t>(labels.size());
}

bool splits(std::int64_t scores, const ClassLabels& labels) { return scores == 1 && labels.size() == 2; }

void infer_classifier(InferContext& c) {
  const ClassLabels labels = class_labels(c.node());
  const std::int64_t scores = scores_of(parse<LinearModelAttrs>(c), labels);
  const Dim rows = rows_of(c);
  c.output(0, labels.type(), SymShape{rows});
  c.output(1, DataType::float32, SymShape{rows, splits(scores, labels) ? std::int64_t{2} : scores});
}

void run_classifier(OpContext& c) {
  const Rows rows = rows_of(c, c.input(0));
  const ClassLabels labels = class_labels(c.node());
  const PostTransform post = post_transform_of(c.attrs());
  const std::int64_t scores = scores_of(parse<LinearModelAttrs>(c), labels);
  if (scores == 0) c.fail("no class labels: expected classlabels_ints or classlabels_strings");
  const std::int64_t stride = splits(scores, labels) ? 2 : scores;
  Tensor& y = c.output(0, labels.type(), {rows.count});
  Tensor& z = c.output(1, DataType::float32, {rows.count, stride});
  auto* out = static_cast<float*>(z.mutable_data());
  linear(c, rows, scores, out, stride);
  for (std::int64_t r = 0; r < rows.count; ++r) {
    float* row = out + r * stride;
    if (scores == 1) {
      const bool chosen = row[0] > 0.0f;
      if (labels.size() >= 2 || !labels.strings.empty()) {
        labels.store(y, r, chosen && labels.size() > 1 ? 1 : 0);
      } else {
        static_cast<std::int64_t*>(y.mutable_data())[r] = chosen ? 1 : 0;  // a member of the one class or not
      }
      if (stride == 2) {
        split_score(post, SecondScore::complement, row);
      } else if (post == PostTransform::probit) {
        row[0] = probit(row[0]);
      }
      continue;
    }
    labels.store(y, r, std::max_element(row, row + scores) - row);
    transform_scores(post, row, static_cast<std::size_t>(scores));
  }
}

}  // namespace

void register_ml_linear(OpTable& t) {
  t.add(OpDef(kMlDomain, "LinearRegressor", 1)
            .in("X", "T", kMlNumbers)
            .out("Y", "", bit(DataType::float32))
            .attrs<LinearModelAttrs>()
            .attrs<PostTransformAttrs>()
            .infer_with(infer_regressor)
            .run_with(run_regressor));
  t.add(OpDef(kMlDomain, "LinearClassifier", 1)
            .in("X", "T1", kMlNumbers)
            .out("Y", "", types::string | types::int64)
            .out("Z", "", bit(DataType::float32))
            .attrs<LinearModelAttrs>()
            .attrs<ClassLabelAttrs>()
            .attrs<PostTransformAttrs>()
            .infer_with(infer_classifier)
            .run_with(run_classifier));
}

}  // namespace sdx::ops
