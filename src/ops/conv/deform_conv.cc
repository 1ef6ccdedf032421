// DeformConv: ai.onnx 19, 22 (bfloat16). Two spatial axes: bilinear sampling is defined for them.

#include <cmath>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/conv/conv_geometry.h"
#include "ops/conv/signatures.h"
#include "ops/math/float_view.h"
#include "ops/matrix/gemm_reference.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

void infer_deform(InferContext& c) {
  const SymShape* x = c.shape(0);
  const SymShape* w = c.shape(1);
  if (x == nullptr) return c.output(0, c.dtype(0));
  if (x->size() != 4) c.fail("X must have rank 4 ([N, C, H, W]), received shape {}", to_string(*x));
  c.output(0, c.dtype(0), conv_output_shape(c.attrs(), *x, w != nullptr ? *w : SymShape(4)));
}

// Value at a fractional position; positions outside the plane count as 0.
template <class C>
C sample(const C* plane, std::int64_t height, std::int64_t width, C y, C x) {
  if (!(y > C(-1) && y < static_cast<C>(height) && x > C(-1) && x < static_cast<C>(width))) return C(0);
  const C fy = std::floor(y);
  const C fx = std::floor(x);
  const auto y0 = static_cast<std::int64_t>(fy);
  const auto x0 = static_cast<std::int64_t>(fx);
  const C dy = y - fy;
  const C dx = x - fx;
  const auto at = [&](std::int64_t i, std::int64_t j) {
    return i >= 0 && i < height && j >= 0 && j < width ? plane[i * width + j] : C(0);
  };
  return (C(1) - dy) * ((C(1) - dx) * at(y0, x0) + dx * at(y0, x0 + 1)) +
         dy * ((C(1) - dx) * at(y0 + 1, x0) + dx * at(y0 + 1, x0 + 1));
}

template <class C>
struct DeformData {
  const ConvGeometry& g;
  std::int64_t offset_groups;
  const C* x;
  const C* offset;  // [N, offset_groups * taps * 2, out...]: per tap the y and the x shift
  const C* mask;    // [N, offset_groups * taps, out...] or null
};

// One row of the gathered matrix: the values that tap t reads in `channel` for the output positions of output row `row`.
template <class C>
void gather_row(const DeformData<C>& d, std::int64_t image, std::int64_t channel, std::int64_t t, std::int64_t row, C* out) {
  const WindowAxis& ay = d.g.axes[0];
  const WindowAxis& ax = d.g.axes[1];
  const std::int64_t plane = d.g.out_plane();
  const std::int64_t taps = d.g.kernel_taps();
  const std::int64_t group = channel / (d.g.in_channels / d.offset_groups);
  const C* shift = d.offset + ((image * d.offset_groups + group) * taps + t) * 2 * plane + row * ax.out;
  const C* mask = d.mask == nullptr ? nullptr : d.mask + ((image * d.offset_groups + group) * taps + t) * plane + row * ax.out;
  const C* from = d.x + (image * d.g.in_channels + channel) * d.g.in_plane();
  const std::int64_t tap_row = t / ax.kernel;
  const C y = static_cast<C>(ay.start(row) + tap_row * ay.dilation);
  for (std::int64_t o = 0; o < ax.out; ++o) {
    const C x = static_cast<C>(ax.start(o) + t % ax.kernel * ax.dilation);
    const C v = sample(from, ay.in, ax.in, y + shift[o], x + shift[plane + o]);
    out[o] = mask == nullptr ? v : v * mask[o];
  }
}

template <class C>
void convolve(OpContext& c, const DeformData<C>& d, const C* w, const C* bias, C* y) {
  const ConvGeometry& g = d.g;
  const std::int64_t taps = g.kernel_taps();
  const std::int64_t channels = g.in_channels_per_group();
  const std::int64_t m = g.out_channels_per_group();
  const std::int64_t width = g.axes[1].out;
  const std::int64_t rows = g.axes[0].out;
  const std::int64_t depth = channels * taps;
  parallel_for(g.batch * g.groups * rows, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<C> col(static_cast<std::size_t>(depth * width));
    for (std::int64_t job = begin; job < end; ++job) {
      c.stop().check();
      const std::int64_t row = job % rows;
      const std::int64_t group = job / rows % g.groups;
      const std::int64_t image = job / rows / g.groups;
      for (std::int64_t k = 0; k < depth; ++k) {
        gather_row(d, image, group * channels + k / taps, k % taps, row, col.data() + k * width);
      }
      C* out = y + (image * g.out_channels + group * m) * rows * width + row * width;
      gemm_serial(GemmArgs<C>{m, width, depth, w + group * m * depth, depth, 1, col.data(), width, out, rows * width});
      if (bias == nullptr) continue;
      for (std::int64_t r = 0; r < m; ++r) {
        for (std::int64_t o = 0; o < width; ++o) out[r * rows * width + o] += bias[group * m + r];
      }
    }
  });
}

void check_shape(const Tensor* t, const Shape& expected, const char* name) {
  if (t == nullptr || t->shape() == expected) return;
  fail(ErrorCode::runtime_failure, "'{}' must have shape {}, received {}", name, to_string(expected), to_string(t->shape()));
}

void run_deform(OpContext& c) {
  const Tensor& x = c.input(0);
  const Tensor& w = c.input(1);
  const Tensor& offset = c.input(2);
  const Tensor* bias = c.optional_input(3);
  const Tensor* mask = c.optional_input(4);
  if (x.rank() != 4) c.fail("X must have rank 4 ([N, C, H, W]), received shape {}", to_string(x.shape()));
  const ConvGeometry g = conv_geometry(c.attrs(), x.shape(), w.shape());
  const std::int64_t groups = parse<ConvAttrs>(c).offset_group;
  if (groups < 1 || g.in_channels % groups != 0) {
    c.fail("attribute 'offset_group' is {}; it must be positive and divide the {} channels", groups, g.in_channels);
  }
  const auto masks = checked_mul(groups, g.kernel_taps());
  if (!masks || *masks > (std::int64_t{1} << 60)) c.fail("offset_group {} is too large", groups);
  const std::int64_t oh = g.axes[0].out;
  const std::int64_t ow = g.axes[1].out;
  check_shape(&offset, {g.batch, *masks * 2, oh, ow}, "offset");
  check_shape(mask, {g.batch, *masks, oh, ow}, "mask");
  check_shape(bias, {g.out_channels}, "B");
  Tensor& y = c.output(0, x.dtype(), g.output_shape());
  if (y.size() == 0) return;
  dispatch_compute(x.dtype(), "DeformConv", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> fx(x), fw(w), fo(offset), fb(bias), fm(mask);
    FloatOutput<C> fy(y);
    convolve(c, DeformData<C>{g, groups, fx.data(), fo.data(), fm.data()}, fw.data(), fb.data(), fy.data());
    fy.store();
  });
}

}  // namespace

void register_deform_conv(OpTable& t) {
  t.add(OpDef("DeformConv", 19)
            .in("X W offset", "T", types::floats)
            .in("B mask", "T", types::floats, Arity::optional)
            .out("Y", "T", types::floats)
            .attrs<ConvAttrs>()
            .infer_with(infer_deform)
            .run_with(run_deform));
}

}  // namespace sdx::ops
