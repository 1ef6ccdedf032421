// MaxPool: ai.onnx 1, 8 (indices), 10 (dilations, ceil_mode), 11, 12 (int8, uint8), 22 (bfloat16).
// A window that lies wholly in the padding gives the lowest value of the type and index -1.

#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/conv/signatures.h"
#include "ops/op.h"
#include "ops/pool/pool_windows.h"
#include "ops/tensor/axes.h"
#include "tensor/dispatch.h"

namespace sdx::ops {
namespace {

using PoolTypes = TypeList<float, double, Float16, BFloat16, std::int8_t, std::uint8_t>;
constexpr TypeSet kTypes = types::floats | set_of(DataType::int8, DataType::uint8);

void infer_max_pool(InferContext& c) {
  const SymShape* x = c.shape(0);
  if (x == nullptr) {
    c.output(0, c.dtype(0));
    return c.output(1, DataType::int64);
  }
  const SymShape out = pool_output_shape(c.attrs(), *x);
  c.output(0, c.dtype(0), out);
  c.output(1, DataType::int64, out);
}

template <class T>
T lowest() {
  if constexpr (std::is_integral_v<T>) {
    return std::numeric_limits<T>::lowest();
  } else {
    return -std::numeric_limits<T>::infinity();
  }
}

// The index within the plane as if the plane were stored column by column (storage_order 1).
std::int64_t column_major(const std::vector<WindowAxis>& axes, std::int64_t flat) {
  std::int64_t out = 0;
  std::int64_t stride = 1;
  std::vector<std::int64_t> at(axes.size());
  for (std::size_t d = axes.size(); d-- > 0;) {
    at[d] = flat % axes[d].in;
    flat /= axes[d].in;
  }
  for (std::size_t d = 0; d < axes.size(); ++d) {
    out += at[d] * stride;
    stride *= axes[d].in;
  }
  return out;
}

template <class T>
void pool_plane(PoolWalker& walker, const T* in, T* out, std::int64_t* indices) {
  using C = ComputeType<T>;
  walker.for_each_output([&](std::int64_t o) {
    C best = lowest<C>();
    std::int64_t where = -1;
    walker.for_each_run([&](std::int64_t first, std::int64_t step, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) {
        const C v = static_cast<C>(in[first + i * step]);
        if (v > best || where < 0 || v != v) {
          best = v;
          where = first + i * step;
        }
      }
    });
    out[o] = where < 0 ? T(best) : in[where];
    if (indices != nullptr) indices[o] = where;
  });
}

void run_max_pool(OpContext& c) {
  const Tensor& x = c.input(0);
  const std::vector<WindowAxis> axes = pool_axes(c.attrs(), x.shape());
  const Shape shape = pooled_shape(x.shape(), axes);
  Tensor& y = c.output(0, x.dtype(), shape);
  std::int64_t* indices = c.wants_output(1) ? c.output(1, DataType::int64, shape).mutable_values<std::int64_t>().data() : nullptr;
  const bool by_column = parse<PoolAttrs>(c).storage_order;
  const std::int64_t in_plane = product(x.shape(), 2, x.rank());
  const std::int64_t out_plane = product(shape, 2, shape.size());
  if (y.size() == 0) return;
  dispatch(x.dtype(), PoolTypes{}, "MaxPool", [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(shape[0] * shape[1], 1 + 4096 / out_plane, [&](std::int64_t begin, std::int64_t end) {
      PoolWalker walker(axes);
      for (std::int64_t p = begin; p < end; ++p) {
        c.stop().check();
        std::int64_t* to = indices == nullptr ? nullptr : indices + p * out_plane;
        pool_plane(walker, c.data<T>(0) + p * in_plane, static_cast<T*>(y.mutable_data()) + p * out_plane, to);
        if (to == nullptr) continue;
        for (std::int64_t o = 0; o < out_plane; ++o) {
          if (to[o] >= 0) to[o] = p * in_plane + (by_column ? column_major(axes, to[o]) : to[o]);
        }
      }
    });
  });
}

}  // namespace

void register_max_pool(OpTable& t) {
  for (const int since : {1, 8}) {
    OpDef def("MaxPool", since);
    def.in("X", "T", kTypes).out("Y", "T", kTypes);
    def.attrs<PoolAttrs>();
    if (since == 8) def.out("Indices", "", types::int64, Arity::optional);
    t.add(std::move(def).infer_with(infer_max_pool).run_with(run_max_pool));
  }
}

}  // namespace sdx::ops
