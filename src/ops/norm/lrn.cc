// LRN: ai.onnx 1, 13 (bfloat16): across channels.

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/norm/signatures.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

LrnAttrs checked_attrs(const Node& node) {
  const auto a = parse<LrnAttrs>(node);
  if (a.size < 1) fail(ErrorCode::invalid_model, "attribute 'size' is {}; it must be positive", a.size);
  return a;
}

void infer_lrn(InferContext& c) {
  checked_attrs(c.node());
  const SymShape* x = c.shape(0);
  if (x == nullptr) return c.output(0, c.dtype(0));
  if (x->size() < 2) c.fail("X must have rank 2 or more ([N, C, ...]), received shape {}", to_string(*x));
  c.output(0, c.dtype(0), *x);
}

// One channel of one image; x and y point at the image.
template <class C>
void normalize_channel(const LrnAttrs& a, const C* x, C* y, std::int64_t channel, std::int64_t channels, std::int64_t inner,
                       std::vector<C>& sums) {
  // Source: ONNX LRN-13: floor((size-1)/2) channels before, ceil((size-1)/2) after.
  const std::int64_t first = std::max<std::int64_t>(0, channel - (a.size - 1) / 2);
  const std::int64_t last = channels - 1 - channel < a.size / 2 ? channels - 1 : channel + a.size / 2;
  std::fill(sums.begin(), sums.end(), C(0));
  for (std::int64_t k = first; k <= last; ++k) {
    const C* row = x + k * inner;
    for (std::int64_t i = 0; i < inner; ++i) sums[static_cast<std::size_t>(i)] += row[i] * row[i];
  }
  const C factor = static_cast<C>(static_cast<double>(a.alpha) / static_cast<double>(a.size));
  const C bias = static_cast<C>(static_cast<double>(a.bias));
  const C beta = static_cast<C>(-static_cast<double>(a.beta));
  const C* in = x + channel * inner;
  C* out = y + channel * inner;
  for (std::int64_t i = 0; i < inner; ++i) out[i] = in[i] * std::pow(bias + factor * sums[static_cast<std::size_t>(i)], beta);
}

void run_lrn(OpContext& c) {
  const Tensor& x = c.input(0);
  const LrnAttrs a = checked_attrs(c.node());
  if (x.rank() < 2) c.fail("X must have rank 2 or more ([N, C, ...]), received shape {}", to_string(x.shape()));
  Tensor& y = c.output(0, x.dtype(), x.shape());
  const std::int64_t channels = x.dim(1);
  const std::int64_t inner = product(x.shape(), 2, x.rank());
  if (y.size() == 0) return;
  dispatch_compute(x.dtype(), "LRN", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> in(x);
    FloatOutput<C> out(y);
    parallel_for(x.dim(0) * channels, 1 + 4096 / inner, [&](std::int64_t begin, std::int64_t end) {
      std::vector<C> sums(static_cast<std::size_t>(inner));
      for (std::int64_t p = begin; p < end; ++p) {
        c.stop().check();
        const std::int64_t image = p / channels * channels * inner;
        normalize_channel(a, in.data() + image, out.data() + image, p % channels, channels, inner, sums);
      }
    });
    out.store();
  });
}

}  // namespace

void register_lrn(OpTable& t) {
  t.add(OpDef("LRN", 1)
            .in("X", "T", types::floats)
            .out("Y", "T", types::floats)
            .attrs<LrnAttrs>()
            .infer_with(infer_lrn)
            .run_with(run_lrn));
}

}  // namespace sdx::ops
