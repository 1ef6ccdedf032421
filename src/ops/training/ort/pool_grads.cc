// MaxPoolGrad, AveragePoolGrad: ai.onnx 9, by ONNX Runtime. Neither has an input that says how large the pooled tensor was: see
// ops/training/ort/signatures.h.

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/pool/pool_windows.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"
#include "ops/training/ort/signatures.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

constexpr const char* kUnknown =
    "the extents of its result are not known: the file has neither the pooling that this is the gradient of, nor annotates the "
    "result with a shape";

template <class Attrs>
void infer_pool_grad(InferContext& c, std::size_t shape) {
  const SymShape* dy = c.shape(0);
  const auto* given = c.sym(shape);
  const auto attribute = parse<Attrs>(c).input_shape;
  if (given != nullptr) return c.output(0, c.dtype(0), *given);
  if (dy == nullptr) return c.output(0, c.dtype(0));
  SymShape out(dy->size());
  if (attribute) {
    if (attribute->size() != dy->size())
      c.fail("'input_shape' has {} extents for a gradient of rank {}", attribute->size(), dy->size());
    for (std::size_t i = 2; i < out.size(); ++i) out[i] = Dim((*attribute)[i]);
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(2, out.size()); ++i) out[i] = (*dy)[i];
  c.output(0, c.dtype(0), std::move(out));
}

template <class Attrs>
Shape result_shape(OpContext& c, std::size_t shape) {
  const Shape& dy = c.input(0).shape();
  if (dy.size() < 3) c.fail("dY must have rank 3 or more ([N, C, ...]), received {}", c.input(0).type_string());
  Shape out;
  if (const Tensor* given = c.optional_input(shape)) {
    out = to_ints(*given);
  } else if (const auto attribute = parse<Attrs>(c).input_shape) {
    out = to_vector(*attribute);
    if (out.size() >= 2) std::copy_n(dy.begin(), 2, out.begin());
  } else {
    c.fail("{}", kUnknown);
  }
  const bool fits = out.size() == dy.size() && out[0] == dy[0] && out[1] == dy[1];
  if (!fits) c.fail("the result's shape {} does not fit dY {}", to_string(out), c.input(0).type_string());
  for (const std::int64_t e : out) {
    if (e < 0) c.fail("the result's shape {} has a negative extent", to_string(out));
  }
  return out;
}

void infer_max(InferContext& c) { infer_pool_grad<MaxPoolGradAttrs>(c, MaxPoolGradIn::kShape); }
void infer_average(InferContext& c) { infer_pool_grad<AveragePoolGradAttrs>(c, AveragePoolGradIn::kShape); }

// Indices count through the whole tensor; -1 is a window that saw nothing.
void run_max(OpContext& c) {
  const Tensor &g = c.input(MaxPoolGradIn::kDy), &indices = c.input(MaxPoolGradIn::kIndices);
  if (indices.shape() != g.shape()) c.fail("dY {} and Indices {} must have one shape", g.type_string(), indices.type_string());
  Tensor& out = c.output(0, g.dtype(), result_shape<MaxPoolGradAttrs>(c, MaxPoolGradIn::kShape));
  const auto at = indices.values<std::int64_t>();
  dispatch_compute(g.dtype(), "MaxPoolGrad", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> dy(g);
    FloatOutput<C> dx(out);
    std::fill_n(dx.data(), out.size(), C(0));
    for (std::int64_t i = 0; i < g.size(); ++i) {
      const std::int64_t to = at[static_cast<std::size_t>(i)];
      if (to == -1) continue;
      if (to < 0 || to >= out.size()) c.fail("index {} lies outside a tensor of {} elements", to, out.size());
      dx[to] += dy[i];
    }
    dx.store();
  });
}

void run_average(OpContext& c) {
  const Tensor& g = c.input(AveragePoolGradIn::kDy);
  const Shape shape = result_shape<AveragePoolGradAttrs>(c, AveragePoolGradIn::kShape);
  const std::vector<WindowAxis> axes = pool_axes(c.attrs(), shape);
  if (pooled_shape(shape, axes) != g.shape()) {
    c.fail("averages over {} have shape {}; dY is {}", to_string(shape), to_string(pooled_shape(shape, axes)), g.type_string());
  }
  Tensor& out = c.output(0, g.dtype(), shape);
  const bool with_padding = parse<AveragePoolGradAttrs>(c).count_include_pad;
  const std::int64_t plane = product(shape, 2, shape.size()), pooled = product(g.shape(), 2, g.rank());
  dispatch_compute(g.dtype(), "AveragePoolGrad", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> dy(g);
    FloatOutput<C> dx(out);
    parallel_for(shape[0] * shape[1], 1 + 4096 / (pooled + 1), [&](std::int64_t begin, std::int64_t end) {
      PoolWalker walker(axes);
      for (std::int64_t p = begin; p < end; ++p) {
        c.stop().check();
        C* to = dx.data() + p * plane;
        std::fill_n(to, plane, C(0));
        walker.for_each_output([&](std::int64_t o) {
          const double count = with_padding ? walker.padded_count() : static_cast<double>(walker.inside_count());
          if (count == 0) return;
          const auto share = static_cast<C>(static_cast<double>(dy[p * pooled + o]) / count);
          walker.for_each_run([&](std::int64_t first, std::int64_t step, std::int64_t n) {
            for (std::int64_t i = 0; i < n; ++i) to[first + i * step] += share;
          });
        });
      }
    });
    dx.store();
  });
}

}  // namespace

void register_pool_grads(OpTable& t) {
  t.add(OpDef("MaxPoolGrad", 9)
            .in("dY", "T", types::floats)
            .in("Indices", "I", types::int64)
            .in("input_shape", "", types::int64, Arity::optional)
            .out("dX", "T", types::floats)
            .attrs<MaxPoolGradAttrs>()
            .infer_with(infer_max)
            .run_with(run_max));
  t.add(OpDef("AveragePoolGrad", 9)
            .in("dY", "T", types::floats)
            .in("input_shape", "", types::int64, Arity::optional)
            .out("dX", "T", types::floats)
            .attrs<AveragePoolGradAttrs>()
            .infer_with(infer_average)
            .run_with(run_average));
}

}  // namespace sdx::ops
