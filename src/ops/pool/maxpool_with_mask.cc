// com.microsoft MaxpoolWithMask 1: MaxPool in which a row of a window ends where the mask is 0. The mask's planes are taken in
// turn.

#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/conv/signatures.h"
#include "ops/op.h"
#include "ops/pool/pool_windows.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

void infer_masked(InferContext& c) {
  const SymShape* x = c.shape(0);
  if (x == nullptr) return c.output(0, c.dtype(0));
  c.output(0, c.dtype(0), pool_output_shape(c.attrs(), *x));
}

void run_masked(OpContext& c) {
  const Tensor &x = c.input(0), &mask = c.input(1);
  const std::vector<WindowAxis> axes = pool_axes(c.attrs(), x.shape());
  const Shape shape = pooled_shape(x.shape(), axes);
  Shape expected = x.shape();
  if (mask.rank() == x.rank()) expected[0] = mask.dim(0), expected[1] = mask.dim(1);
  if (mask.shape() != expected)
    c.fail("the mask must have X's spatial extents {}, received {}", to_string(x.shape()), mask.type_string());
  Tensor& y = c.output(0, x.dtype(), shape);
  if (y.size() == 0) return;
  const std::int64_t in_plane = product(x.shape(), 2, x.rank()), out_plane = product(shape, 2, shape.size());
  const std::int64_t masks = mask.dim(0) * mask.dim(1);
  if (masks < 1) c.fail("the mask {} has no planes", mask.type_string());
  auto* out = static_cast<float*>(y.mutable_data());
  const bool flat = axes.size() == 1;
  parallel_for(shape[0] * shape[1], 1 + 4096 / out_plane, [&](std::int64_t begin, std::int64_t end) {
    PoolWalker walker(axes);
    for (std::int64_t p = begin; p < end; ++p) {
      c.stop().check();
      const float* in = c.data<float>(0) + p * in_plane;
      const std::int32_t* keep = c.data<std::int32_t>(1) + p % masks * in_plane;
      walker.for_each_output([&](std::int64_t o) {
        float best = std::numeric_limits<float>::lowest();
        walker.for_each_run([&](std::int64_t first, std::int64_t step, std::int64_t n) {
          for (std::int64_t i = first; i < first + n * step; i += step) {
            if (keep[i] == 0 && (flat || i > 0)) break;  // with several axes the first element always counts
            best = std::max(best, in[i]);
          }
        });
        out[p * out_plane + o] = best;
      });
    }
  });
}

}  // namespace

void register_maxpool_with_mask(OpTable& t) {
  OpDef d("com.microsoft", "MaxpoolWithMask", 1);
  d.in("X", "T", bit(DataType::float32)).in("M", "", bit(DataType::int32)).out("Y", "T", bit(DataType::float32));
  d.attrs<PoolAttrs>();
  t.add(std::move(d).infer_with(infer_masked).run_with(run_masked));
}

}  // namespace sdx::ops
