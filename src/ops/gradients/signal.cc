// Gradients of DFT, STFT and Col2Im.

#include "ops/gradients/windows.h"
#include "ops/signal/signatures.h"
#include "ops/tensor/signatures.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

constexpr std::size_t kLength = 1, kAxis = 2;

Expr join(GradientContext& c, const std::vector<Expr>& parts) { return c.emit("Concat", parts, {{"axis", std::int64_t{0}}}); }

std::int64_t transformed_axis(GradientContext& c) {
  std::int64_t axis = parse<DftAttrs>(c).axis;
  if (c.version() >= 20 && c.has_input(kAxis)) {
    const Tensor* given = c.value(kAxis);
    if (given == nullptr || given->size() != 1) c.refuse("an axis that is computed");
    axis = element_as_int(given->aligned(), 0);
  }
  const std::int64_t rank = c.rank(c.in(0));
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank - 1) c.refuse("an axis that does not exist");
  return axis;
}

// A transform is linear and goes along one axis: that of an identity matrix, [extent * parts, extent, parts], is its matrix,
// whose transpose takes the gradient back.
void dft(GradientContext& c) {
  const Expr x = c.in(0);
  const std::int64_t axis = transformed_axis(c);
  const std::int64_t rank = c.rank(x);
  const Expr along = join(c, {c.extents(x, axis, axis + 1), c.extents(x, rank - 1, rank)});
  const Expr count = call("Mul", c.extents(x, axis, axis + 1), c.extents(x, rank - 1, rank));
  const Expr eye = c.emit("EyeLike", {c.emit("Expand", {c.scalar(0), join(c, {count, count})})});
  const Expr basis = c.reshape(eye, join(c, {count, along}));
  std::vector<Expr> inputs{basis, c.in(kLength)};
  if (c.version() >= 20) inputs.push_back(c.int_scalar(1));
  const Expr all = c.version() >= 20 ? c.repeat(inputs) : c.repeat(inputs, {{"axis", std::int64_t{1}}});
  const Expr matrix = c.emit("Transpose", {c.emit("Reshape", {all, c.ints({0, -1})})});  // [after, before]
  std::vector<std::int64_t> perm;
  for (std::int64_t i = 0; i < rank - 1; ++i) {
    if (i != axis) perm.push_back(i);
  }
  perm.insert(perm.end(), {axis, rank - 1});
  std::vector<std::int64_t> inverse(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) inverse[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  const Expr moved = c.emit("Transpose", {c.dy()}, {{"perm", perm}});
  const Expr rows = c.emit("Reshape", {moved, join(c, {c.extents(moved, 0, -2), c.ints({-1})})});
  const Expr back = call("MatMul", rows, matrix);
  const Expr split = c.reshape(back, join(c, {c.extents(back, 0, -1), along}));
  c.set(0, c.emit("Transpose", {split}, {{"perm", inverse}}));
}

// Frames of the signal, weighed by the window, each transformed.
std::vector<Expr> stft_formula(GradientContext& c) {
  const Expr x = c.rank(c.in(0)) == 2 ? c.emit("Unsqueeze", {c.in(0), c.ints({2})}) : c.in(0);
  const auto number = [&](Expr e) {
    return c.emit("Reshape", {c.emit("Cast", {e}, {{"to", static_cast<std::int64_t>(DataType::int64)}}), c.ints({})});
  };
  const auto range = [&](Expr end) { return c.emit("Range", {c.int_scalar(0), end, c.int_scalar(1)}); };
  const Expr length = c.emit("Squeeze", {c.extents(x, 1, 2)});
  Expr frame = length;
  if (c.has_input(2)) frame = c.emit("Squeeze", {c.shape_of(c.in(2))});
  if (c.has_input(3)) frame = number(c.in(3));
  const Expr step = number(c.in(1));
  const Expr frames = call("Add", call("Div", call("Sub", length, frame), step), c.int_scalar(1));
  const Expr starts = c.emit("Unsqueeze", {call("Mul", range(frames), step), c.ints({1})});
  const Expr at = call("Add", starts, c.emit("Unsqueeze", {range(frame), c.ints({0})}));
  Expr cut = c.emit("Gather", {x, at}, {{"axis", std::int64_t{1}}});  // [batch, frames, frame, parts]
  if (c.has_input(2)) cut = cut * c.emit("Unsqueeze", {c.in(2), c.ints({1})});
  const std::int64_t onesided = parse<StftAttrs>(c).onesided ? 1 : 0;
  return {c.emit("DFT", {cut, {}, c.int_scalar(2)}, {{"onesided", onesided}})};
}

// Reads each column's part of the image by a convolution with one kernel for each place of a block.
void col2im(GradientContext& c) {
  const Expr g = c.dy();
  const auto attr = parse<Col2ImAttrs>(c);
  const std::int64_t rank = c.rank(g);
  const Expr block = c.in(2);
  const Expr volume = c.emit("ReduceProd", {block}, {{"keepdims", std::int64_t{1}}});
  const Expr eye = c.emit("EyeLike", {c.emit("Expand", {c.scalar(0), join(c, {volume, volume})})});
  const Expr kernel = c.reshape(eye, join(c, {volume, c.ints({1}), block}));
  const Expr image =
      c.reshape(g, join(c, {call("Mul", c.extents(g, 0, 1), c.extents(g, 1, 2)), c.ints({1}), c.extents(g, 2, rank)}));
  const auto n = static_cast<std::size_t>(rank - 2);
  const auto list = [](const std::optional<IntList>& given, const std::vector<std::int64_t>& otherwise) {
    return given ? to_vector(*given) : otherwise;
  };
  const Expr columns = c.emit("Conv", {image, kernel},
                              {{"strides", list(attr.strides, std::vector<std::int64_t>(n, 1))},
                               {"dilations", list(attr.dilations, std::vector<std::int64_t>(n, 1))},
                               {"pads", list(attr.pads, std::vector<std::int64_t>(2 * n, 0))}});
  c.set(0, c.reshape(columns, c.shape_of(c.in(0))));
}

}  // namespace

void register_gradients_signal(GradientTable& t) {
  t.add("DFT", dft);
  t.add("STFT", [](GradientContext& c) { c.through(stft_formula); });
  t.add("Col2Im", col2im);
}

}  // namespace sdx::ops
