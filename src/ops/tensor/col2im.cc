// Col2Im: ai.onnx 18.

#include <algorithm>

#include "base/checked.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"
#include "ops/tensor/shape_values.h"
#include "ops/tensor/signatures.h"
#include "tensor/dispatch.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

// One spatial axis: how blocks lie over the image.
struct Axis {
  std::int64_t image, block, stride, dilation, begin, count;  // count: blocks along the axis
};

std::int64_t blocks_along(std::int64_t image, std::int64_t block, std::int64_t stride, std::int64_t dilation, std::int64_t pads) {
  const auto reach = checked_mul(dilation, block - 1);
  const auto padded = checked_add(image, pads);
  if (!reach || !padded || *padded - 1 < *reach) return 0;
  return (*padded - *reach - 1) / stride + 1;
}

std::vector<Axis> axes_of(const Col2ImAttrs& attr, const Ints& image, const Ints& block) {
  const std::size_t n = image.size();
  const auto list = [](const std::optional<IntList>& given, const char* attribute, std::size_t length, std::int64_t otherwise,
                       std::int64_t least) {
    Ints values = given ? to_vector(*given) : Ints(length, otherwise);
    const bool fits = values.size() == length &&
                      std::all_of(values.begin(), values.end(), [&](auto v) { return v >= least && v <= INT32_MAX; });
    if (!fits)
      fail(ErrorCode::invalid_model, "'{}' {} must hold {} numbers from {} on", attribute, to_string(values), length, least);
    return values;
  };
  if (block.size() != n) fail(ErrorCode::invalid_model, "'block_shape' and 'image_shape' must have one length");
  const Ints strides = list(attr.strides, "strides", n, 1, 1);
  const Ints dilations = list(attr.dilations, "dilations", n, 1, 1);
  const Ints pads = list(attr.pads, "pads", 2 * n, 0, 0);
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < n; ++i) {
    if (image[i] < 0 || block[i] < 1) fail(ErrorCode::invalid_model, "image and block extents must be positive");
    axes.push_back({image[i], block[i], strides[i], dilations[i], pads[i],
                    blocks_along(image[i], block[i], strides[i], dilations[i], pads[i] + pads[i + n])});
  }
  return axes;
}

void infer_col2im(InferContext& c) {
  const SymShape* in = c.shape(0);
  const auto* image = c.sym(1);
  const auto block = known_ints(c, 2);
  if (in != nullptr && in->size() != 3) c.fail("the input must be of rank 3, received {}", to_string(*in));
  if (image == nullptr) {
    const auto n = known_length(c, 1);
    if (!n || *n > 64) return c.output(0, c.dtype(0));
    return c.output(0, c.dtype(0), SymShape(static_cast<std::size_t>(*n) + 2));
  }
  SymShape out(2);
  if (in != nullptr) out[0] = (*in)[0];
  if (in != nullptr && block) {
    Dim volume(1);
    for (const std::int64_t b : *block) volume = volume * Dim(b);
    out[1] = floor_div((*in)[1], volume);
  }
  out.insert(out.end(), image->begin(), image->end());
  c.output(0, c.dtype(0), std::move(out));
}

// Adds one column (a position inside the block) of one channel to the image.
template <class T>
void add_column(const T* column, T* image, const std::vector<Axis>& axes, const Ints& strides, const Ints& inside) {
  Ints at(axes.size(), 0);
  for (;;) {
    std::int64_t offset = 0;
    bool visible = true;
    for (std::size_t d = 0; d < axes.size(); ++d) {
      const std::int64_t p = at[d] * axes[d].stride + inside[d] * axes[d].dilation - axes[d].begin;
      visible = visible && p >= 0 && p < axes[d].image;
      offset += visible ? p * strides[d] : 0;
    }
    if (visible) {
      if constexpr (std::is_integral_v<T>) {
        image[offset] = static_cast<T>(static_cast<std::uint64_t>(image[offset]) + static_cast<std::uint64_t>(*column));
      } else {
        image[offset] = T(static_cast<ComputeType<T>>(image[offset]) + static_cast<ComputeType<T>>(*column));
      }
    }
    ++column;
    std::size_t d = axes.size();
    while (d > 0 && ++at[d - 1] == axes[d - 1].count) at[--d] = 0;
    if (d == 0) return;
  }
}

void run_col2im(OpContext& c) {
  const Tensor& in = c.input(0);
  const Ints image = to_ints(c.input(1));
  const Ints block = to_ints(c.input(2));
  const std::vector<Axis> axes = axes_of(parse<Col2ImAttrs>(c), image, block);
  if (axes.empty()) c.fail("'image_shape' is empty");
  std::int64_t volume = 1;
  std::int64_t count = 1;
  for (const Axis& a : axes) {
    const auto v = checked_mul(volume, a.block);
    const auto n = checked_mul(count, a.count);
    if (!v || !n) c.fail("the blocks are too large");
    volume = *v;
    count = *n;
  }
  if (in.rank() != 3 || in.dim(1) % volume != 0 || in.dim(2) != count) {
    c.fail("expected columns (N, C * {}, {}), received {}", volume, count, in.type_string());
  }
  const std::int64_t channels = in.dim(1) / volume;
  Shape shape{in.dim(0), channels};
  shape.insert(shape.end(), image.begin(), image.end());
  Tensor& out = c.output(0, in.dtype(), shape);
  fill_zero(out);
  if (in.size() == 0 || out.size() == 0) return;
  const Ints strides = strides_of(image);
  const std::int64_t plane = element_count(image);
  dispatch(in.dtype(), NumericTypes{}, "Col2Im", [&](auto tag) {
    using T = typename decltype(tag)::type;
    Ints inside(axes.size());
    for (std::int64_t i = 0; i < in.dim(0) * in.dim(1); ++i) {
      c.stop().check();
      std::int64_t rest = i % volume;
      for (std::size_t d = axes.size(); d-- > 0;) {
        inside[d] = rest % axes[d].block;
        rest /= axes[d].block;
      }
      add_column(c.data<T>(0) + i * count, static_cast<T*>(out.mutable_data()) + (i / volume) * plane, axes, strides, inside);
    }
  });
}

}  // namespace

void register_col2im(OpTable& t) {
  OpDef col2_im("Col2Im", 18);
  col2_im.in("input", "T", types::numeric).in("image_shape block_shape", "", types::int64);
  col2_im.out("output", "T", types::numeric).attrs<Col2ImAttrs>();
  t.add(std::move(col2_im).infer_with(infer_col2im).run_with(run_col2im));
}

}  // namespace sdx::ops
