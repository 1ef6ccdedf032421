// CenterCropPad: ai.onnx 18.

#include <algorithm>

#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/padded_copy.h"
#include "ops/tensor/shape_values.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

struct CenterCropPadAttrs {
  std::optional<IntList> axes;

  void fields(auto& f) { f("axes", axes); }
};

Ints axes_of(const CenterCropPadAttrs& attr, std::size_t rank) {
  if (attr.axes.has_value()) return normalize_axes(*attr.axes, rank);
  Ints axes;
  for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

// One number holds for all axes, as the function of ONNX's specification broadcasts it.
void check_count(const auto& c, std::size_t numbers, std::size_t axes) {
  if (numbers != axes && numbers != 1) c.fail("'shape' holds {} numbers for {} axes", numbers, axes);
}

void infer_center(InferContext& c) {
  const SymShape* in = c.shape(0);
  if (in == nullptr) return c.output(0, c.dtype(0));
  const Ints axes = axes_of(parse<CenterCropPadAttrs>(c), in->size());
  const auto* wanted = c.sym(1);
  if (wanted != nullptr) check_count(c, wanted->size(), axes.size());
  SymShape out = *in;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    out[static_cast<std::size_t>(axes[i])] = wanted != nullptr ? (*wanted)[wanted->size() == 1 ? 0 : i] : Dim();
  }
  c.output(0, c.dtype(0), std::move(out));
}

void run_center(OpContext& c) {
  const Tensor in = widened(c.input(0));
  const Ints axes = axes_of(parse<CenterCropPadAttrs>(c), in.rank());
  const Ints wanted = to_ints(c.input(1));
  check_count(c, wanted.size(), axes.size());
  Shape shape = in.shape();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    shape[static_cast<std::size_t>(axes[i])] = wanted[wanted.size() == 1 ? 0 : i];
  }
  element_count(shape);  // refuses negative extents
  produce(c, 0, c.input(0).dtype(), shape, [&](Tensor& out) {
    if (out.size() == 0) return;
    std::vector<PaddedAxis> padded;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      // Half of the difference, rounded down, lies before. Source: ONNX CenterCropPad-18.
      const std::int64_t inside = std::min(shape[d], in.dim(d));
      padded.push_back({(shape[d] - inside) / 2, (in.dim(d) - inside) / 2, inside, shape[d]});
    }
    Tensor zero(out.dtype(), Shape{1});
    fill_zero(zero);
    copy_padded(in, out, padded, Padding::constant, zero);
  });
}

}  // namespace

void register_center_crop_pad(OpTable& t) {
  OpDef center_crop_pad("CenterCropPad", 18);
  center_crop_pad.in("input_data", "T", types::any_tensor).in("shape", "Tind", types::indices);
  center_crop_pad.out("output_data", "T", types::any_tensor).attrs<CenterCropPadAttrs>();
  t.add(std::move(center_crop_pad).infer_with(infer_center).run_with(run_center));
}

}  // namespace sdx::ops
