// QLinearAveragePool, QLinearGlobalAveragePool: com.microsoft 1. Global averages are taken over exact integer sums; windows
// are averaged in float, as ONNX Runtime does: their quotients are often ties, which decide by a float's last bit.

#include <algorithm>

#include "base/thread_pool.h"
#include "ops/conv/conv_geometry.h"
#include "ops/op.h"
#include "ops/quant/integer_conv.h"
#include "ops/quant/quant_codec.h"
#include "ops/quant/quant_scalar.h"
#include "ops/quant/signatures.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

constexpr TypeSet kBytes = set_of(DataType::int8, DataType::uint8);

// Rounds (sum of `count` quantised values) to y's scale.
struct Average {
  QuantScalar from, to;
  QuantRange range;
  std::uint8_t operator()(std::int64_t sum, std::int64_t count) const {
    const auto centred = static_cast<float>(sum - count * from.zero);
    const float scale = from.scale / (static_cast<float>(count) * to.scale);
    return static_cast<std::uint8_t>(requantize(count == 0 ? 0.0f : centred * scale, to.zero, range));
  }
};

std::int64_t value_at(const std::uint8_t* p, bool is_signed) { return is_signed ? static_cast<std::int8_t>(*p) : *p; }

// --- global ---

void infer_global(InferContext& c) {
  const SymShape* x = c.shape(0);
  if (x == nullptr) return c.output(0, c.dtype(0));
  if (x->size() < 2) c.fail("X must have rank 2 or more, received {}", to_string(*x));
  SymShape out = *x;
  const std::size_t first = parse<QLinearPoolAttrs>(c).channels_last ? 1 : 2;
  for (std::size_t i = first; i < first + x->size() - 2; ++i) out[i] = 1;
  c.output(0, c.dtype(0), std::move(out));
}

void run_global(OpContext& c) {
  const bool last = parse<QLinearPoolAttrs>(c).channels_last;
  if (c.input(0).rank() < 2) c.fail("X must have rank 2 or more, received {}", to_string(c.input(0).shape()));
  const Tensor x = last ? channels_first(c.input(0)) : c.input(0);
  const Average average{quant_scalar(c, 1, 2, x.dtype()), quant_scalar(c, 3, 4, x.dtype()), quant_range(x.dtype())};
  Shape shape(x.rank(), 1);
  shape[0] = x.dim(0);
  shape[1] = x.dim(1);
  Tensor& y = c.output(0, x.dtype(), last ? to_last(shape) : shape);  // the bytes lie alike: every other extent is 1
  const std::int64_t plane = product(x.shape(), 2, x.rank());
  const bool is_signed = x.dtype() == DataType::int8;
  const auto* in = static_cast<const std::uint8_t*>(x.data());
  auto* out = static_cast<std::uint8_t*>(y.mutable_data());
  for (std::int64_t i = 0; i < y.size(); ++i) {
    std::int64_t sum = 0;
    for (std::int64_t p = 0; p < plane; ++p) sum += value_at(in + i * plane + p, is_signed);
    out[i] = average(sum, plane);
  }
}

// --- windows ---

void infer_pool(InferContext& c) {
  const SymShape* x = c.shape(0);
  if (x == nullptr) return c.output(0, c.dtype(0));
  const bool last = parse<QLinearPoolAttrs>(c).channels_last;
  SymShape out = pool_output_shape(c.attrs(), last ? to_first(*x) : *x);
  c.output(0, c.dtype(0), last ? to_last(std::move(out)) : std::move(out));
}

// Sum and number of the values of one window. `at`: output position, row-major.
struct WindowSum {
  const std::vector<WindowAxis>& axes;
  bool is_signed;
  QuantScalar from;
  float sum = 0;
  std::int64_t count = 0;

  void add(const std::uint8_t* plane, std::size_t axis, std::int64_t at, const std::vector<std::int64_t>& out_strides) {
    const WindowAxis& a = axes[axis];
    const std::int64_t o = at / out_strides[axis];
    const IndexRange taps = taps_inside(a, o);
    std::int64_t inner = 1;
    for (std::size_t i = axis + 1; i < axes.size(); ++i) inner *= axes[i].in;
    for (std::int64_t k = taps.begin; k < taps.end; ++k) {
      const std::uint8_t* next = plane + (a.start(o) + k * a.dilation) * inner;
      if (axis + 1 < axes.size()) {
        add(next, axis + 1, at % out_strides[axis], out_strides);
      } else {
        sum += static_cast<float>(value_at(next, is_signed) - from.zero) * from.scale;
        ++count;
      }
    }
  }
};

void run_pool(OpContext& c) {
  const bool last = parse<QLinearPoolAttrs>(c).channels_last;
  const Tensor x = last ? channels_first(c.input(0)) : c.input(0);
  const std::vector<WindowAxis> axes = pool_axes(c.attrs(), x.shape());
  const Average average{quant_scalar(c, 1, 2, x.dtype()), quant_scalar(c, 3, 4, x.dtype()), quant_range(x.dtype())};
  Shape shape{x.dim(0), x.dim(1)};
  Shape spatial;
  std::int64_t window = 1;
  for (const WindowAxis& a : axes) {
    shape.push_back(a.out);
    spatial.push_back(a.out);
    window = checked_mul(window, a.kernel).value_or(std::int64_t{1} << 62);
  }
  Tensor& y = c.output(0, x.dtype(), last ? to_last(shape) : shape);
  if (y.size() == 0) return;
  const bool with_padding = parse<QLinearPoolAttrs>(c).pool.count_include_pad;
  std::vector<std::uint8_t> first(last ? static_cast<std::size_t>(y.size()) : 0);
  std::uint8_t* out = last ? first.data() : static_cast<std::uint8_t*>(y.mutable_data());
  const std::vector<std::int64_t> strides = strides_of(spatial);
  const std::int64_t in_plane = product(x.shape(), 2, x.rank());
  const std::int64_t out_plane = element_count(spatial);
  const auto* in = static_cast<const std::uint8_t*>(x.data());
  parallel_for(x.dim(0) * x.dim(1), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      c.stop().check();
      for (std::int64_t o = 0; o < out_plane; ++o) {
        WindowSum w{axes, x.dtype() == DataType::int8, average.from};
        w.add(in + i * in_plane, 0, o, strides);
        const std::int64_t divisor = with_padding ? window : w.count;
        const float mean = divisor == 0 ? 0.0f : w.sum / static_cast<float>(divisor);
        out[i * out_plane + o] = static_cast<std::uint8_t>(requantize(mean / average.to.scale, average.to.zero, average.range));
      }
    }
  });
  if (last) channels_last(first.data(), shape, static_cast<std::uint8_t*>(y.mutable_data()));
}

OpDef definition(const char* op, bool zero_optional) {
  const Arity zero = zero_optional ? Arity::optional : Arity::required;
  OpDef def("com.microsoft", op, 1);
  def.in("X", "T", kBytes).in("x_scale", "", bit(DataType::float32)).in("x_zero_point", "T", kBytes, zero);
  def.in("y_scale", "", bit(DataType::float32)).in("y_zero_point", "T", kBytes, zero).out("Y", "T", kBytes);
  def.attrs<QLinearPoolAttrs>();
  return def;
}

}  // namespace

void register_qlinear_pool(OpTable& t) {
  t.add(definition("QLinearGlobalAveragePool", false).infer_with(infer_global).run_with(run_global));
  t.add(definition("QLinearAveragePool", true).infer_with(infer_pool).run_with(run_pool));
}

}  // namespace sdx::ops
