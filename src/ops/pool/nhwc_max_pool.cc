// NhwcMaxPool: com.microsoft 1: MaxPool over [N, spatial..., C].

#include <limits>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/conv/signatures.h"
#include "ops/op.h"
#include "ops/pool/pool_windows.h"
#include "tensor/dispatch.h"

namespace sdx::ops {
namespace {

using PoolTypes = TypeList<std::int8_t, std::uint8_t, float, Float16>;
constexpr TypeSet kTypes = set_of(DataType::int8, DataType::uint8, DataType::float32, DataType::float16);

// [N, spatial..., C] as [N, C, spatial...].
template <class S>
S channels_first(const S& x) {
  if (x.size() < 3) fail(ErrorCode::invalid_model, "x must have rank 3 or more ([N, spatial..., C]), received {}", to_string(x));
  S out{x.front(), x.back()};
  out.insert(out.end(), x.begin() + 1, x.end() - 1);
  return out;
}

template <class S>
S channels_last(const S& x) {
  S out{x[0]};
  out.insert(out.end(), x.begin() + 2, x.end());
  out.push_back(x[1]);
  return out;
}

void infer_nhwc(InferContext& c) {
  const SymShape* x = c.shape(0);
  if (x == nullptr) return c.output(0, c.dtype(0));
  c.output(0, c.dtype(0), channels_last(pool_output_shape(c.attrs(), channels_first(*x))));
}

void run_nhwc(OpContext& c) {
  const Tensor& x = c.input(0);
  const Shape first = channels_first(x.shape());
  const std::vector<WindowAxis> axes = pool_axes(c.attrs(), first);
  Tensor& y = c.output(0, x.dtype(), channels_last(pooled_shape(first, axes)));
  if (y.size() == 0) return;
  const std::int64_t channels = first[1];
  const std::int64_t in_image = x.size() / first[0];
  const std::int64_t out_image = y.size() / first[0];
  dispatch(x.dtype(), PoolTypes{}, "NhwcMaxPool", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeType<T>;
    constexpr C kLowest = std::is_integral_v<C> ? std::numeric_limits<C>::lowest() : -std::numeric_limits<C>::infinity();
    parallel_for(first[0], 1, [&](std::int64_t begin, std::int64_t end) {
      PoolWalker walker(axes);
      std::vector<C> best(static_cast<std::size_t>(channels));
      for (std::int64_t n = begin; n < end; ++n) {
        c.stop().check();
        const T* in = c.data<T>(0) + n * in_image;
        T* out = static_cast<T*>(y.mutable_data()) + n * out_image;
        walker.for_each_output([&](std::int64_t o) {
          std::fill(best.begin(), best.end(), kLowest);
          walker.for_each_run([&](std::int64_t at, std::int64_t step, std::int64_t count) {
            for (std::int64_t i = 0; i < count; ++i) {
              const T* from = in + (at + i * step) * channels;
              for (std::int64_t k = 0; k < channels; ++k) {
                const C v = static_cast<C>(from[k]);
                C& b = best[static_cast<std::size_t>(k)];
                if (v > b || v != v) b = v;
              }
            }
          });
          for (std::int64_t k = 0; k < channels; ++k) out[o * channels + k] = T(best[static_cast<std::size_t>(k)]);
        });
      }
    });
  });
}

}  // namespace

void register_nhwc_max_pool(OpTable& t) {
  t.add(OpDef("com.microsoft", "NhwcMaxPool", 1)
            .in("x", "T", kTypes)
            .out("y", "T", kTypes)
            .attrs<PoolAttrs>()
            .infer_with(infer_nhwc)
            .run_with(run_nhwc));
}

}  // namespace sdx::ops
