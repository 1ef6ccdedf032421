// Scaler, Normalizer, Binarizer, Imputer: ai.onnx.ml 1.

#include <algorithm>
#include <cmath>

#include "ops/context.h"
#include "ops/ml/ml_inputs.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct ScalerAttrs {
  FloatList offset;
  FloatList scale;

  void fields(auto& f) {
    f("offset", offset);
    f("scale", scale);
  }
};

struct NormalizerAttrs {
  std::string_view norm = "MAX";

  void fields(auto& f) { f("norm", norm); }
};

struct BinarizerAttrs {
  float threshold = 0.0f;

  void fields(auto& f) { f("threshold", threshold); }
};

struct ImputerAttrs {
  FloatList imputed_value_floats;
  IntList imputed_value_int64s;
  float replaced_value_float = 0.0f;
  std::int64_t replaced_value_int64 = 0;

  void fields(auto& f) {
    f("imputed_value_floats", imputed_value_floats);
    f("imputed_value_int64s", imputed_value_int64s);
    f("replaced_value_float", replaced_value_float);
    f("replaced_value_int64", replaced_value_int64);
  }
};

void infer_as(InferContext& c, DataType elem) {
  if (const SymShape* x = c.shape(0)) return c.output(0, elem, *x);
  c.output(0, elem);
}
void infer_float(InferContext& c) { infer_as(c, DataType::float32); }
void infer_same(InferContext& c) { infer_as(c, c.dtype(0)); }

// One value for all features, or one for each. Throws for other counts.
template <class T>
const T& per_feature(std::span<const T> list, std::int64_t i) {
  return list[list.size() == 1 ? 0 : static_cast<std::size_t>(i)];
}
void check_features(const OpContext& c, const char* what, std::size_t received, std::int64_t width) {
  if (received == 1 || static_cast<std::int64_t>(received) == width) return;
  c.fail("{} has {} elements; expected 1, or one for each of the {} features", what, received, width);
}

void run_scaler(OpContext& c) {
  const auto attr = parse<ScalerAttrs>(c);
  const Tensor& x = c.input(0);
  std::vector<float> offset = to_vector(attr.offset);
  std::vector<float> scale = to_vector(attr.scale);
  if (offset.empty()) offset = {0.0f};
  if (scale.empty()) scale = {1.0f};
  const std::int64_t width = last_extent(x);
  check_features(c, "offset", offset.size(), width);
  check_features(c, "scale", scale.size(), width);
  Tensor& y = c.output(0, DataType::float32, x.shape());
  auto* out = static_cast<float*>(y.mutable_data());
  dispatch(x.dtype(), MlNumbers{}, "Scaler", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* in = static_cast<const T*>(x.data());
    for (std::int64_t i = 0; i < x.size(); ++i) {
      out[i] = (static_cast<float>(in[i]) - per_feature<float>(offset, i % width)) * per_feature<float>(scale, i % width);
    }
  });
}

enum class Norm : std::uint8_t { max, l1, l2 };

// MAX divides by the largest value, not by the largest magnitude; rows whose norm is 0 stay as they are (ONNX Runtime).
void normalize_row(Norm how, float* row, std::int64_t n) {
  double norm = how == Norm::max ? static_cast<double>(*std::max_element(row, row + n)) : 0.0;
  for (std::int64_t i = 0; i < n && how != Norm::max; ++i) {
    norm += how == Norm::l1 ? std::abs(static_cast<double>(row[i])) : static_cast<double>(row[i]) * row[i];
  }
  if (how == Norm::l2) norm = std::sqrt(norm);
  if (norm == 0.0) return;
  for (std::int64_t i = 0; i < n; ++i) row[i] = static_cast<float>(row[i] / norm);
}

void run_normalizer(OpContext& c) {
  const Tensor& x = c.input(0);
  const std::string_view word = parse<NormalizerAttrs>(c).norm;
  if (word != "MAX" && word != "L1" && word != "L2") c.fail("norm is '{}'; expected MAX, L1 or L2", word);
  const Norm how = word == "MAX" ? Norm::max : word == "L1" ? Norm::l1 : Norm::l2;
  Tensor& y = c.output(0, DataType::float32, x.shape());
  auto* out = static_cast<float*>(y.mutable_data());
  dispatch(x.dtype(), MlNumbers{}, "Normalizer", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* in = static_cast<const T*>(x.data());
    for (std::int64_t i = 0; i < x.size(); ++i) out[i] = static_cast<float>(in[i]);
  });
  const std::int64_t width = last_extent(x);
  for (std::int64_t at = 0; at < x.size(); at += width) normalize_row(how, out + at, width);
}

void run_binarizer(OpContext& c) {
  const Tensor& x = c.input(0);
  const float threshold = parse<BinarizerAttrs>(c).threshold;
  Tensor& y = c.output(0, x.dtype(), x.shape());
  dispatch(x.dtype(), MlNumbers{}, "Binarizer", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* in = static_cast<const T*>(x.data());
    auto* out = static_cast<T*>(y.mutable_data());
    for (std::int64_t i = 0; i < x.size(); ++i)
      out[i] = static_cast<double>(in[i]) > static_cast<double>(threshold) ? T(1) : T(0);
  });
}

template <class T>
void impute(OpContext& c, std::span<const T> imputed, T replaced) {
  const Tensor& x = c.input(0);
  const std::int64_t width = last_extent(x);
  check_features(c, "the list of imputed values", imputed.size(), width);
  Tensor& y = c.output(0, x.dtype(), x.shape());
  const auto* in = static_cast<const T*>(x.data());
  auto* out = static_cast<T*>(y.mutable_data());
  for (std::int64_t i = 0; i < x.size(); ++i) {
    bool missing = in[i] == replaced;
    if constexpr (std::is_floating_point_v<T>) missing = missing || (std::isnan(in[i]) && std::isnan(replaced));
    out[i] = missing ? per_feature(imputed, i % width) : in[i];
  }
}

void run_imputer(OpContext& c) {
  const auto attr = parse<ImputerAttrs>(c);
  const FloatList floats = attr.imputed_value_floats;
  const IntList ints = attr.imputed_value_int64s;
  const float replaced = attr.replaced_value_float;
  const std::int64_t replaced_int = attr.replaced_value_int64;
  switch (c.input(0).dtype()) {
    case DataType::float32: return impute<float>(c, floats, replaced);
    case DataType::float64:
      return impute<double>(c, std::vector<double>(floats.begin(), floats.end()), static_cast<double>(replaced));
    case DataType::int64: return impute<std::int64_t>(c, ints, replaced_int);
    default: {
      std::vector<std::int32_t> narrow;
      for (const std::int64_t v : ints) narrow.push_back(static_cast<std::int32_t>(v));
      return impute<std::int32_t>(c, narrow, static_cast<std::int32_t>(replaced_int));
    }
  }
}

}  // namespace

void register_ml_scaling(OpTable& t) {
  t.add(OpDef(kMlDomain, "Scaler", 1)
            .in("X", "T", kMlNumbers)
            .out("Y", "", bit(DataType::float32))
            .attrs<ScalerAttrs>()
            .infer_with(infer_float)
            .run_with(run_scaler));
  t.add(OpDef(kMlDomain, "Normalizer", 1)
            .in("X", "T", kMlNumbers)
            .out("Y", "", bit(DataType::float32))
            .attrs<NormalizerAttrs>()
            .infer_with(infer_float)
            .run_with(run_normalizer));
  t.add(OpDef(kMlDomain, "Binarizer", 1)
            .in("X", "T", kMlNumbers)
            .out("Y", "T", kMlNumbers)
            .attrs<BinarizerAttrs>()
            .infer_with(infer_same)
            .run_with(run_binarizer));
  t.add(OpDef(kMlDomain, "Imputer", 1)
            .in("X", "T", kMlNumbers)
            .out("Y", "T", kMlNumbers)
            .attrs<ImputerAttrs>()
            .infer_with(infer_same)
            .run_with(run_imputer));
}

}  // namespace sdx::ops
