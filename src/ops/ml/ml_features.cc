// OneHotEncoder, FeatureVectorizer, ArrayFeatureExtractor: ai.onnx.ml 1.

#include <algorithm>
#include <unordered_map>

#include "base/checked.h"
#include "base/error.h"
#include "ops/context.h"
#include "ops/ml/ml_inputs.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "ops/tensor/axes.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

struct OneHotEncoderAttrs {
  IntList cats_int64s;
  StringList cats_strings;
  bool zeros = true;

  void fields(auto& f) {
    f("cats_int64s", cats_int64s);
    f("cats_strings", cats_strings);
    f("zeros", zeros);
  }
};

struct FeatureVectorizerAttrs {
  IntList inputdimensions;

  void fields(auto& f) { f("inputdimensions", inputdimensions); }
};

// --- OneHotEncoder ---

std::int64_t categories(const OneHotEncoderAttrs& attr) {
  const std::size_t ints = attr.cats_int64s.size();
  const std::size_t strings = attr.cats_strings.size();
  if ((ints == 0) == (strings == 0)) {
    fail(ErrorCode::invalid_model, "expected either cats_int64s or cats_strings, received {}", ints == 0 ? "neither" : "both");
  }
  return static_cast<std::int64_t>(ints + strings);
}

void infer_one_hot(InferContext& c) {
  const SymShape* x = c.shape(0);
  const std::int64_t n = categories(parse<OneHotEncoderAttrs>(c));
  if (x == nullptr) return c.output(0, DataType::float32);
  SymShape out = *x;
  out.push_back(n);
  c.output(0, DataType::float32, std::move(out));
}

template <class K, class F>
void one_hot(OpContext& c, std::span<const K> cats, Tensor& y, F&& key_at) {
  std::unordered_map<K, std::int64_t> index;
  for (std::size_t i = 0; i < cats.size(); ++i) index.emplace(cats[i], static_cast<std::int64_t>(i));
  const bool zeros = parse<OneHotEncoderAttrs>(c).zeros;
  const auto width = static_cast<std::int64_t>(cats.size());
  auto* out = static_cast<float*>(y.mutable_data());
  std::fill(out, out + y.size(), 0.0f);
  for (std::int64_t i = 0; i < c.input(0).size(); ++i) {
    const auto it = index.find(key_at(i));
    if (it != index.end()) {
      out[i * width + it->second] = 1.0f;
    } else if (!zeros) {
      c.fail("element {} is not one of the {} categories; with attribute zeros = 1 its result is zeros", i, width);
    }
  }
}

void run_one_hot(OpContext& c) {
  const auto attr = parse<OneHotEncoderAttrs>(c);
  const Tensor& x = c.input(0);
  Shape shape = x.shape();
  shape.push_back(categories(attr));
  Tensor& y = c.output(0, DataType::float32, shape);
  if (x.dtype() == DataType::string) {
    const auto in = x.values<std::string>();
    return one_hot(c, attr.cats_strings, y, [&](std::int64_t i) { return in[static_cast<std::size_t>(i)]; });
  }
  const IntList cats = attr.cats_int64s;
  dispatch(x.dtype(), MlNumbers{}, "OneHotEncoder", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* in = static_cast<const T*>(x.data());
    one_hot(c, cats, y, [&](std::int64_t i) {
      if constexpr (std::is_integral_v<T>) return static_cast<std::int64_t>(in[i]);
      return saturating_cast<std::int64_t>(static_cast<double>(in[i]));
    });
  });
}

// --- FeatureVectorizer ---

constexpr std::int64_t kMaxDimension = std::int64_t{1} << 31;

std::vector<std::int64_t> dimensions(const FeatureVectorizerAttrs& attr, std::size_t inputs) {
  std::vector<std::int64_t> dims = to_vector(attr.inputdimensions);
  if (!dims.empty() && dims.size() != inputs) {
    fail(ErrorCode::invalid_model, "inputdimensions has {} elements; expected one for each of the {} inputs", dims.size(),
         inputs);
  }
  for (const std::int64_t d : dims) {
    if (d < 0 || d > kMaxDimension)
      fail(ErrorCode::invalid_model, "inputdimensions holds {}, which is not a number of features", d);
  }
  return dims;
}

// The rows and features of one input: [N, features...] or [C].
template <class S>
std::pair<typename S::value_type, typename S::value_type> row_shape(const S& s) {
  if (s.empty()) fail(ErrorCode::invalid_model, "inputs must be matrices [rows, features] or single rows, received a scalar");
  if (s.size() == 1) return {1, s[0]};
  typename S::value_type features = s[1];
  for (std::size_t i = 2; i < s.size(); ++i) features = features * s[i];
  return {s[0], features};
}

void infer_vectorizer(InferContext& c) {
  const std::vector<std::int64_t> dims = dimensions(parse<FeatureVectorizerAttrs>(c), c.num_inputs());
  Dim rows = Dim::unknown();
  Dim width = 0;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    const SymShape* s = c.shape(i);
    if (s != nullptr && !rows.is_const()) rows = row_shape(*s).first;
    width = width + (!dims.empty() ? Dim(dims[i]) : s != nullptr ? row_shape(*s).second : Dim::unknown());
  }
  c.output(0, DataType::float32, SymShape{rows, width});
}

// Inputs beside each other; each is cut, or filled with zeros, to its input dimension.
void run_vectorizer(OpContext& c) {
  std::vector<std::int64_t> dims = dimensions(parse<FeatureVectorizerAttrs>(c), c.num_inputs());
  const std::int64_t rows = row_shape(c.input(0).shape()).first;
  std::int64_t width = 0;
  const bool own = dims.empty();
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    const auto [n, d] = row_shape(c.input(i).shape());
    if (n != rows) c.fail("input 0 has {} rows, input {} has {}; the counts must be equal", rows, i, n);
    if (own) dims.push_back(d);
    const auto sum = checked_add(width, dims[i]);
    if (!sum) c.fail("the inputs have too many features together");
    width = *sum;
  }
  Tensor& y = c.output(0, DataType::float32, {rows, width});
  auto* out = static_cast<float*>(y.mutable_data());
  std::fill(out, out + y.size(), 0.0f);
  std::int64_t at = 0;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    const Tensor& x = c.input(i);
    const std::int64_t d = row_shape(x.shape()).second;
    const std::int64_t n = std::min(d, dims[i]);
    dispatch(x.dtype(), MlNumbers{}, "FeatureVectorizer", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto* in = static_cast<const T*>(x.data());
      for (std::int64_t r = 0; r < rows && n > 0; ++r) {
        for (std::int64_t k = 0; k < n; ++k) out[r * width + at + k] = static_cast<float>(in[r * d + k]);
      }
    });
    at += dims[i];
  }
}

// --- ArrayFeatureExtractor ---

void infer_extractor(InferContext& c) {
  const SymShape* x = c.shape(0);
  const SymShape* y = c.shape(1);
  if (x == nullptr) return c.output(0, c.dtype(0));
  if (x->empty()) c.fail("X must have at least one axis");
  SymShape out = *x;
  out.back() = y != nullptr ? product(*y, 0, y->size()) : Dim::unknown();
  if (x->size() == 1) out.insert(out.begin(), Dim(1));
  c.output(0, c.dtype(0), std::move(out));
}

void run_extractor(OpContext& c) {
  const Tensor& x = c.input(0);
  const auto indices = c.input(1).values<std::int64_t>();
  if (x.rank() == 0) c.fail("X must have at least one axis");
  const std::int64_t width = x.shape().back();
  for (const std::int64_t i : indices) {
    if (i < 0 || i >= width) c.fail("index {} is out of range; X has {} features", i, width);
  }
  const auto n = static_cast<std::int64_t>(indices.size());
  Shape shape = x.shape();
  shape.back() = n;
  if (x.rank() == 1) shape.insert(shape.begin(), 1);
  Tensor& z = c.output(0, x.dtype(), shape);
  if (z.size() == 0) return;
  using Types = TypeList<float, double, std::int64_t, std::int32_t, std::string>;
  dispatch(x.dtype(), Types{}, "ArrayFeatureExtractor", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* in = static_cast<const T*>(x.data());
    auto* out = static_cast<T*>(z.mutable_data());
    for (std::int64_t r = 0; r < x.size() / width; ++r) {
      for (std::int64_t k = 0; k < n; ++k) out[r * n + k] = in[r * width + indices[static_cast<std::size_t>(k)]];
    }
  });
}

}  // namespace

void register_ml_features(OpTable& t) {
  t.add(OpDef(kMlDomain, "OneHotEncoder", 1)
            .in("X", "", kMlNumbers | types::string)
            .out("Y", "", bit(DataType::float32))
            .attrs<OneHotEncoderAttrs>()
            .infer_with(infer_one_hot)
            .run_with(run_one_hot));
  t.add(OpDef(kMlDomain, "FeatureVectorizer", 1)
            .in("X", "", kMlNumbers, Arity::variadic)
            .out("Y", "", bit(DataType::float32))
            .attrs<FeatureVectorizerAttrs>()
            .infer_with(infer_vectorizer)
            .run_with(run_vectorizer));
  t.add(OpDef(kMlDomain, "ArrayFeatureExtractor", 1)
            .in("X", "T", kMlNumbers | types::string)
            .in("Y", "", types::int64)
            .out("Z", "T", kMlNumbers | types::string)
            .infer_with(infer_extractor)
            .run_with(run_extractor));
}

}  // namespace sdx::ops
