// com.microsoft CDist 1: distances between the rows of two matrices, as converted nearest-neighbour models hold.

#include <cmath>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/matrix/signatures.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

// Whether the root is taken. The metrics are those that ONNX Runtime computes.
bool takes_root(const CDistAttrs& attr) {
  const std::string_view metric = attr.metric;
  if (metric == "sqeuclidean" || metric == "euclidean") return metric == "euclidean";
  fail(ErrorCode::not_implemented, "'metric' {} is not supported; expected euclidean or sqeuclidean", metric);
}

void infer_cdist(InferContext& c) {
  takes_root(parse<CDistAttrs>(c));
  const SymShape* a = c.shape(0);
  const SymShape* b = c.shape(1);
  for (const SymShape* s : {a, b}) {
    if (s != nullptr && s->size() != 2) c.fail("expected matrices, received {}", to_string(*s));
  }
  c.output(0, c.dtype(0), SymShape{a != nullptr ? (*a)[0] : Dim(), b != nullptr ? (*b)[0] : Dim()});
}

void run_cdist(OpContext& c) {
  const Tensor& a = c.input(0);
  const Tensor& b = c.input(1);
  if (a.rank() != 2 || b.rank() != 2 || a.dim(1) != b.dim(1)) {
    c.fail("expected matrices with rows of one length, received {} and {}", a.type_string(), b.type_string());
  }
  const bool root = takes_root(parse<CDistAttrs>(c));
  const std::int64_t columns = b.dim(0), width = a.dim(1);
  Tensor& out = c.output(0, a.dtype(), {a.dim(0), columns});
  dispatch_compute(a.dtype(), "CDist", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> x(a), y(b);
    FloatOutput<C> z(out);
    parallel_for(a.dim(0), 16, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        c.stop().check();
        for (std::int64_t j = 0; j < columns; ++j) {
          double sum = 0;
          for (std::int64_t k = 0; k < width; ++k) {
            const double d = static_cast<double>(x[i * width + k]) - static_cast<double>(y[j * width + k]);
            sum += d * d;
          }
          z[i * columns + j] = static_cast<C>(root ? std::sqrt(sum) : sum);
        }
      }
    });
    z.store();
  });
}

}  // namespace

void register_cdist(OpTable& t) {
  t.add(OpDef("com.microsoft", "CDist", 1)
            .in("A B", "T", set_of(DataType::float32, DataType::float64))
            .out("C", "T", set_of(DataType::float32, DataType::float64))
            .attrs<CDistAttrs>()
            .infer_with(infer_cdist)
            .run_with(run_cdist));
}

}  // namespace sdx::ops
