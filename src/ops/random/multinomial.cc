// Multinomial: ai.onnx 7, 22. Rows of unnormalised log-probabilities; samples class numbers with replacement.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/math/elementwise.h"
#include "ops/op.h"
#include "ops/random/random_stream.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct MultinomialAttrs {
  std::int64_t dtype = static_cast<std::int64_t>(DataType::int32);
  std::int64_t sample_size = 1;

  void fields(auto& f) {
    f("dtype", dtype);
    f("sample_size", sample_size);
    f.unread("seed", AttrKind::f);
  }
};

DataType sample_type(const MultinomialAttrs& attr) {
  const std::int64_t number = attr.dtype;
  if (number == static_cast<std::int64_t>(DataType::int32)) return DataType::int32;
  if (number == static_cast<std::int64_t>(DataType::int64)) return DataType::int64;
  fail(ErrorCode::invalid_model, "attribute 'dtype' is {}; permitted: 6 (int32), 7 (int64)", number);
}

std::int64_t sample_count(const MultinomialAttrs& attr) {
  const std::int64_t n = attr.sample_size;
  if (n < 0) fail(ErrorCode::invalid_model, "attribute 'sample_size' is {}; it cannot be negative", n);
  return n;
}

void infer_multinomial(InferContext& c) {
  const auto attr = parse<MultinomialAttrs>(c);
  const SymShape* s = c.shape(0);
  if (s != nullptr && s->size() != 2) c.fail("expected [batch, classes], received {}", to_string(*s));
  c.output(0, sample_type(attr), SymShape{s != nullptr ? (*s)[0] : Dim::unknown(), Dim(sample_count(attr))});
}

// Running totals of exp(x - max): nothing overflows, and the largest class weighs 1.
template <class T>
std::vector<double> totals(const T* x, std::int64_t classes) {
  std::vector<double> sums(static_cast<std::size_t>(classes));
  double top = -std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < classes; ++i) top = std::max(top, static_cast<double>(static_cast<ComputeType<T>>(x[i])));
  double sum = 0;
  for (std::int64_t i = 0; i < classes; ++i) {
    const double weight = std::exp(static_cast<double>(static_cast<ComputeType<T>>(x[i])) - top);
    if (weight > 0) sum += weight;
    sums[static_cast<std::size_t>(i)] = sum;
  }
  return sums;
}

void run_multinomial(OpContext& c) {
  const auto attr = parse<MultinomialAttrs>(c);
  const Tensor& in = c.input(0);
  if (in.rank() != 2) c.fail("expected [batch, classes], received {}", in.type_string());
  const std::int64_t batch = in.dim(0);
  const std::int64_t classes = in.dim(1);
  const std::int64_t samples = sample_count(attr);
  Tensor& out = c.output(0, sample_type(attr), {batch, samples});
  if (out.size() == 0) return;
  if (classes == 0) c.fail("there are no classes to choose from: the input is {}", in.type_string());
  const RandomStream random(c.seed());
  dispatch(in.dtype(), FloatTypes{}, "Multinomial", [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::int64_t b = 0; b < batch; ++b) {
      c.stop().check();
      const std::vector<double> sums = totals(static_cast<const T*>(in.data()) + b * classes, classes);
      for (std::int64_t s = 0; s < samples; ++s) {
        const std::int64_t at = b * samples + s;
        const auto it = std::upper_bound(sums.begin(), sums.end(), random.uniform(at) * sums.back());
        const std::int64_t chosen = std::min<std::int64_t>(it - sums.begin(), classes - 1);
        if (out.dtype() == DataType::int64) {
          static_cast<std::int64_t*>(out.mutable_data())[at] = chosen;
        } else {
          static_cast<std::int32_t*>(out.mutable_data())[at] = static_cast<std::int32_t>(chosen);
        }
      }
    }
  });
}

}  // namespace

void register_multinomial(OpTable& t) {
  t.add(OpDef("Multinomial", 7)
            .in("input", "T1", types::floats)
            .out("output", "T2", types::indices)
            .attrs<MultinomialAttrs>()
            .infer_with(infer_multinomial)
            .run_with(run_multinomial)
            .random());
}

}  // namespace sdx::ops
