// com.microsoft LayerNormalizationGrad, SimplifiedLayerNormalizationGrad, InvertibleLayerNormalizationGrad. With n the
// normalised input, r the inverse deviation and g = dY * scale: dX = r * (g - mean(g) - n * mean(g * n)), the simplified one
// without mean(g); d scale = sum of dY * n, d bias = sum of dY over the rows. The invertible one takes n from Y.

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/math/elementwise.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/training/ort/signatures.h"

namespace sdx::ops {
namespace {

using enum LayerNormGradIn::Slot;

enum class Kind { plain, simplified, invertible };

constexpr std::size_t kBias = kMean;  // of the invertible one, in place of the mean

void infer_norm_grad(InferContext& c) {
  const DataType elem = c.dtype(kX) != DataType::undefined ? c.dtype(kX) : c.dtype(kDy);
  const SymShape* x = c.shape(kX) != nullptr ? c.shape(kX) : c.shape(kDy);
  if (x != nullptr) normalize_axis(parse<NormGradAttrs>(c).axis, x->size());
  if (x != nullptr) c.output(0, elem, *x);
  if (x == nullptr) c.output(0, elem);
  for (std::size_t i = 1; i < c.num_outputs(); ++i) {
    if (c.shape(kScale) != nullptr) {
      c.output(i, c.dtype(kScale), *c.shape(kScale));
    } else {
      c.output(i, c.dtype(kScale));
    }
  }
}

struct Rows {
  std::int64_t count, length;
};

Rows check_inputs(OpContext& c, Kind kind) {
  const Tensor &g = c.input(kDy), &x = c.input(kX);
  if (g.shape() != x.shape()) c.fail("inputs 0 and 1 must have one shape; received {}, {}", g.type_string(), x.type_string());
  const auto axis = static_cast<std::size_t>(normalize_axis(parse<NormGradAttrs>(c).axis, x.rank()));
  const Rows rows{product(x.shape(), 0, axis), product(x.shape(), axis, x.rank())};
  const auto expect = [&](std::size_t input, std::int64_t size) {
    if (c.input(input).size() != size) {
      c.fail("input {} must have {} elements for {}, received {}", input, size, x.type_string(), c.input(input).type_string());
    }
  };
  expect(kScale, rows.length);
  if (kind == Kind::invertible) expect(kBias, rows.length);
  if (kind == Kind::plain) expect(kMean, rows.count);
  expect(kind == Kind::simplified ? kSimplifiedInverse : kInverse, rows.count);
  return rows;
}

// n of one row.
template <class C>
struct Normalised {
  Kind kind;
  FloatInput<C> x, scale, mean_or_bias, inverse;
  std::int64_t length;

  Normalised(OpContext& c, Kind k, std::int64_t n)
      : kind(k),
        x(c.input(kX)),
        scale(c.input(kScale)),
        mean_or_bias(k == Kind::simplified ? nullptr : &c.input(kMean)),
        inverse(c.input(k == Kind::simplified ? kSimplifiedInverse : kInverse)),
        length(n) {}

  double operator()(std::int64_t row, std::int64_t i) const {
    const auto v = static_cast<double>(x[row * length + i]);
    if (kind == Kind::invertible) return (v - static_cast<double>(mean_or_bias[i])) / static_cast<double>(scale[i]);
    const double centred = kind == Kind::plain ? v - static_cast<double>(mean_or_bias[row]) : v;
    return centred * static_cast<double>(inverse[row]);
  }
};

template <class C>
void input_gradient(const Normalised<C>& n, const C* dy, std::int64_t row, C* dx) {
  double sum = 0, along = 0;
  const auto g = [&](std::int64_t i) { return static_cast<double>(dy[i]) * static_cast<double>(n.scale[i]); };
  for (std::int64_t i = 0; i < n.length; ++i) {
    sum += g(i);
    along += g(i) * n(row, i);
  }
  const auto count = static_cast<double>(n.length);
  const double mean = n.kind == Kind::simplified ? 0 : sum / count;
  for (std::int64_t i = 0; i < n.length; ++i) {
    dx[i] = static_cast<C>(static_cast<double>(n.inverse[row]) * (g(i) - mean - n(row, i) * along / count));
  }
}

template <Kind kind>
void run_norm_grad(OpContext& c) {
  const Rows rows = check_inputs(c, kind);
  const Tensor &x = c.input(kX), &scale = c.input(kScale);
  Tensor& dx = c.output(0, x.dtype(), x.shape());
  Tensor* parameters[2] = {};
  for (std::size_t i = 0; i < 2; ++i) {
    if (c.wants_output(i + 1)) parameters[i] = &c.output(i + 1, scale.dtype(), scale.shape());
  }
  dispatch_compute(x.dtype(), c.node().op_type, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const Normalised<C> n(c, kind, rows.length);
    const FloatInput<C> dy(c.input(kDy));
    FloatOutput<C> out(dx);
    parallel_for(rows.count, 1 + kElementGrain / (rows.length + 1), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        input_gradient(n, dy.data() + r * rows.length, r, out.data() + r * rows.length);
      }
    });
    out.store();
    std::vector<double> sums[2];
    for (auto& s : sums) s.resize(static_cast<std::size_t>(rows.length));
    for (std::int64_t r = 0; r < rows.count; ++r) {
      for (std::int64_t i = 0; i < rows.length; ++i) {
        const auto g = static_cast<double>(dy[r * rows.length + i]);
        sums[0][static_cast<std::size_t>(i)] += g * n(r, i);
        sums[1][static_cast<std::size_t>(i)] += g;
      }
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (parameters[i] != nullptr) store_floats(sums[i].data(), *parameters[i]);
    }
  });
}

void add(OpTable& t, const char* name, Kind kind, RunFn run) {
  const TypeSet f = types::floats;
  OpDef d("com.microsoft", name, 1);
  d.in("Y_grad", "V", f);
  if (kind == Kind::invertible) {
    d.in("Y scale bias", "V", f);
  } else {
    d.in("X", "T", f).in("scale", "V", f);
  }
  if (kind == Kind::plain) d.in("mean", "U", f);
  d.in("inv_std_dev", "U", f);
  d.out("X_grad", kind == Kind::invertible ? "V" : "T", f).out("scale_grad", "V", f, Arity::optional);
  if (kind != Kind::simplified) d.out("bias_grad", "V", f, Arity::optional);
  t.add(std::move(d.attrs<NormGradAttrs>()).infer_with(infer_norm_grad).run_with(run));
}

}  // namespace

void register_layer_norm_grads(OpTable& t) {
  add(t, "LayerNormalizationGrad", Kind::plain, run_norm_grad<Kind::plain>);
  add(t, "SimplifiedLayerNormalizationGrad", Kind::simplified, run_norm_grad<Kind::simplified>);
  add(t, "InvertibleLayerNormalizationGrad", Kind::invertible, run_norm_grad<Kind::invertible>);
}

}  // namespace sdx::ops
