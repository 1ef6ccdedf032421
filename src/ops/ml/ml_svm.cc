// SVMClassifier, SVMRegressor: ai.onnx.ml 1.
// Which label wins and what two-class scores look like follows ONNX Runtime (measured): ai.onnx.ml-1 does not say. Votes decide
// even where there are probabilities; without them the scores are those of the pairs of classes.

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/thread_pool.h"
#include "ops/ml/ml_inputs.h"
#include "ops/ml/ml_scores.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

enum class KernelType : std::uint8_t { linear, poly, rbf, sigmoid };

struct Kernel {
  KernelType type = KernelType::linear;
  double gamma = 0, coef0 = 0, degree = 0;

  double operator()(const float* a, const float* b, std::int64_t n) const {
    double sum = 0;
    if (type == KernelType::rbf) {
      for (std::int64_t i = 0; i < n; ++i) sum += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
      return std::exp(-gamma * sum);
    }
    for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
    if (type == KernelType::poly) return std::pow(gamma * sum + coef0, degree);
    return type == KernelType::sigmoid ? std::tanh(gamma * sum + coef0) : sum;
  }
};

struct SvmAttrs {  // SVMClassifier, SVMRegressor
  FloatList coefficients, kernel_params, rho, support_vectors;
  std::string_view kernel_type = "LINEAR";
  FloatList prob_a, prob_b;  // of the classifier
  IntList vectors_per_class;
  std::int64_t n_supports = 0;  // of the regressor
  bool one_class = false;

  void fields(auto& f, const OpId& op) {
    f("coefficients", coefficients);
    f("kernel_params", kernel_params);
    f("kernel_type", kernel_type);
    f("rho", rho);
    f("support_vectors", support_vectors);
    if (op.name == "SVMClassifier") {
      f("prob_a", prob_a);
      f("prob_b", prob_b);
      f("vectors_per_class", vectors_per_class);
    } else {
      f("n_supports", n_supports);
      f("one_class", one_class);
    }
  }
};

Kernel kernel_of(const SvmAttrs& attr) {
  Kernel k;
  const std::string_view word = attr.kernel_type;
  if (word == "POLY") {
    k.type = KernelType::poly;
  } else if (word == "RBF") {
    k.type = KernelType::rbf;
  } else if (word == "SIGMOID") {
    k.type = KernelType::sigmoid;
  } else if (word != "LINEAR") {
    fail(ErrorCode::invalid_model, "kernel_type is '{}'; expected LINEAR, POLY, RBF or SIGMOID", word);
  }
  const FloatList p = attr.kernel_params;
  if (!p.empty() && p.size() != 3)
    fail(ErrorCode::invalid_model, "kernel_params must hold gamma, coef0 and degree, received {} numbers", p.size());
  if (!p.empty()) {
    k.gamma = p[0];
    k.coef0 = p[1];
    k.degree = p[2];
  }
  return k;
}

std::vector<float> floats_of(const Tensor& x) {
  std::vector<float> out(static_cast<std::size_t>(x.size()));
  dispatch(x.dtype(), MlNumbers{}, "SVM", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* in = static_cast<const T*>(x.data());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(in[i]);
  });
  return out;
}

void check_count(const OpContext& c, const char* what, std::size_t received, std::int64_t expected) {
  if (static_cast<std::int64_t>(received) == expected) return;
  c.fail("{} has {} elements; expected {}", what, received, expected);
}

// --- classification ---

struct SvmModel {
  ClassLabels labels;
  Kernel kernel;
  PostTransform post = PostTransform::none;
  std::vector<float> coefficients, rho, support, prob_a, prob_b;
  std::vector<std::int64_t> per_class;
  std::int64_t classes = 0, vectors = 0;

  bool votes() const { return vectors > 0; }
  bool has_probabilities() const { return votes() && !prob_a.empty(); }
  std::int64_t pairs() const { return classes * (classes - 1) / 2; }
  // The model's own scores of a row.
  std::int64_t scores() const { return votes() && !has_probabilities() ? pairs() : classes; }
  // The number of columns written: one score of two classes is written for both.
  std::int64_t columns() const { return scores() == 1 && labels.size() == 2 ? 2 : scores(); }
};

SvmModel read_model(const Node& node) {
  const auto attr = parse<SvmAttrs>(node);
  SvmModel m;
  m.labels = class_labels(node);
  m.per_class = to_vector(attr.vectors_per_class);
  m.prob_a = to_vector(attr.prob_a);
  m.prob_b = to_vector(attr.prob_b);
  for (const std::int64_t n : m.per_class) {
    const auto sum = n < 0 ? std::nullopt : checked_add(m.vectors, n);
    if (!sum) fail(ErrorCode::invalid_model, "vectors_per_class holds {}, which is not a count of vectors", n);
    m.vectors = *sum;
  }
  m.classes = static_cast<std::int64_t>(m.votes() ? m.per_class.size() : m.labels.size());
  if (m.classes > (std::int64_t{1} << 20)) fail(ErrorCode::invalid_model, "{} classes are too many", m.classes);
  return m;
}

void infer_classifier(InferContext& c) {
  const SvmModel m = read_model(c.node());
  const Dim rows = rows_of(c);
  c.output(0, m.labels.type(), SymShape{rows});
  c.output(1, DataType::float32, SymShape{rows, m.columns()});
}

void load_model(const OpContext& c, SvmModel& m, std::int64_t width) {
  const auto attr = parse<SvmAttrs>(c);
  m.kernel = kernel_of(attr);
  m.post = post_transform_of(c.attrs());
  m.coefficients = to_vector(attr.coefficients);
  m.rho = to_vector(attr.rho);
  m.support = to_vector(attr.support_vectors);
  if (width == 0) c.fail("X has no features");
  if (m.labels.size() == 0) c.fail("no class labels: expected classlabels_ints or classlabels_strings");
  if (!m.votes()) {
    check_count(c, "coefficients", m.coefficients.size(), checked_mul(m.classes, width).value_or(-1));
    if (m.rho.empty()) c.fail("rho is missing; expected one number");
    return;
  }
  check_count(c, "class labels", m.labels.size(), m.classes);
  check_count(c, "support_vectors", m.support.size(), checked_mul(m.vectors, width).value_or(-1));
  check_count(c, "coefficients", m.coefficients.size(), checked_mul(m.vectors, m.classes - 1).value_or(-1));
  check_count(c, "rho", m.rho.size(), m.pairs());
  if (!m.has_probabilities()) return;
  check_count(c, "prob_a", m.prob_a.size(), m.pairs());
  check_count(c, "prob_b", m.prob_b.size(), m.pairs());
}

// One score per pair of classes; returns the class with the most votes, the first of equals.
std::int64_t pair_scores(const SvmModel& m, const float* row, std::int64_t width, std::vector<double>& scores) {
  std::vector<double> kernels(static_cast<std::size_t>(m.vectors));
  for (std::int64_t v = 0; v < m.vectors; ++v) {
    kernels[static_cast<std::size_t>(v)] = m.kernel(row, m.support.data() + v * width, width);
  }
  std::vector<std::int64_t> starts;
  std::int64_t at = 0;
  for (const std::int64_t n : m.per_class) {
    starts.push_back(at);
    at += n;
  }
  std::vector<std::int64_t> votes(static_cast<std::size_t>(m.classes), 0);
  scores.clear();
  const auto part = [&](std::size_t of, std::size_t against) {
    double sum = 0;
    const float* k = m.coefficients.data() + static_cast<std::int64_t>(against) * m.vectors;
    for (std::int64_t v = starts[of]; v < starts[of] + m.per_class[of]; ++v)
      sum += static_cast<double>(k[v]) * kernels[static_cast<std::size_t>(v)];
    return sum;
  };
  for (std::size_t i = 0; i < votes.size(); ++i) {
    for (std::size_t j = i + 1; j < votes.size(); ++j) {
      const double sum = part(i, j - 1) + part(j, i) + static_cast<double>(m.rho[scores.size()]);
      scores.push_back(sum);
      ++votes[sum > 0 ? i : j];
    }
  }
  return std::max_element(votes.begin(), votes.end()) - votes.begin();
}

// Class probabilities from pairwise ones. Source: Wu, Lin, Weng, "Probability Estimates for Multi-class Classification by
// Pairwise Coupling" (2004), second method, as LIBSVM iterates it.
void couple(std::int64_t classes, const std::vector<double>& r, std::vector<double>& p) {
  const auto k = static_cast<std::size_t>(classes);
  std::vector<double> q(k * k, 0.0);
  std::vector<double> qp(k);
  p.assign(k, 1.0 / static_cast<double>(classes));
  for (std::size_t t = 0; t < k; ++t) {
    for (std::size_t j = 0; j < k; ++j) {
      if (j == t) continue;
      q[t * k + t] += r[j * k + t] * r[j * k + t];
      q[t * k + j] = -r[j * k + t] * r[t * k + j];
    }
  }
  const double tolerance = 0.005 / static_cast<double>(classes);
  for (std::int64_t round = 0; round < std::max<std::int64_t>(100, classes); ++round) {
    double pqp = 0;
    for (std::size_t t = 0; t < k; ++t) {
      qp[t] = 0;
      for (std::size_t j = 0; j < k; ++j) qp[t] += q[t * k + j] * p[j];
      pqp += p[t] * qp[t];
    }
    double error = 0;
    for (std::size_t t = 0; t < k; ++t) error = std::max(error, std::abs(qp[t] - pqp));
    if (error < tolerance) break;
    for (std::size_t t = 0; t < k; ++t) {
      const double step = (-qp[t] + pqp) / q[t * k + t];
      p[t] += step;
      pqp = (pqp + step * (step * q[t * k + t] + 2 * qp[t])) / (1 + step) / (1 + step);
      for (std::size_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + step * q[t * k + j]) / (1 + step);
        p[j] /= 1 + step;
      }
    }
  }
}

void probabilities(const SvmModel& m, std::vector<double>& scores) {
  const auto k = static_cast<std::size_t>(m.classes);
  std::vector<double> pairwise(k * k, 0.0);
  std::size_t at = 0;
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = i + 1; j < k; ++j, ++at) {
      const double v = scores[at] * static_cast<double>(m.prob_a[at]) + static_cast<double>(m.prob_b[at]);
      const double p = std::clamp(1.0 - logistic_score(v), 1e-7, 1.0 - 1e-7);  // bounds as in LIBSVM
      pairwise[i * k + j] = p;
      pairwise[j * k + i] = 1.0 - p;
    }
  }
  couple(m.classes, pairwise, scores);
}

// Linear models: with two classes and one rho, the second class is called positive, whichever score is larger.
std::int64_t linear_label(const SvmModel& m, const std::vector<double>& scores) {
  const auto best = std::max_element(scores.begin(), scores.end());
  if (m.labels.size() == 2 && m.rho.size() == 1) {
    const bool positive = std::all_of(m.coefficients.begin(), m.coefficients.end(), [](float v) { return v >= 0; });
    if (positive ? *best >= 0.5 : *best > 0) return 1;
  }
  return best - scores.begin();
}

void run_classifier(OpContext& c) {
  const Rows rows = rows_of(c, c.input(0));
  SvmModel m = read_model(c.node());
  load_model(c, m, rows.width);
  const std::int64_t columns = m.columns();
  Tensor& y = c.output(0, m.labels.type(), {rows.count});
  Tensor& z = c.output(1, DataType::float32, {rows.count, columns});
  auto* out = static_cast<float*>(z.mutable_data());
  const std::vector<float> x = floats_of(c.input(0));
  parallel_for(rows.count, 4, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> scores;
    for (std::int64_t r = begin; r < end; ++r) {
      c.stop().check();
      const float* row = x.data() + r * rows.width;
      std::int64_t label = 0;
      if (m.votes()) {
        label = pair_scores(m, row, rows.width, scores);
        if (m.has_probabilities()) probabilities(m, scores);
      } else {
        scores.clear();
        for (std::int64_t k = 0; k < m.classes; ++k) {
          scores.push_back(m.kernel(row, m.coefficients.data() + k * rows.width, rows.width) + static_cast<double>(m.rho[0]));
        }
        label = linear_label(m, scores);
      }
      m.labels.store(y, r, label);
      float* to = out + r * columns;
      std::transform(scores.begin(), scores.end(), to, [](double v) { return static_cast<float>(v); });
      if (columns != m.scores()) {
        split_score(m.post, m.post == PostTransform::none ? SecondScore::opposite : SecondScore::complement, to);
      } else {
        transform_scores(m.post, to, static_cast<std::size_t>(columns));
      }
    }
  });
}

// --- regression ---

void infer_regressor(InferContext& c) { c.output(0, DataType::float32, SymShape{rows_of(c), 1}); }

void run_regressor(OpContext& c) {
  const Rows rows = rows_of(c, c.input(0));
  const auto attr = parse<SvmAttrs>(c);
  const Kernel kernel = kernel_of(attr);
  const FloatList coefficients = attr.coefficients, support = attr.support_vectors, rho = attr.rho;
  const std::int64_t vectors = attr.n_supports;
  const bool one_class = attr.one_class;
  if (rho.empty()) c.fail("rho is missing; expected one number");
  if (vectors > 0) {
    check_count(c, "coefficients", coefficients.size(), vectors);
    check_count(c, "support_vectors", support.size(), checked_mul(vectors, rows.width).value_or(-1));
  } else {
    check_count(c, "coefficients", coefficients.size(), rows.width);
  }
  Tensor& y = c.output(0, DataType::float32, {rows.count, 1});
  auto* out = static_cast<float*>(y.mutable_data());
  const std::vector<float> x = floats_of(c.input(0));
  parallel_for(rows.count, 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      c.stop().check();
      const float* row = x.data() + r * rows.width;
      double sum = static_cast<double>(rho[0]);
      for (std::int64_t v = 0; v < vectors; ++v) {
        sum += static_cast<double>(coefficients[static_cast<std::size_t>(v)]) *
               kernel(row, support.data() + v * rows.width, rows.width);
      }
      if (vectors <= 0) sum += kernel(row, coefficients.data(), rows.width);
      out[r] = one_class ? (sum > 0 ? 1.0f : -1.0f) : static_cast<float>(sum);
    }
  });
}

}  // namespace

void register_ml_svm(OpTable& t) {
  OpDef classifier(kMlDomain, "SVMClassifier", 1);
  classifier.in("X", "T1", kMlNumbers).out("Y", "", types::string | types::int64).out("Z", "", bit(DataType::float32));
  classifier.attrs<ClassLabelAttrs>().attrs<SvmAttrs>().attrs<PostTransformAttrs>();
  OpDef regressor(kMlDomain, "SVMRegressor", 1);
  regressor.in("X", "T", kMlNumbers).out("Y", "", bit(DataType::float32));
  regressor.attrs<SvmAttrs>().attrs<PostTransformAttrs>();
  t.add(std::move(classifier).infer_with(infer_classifier).run_with(run_classifier));
  t.add(std::move(regressor).infer_with(infer_regressor).run_with(run_regressor));
}

}  // namespace sdx::ops
