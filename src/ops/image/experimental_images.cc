// ImageScaler, Crop: experimental operators of opset 1, removed from ONNX in opset 10, which files of the first converters
// (CoreML, WinML) still hold.

#include <algorithm>
#include <cstring>

#include "ops/image/signatures.h"
#include "ops/math/elementwise.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

struct CropAttrs {
  IntList border, scale;

  void fields(auto& f) {
    f.required("border", border);
    f("scale", scale);
  }
};

void check_images(const SymShape& s) {
  if (s.size() != 4) fail(ErrorCode::invalid_model, "expected images [N,C,H,W], received {}", to_string(s));
}

void infer_image_scaler(InferContext& c) {
  if (c.shape(0) != nullptr) check_images(*c.shape(0));
  infer_same(c);
}

// x * scale + bias[channel]
void run_image_scaler(OpContext& c) {
  const Tensor& in = c.input(0);
  check_images(to_sym(in.shape()));
  const auto attr = parse<ImageScalerAttrs>(c);
  const float scale = attr.scale;
  const FloatList bias = attr.bias;
  const std::int64_t channels = in.dim(1);
  if (static_cast<std::int64_t>(bias.size()) != channels) c.fail("'bias' has {} numbers for {} channels", bias.size(), channels);
  Tensor& out = c.output(0, in.dtype(), in.shape());
  if (in.size() == 0) return;
  const std::int64_t plane = in.dim(2) * in.dim(3);
  dispatch(in.dtype(), FloatTypes{}, "ImageScaler", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeType<T>;
    const auto* x = static_cast<const T*>(in.data());
    auto* y = static_cast<T*>(out.mutable_data());
    parallel_for(in.size() / plane, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) {
        const C add = static_cast<C>(bias[static_cast<std::size_t>(p % channels)]);
        for (std::int64_t i = p * plane; i < (p + 1) * plane; ++i) {
          y[i] = static_cast<T>(static_cast<C>(x[i]) * static_cast<C>(scale) + add);
        }
      }
    });
  });
}

// Rows and columns that stay: [top, top + height) and [left, left + width).
struct Window {
  std::int64_t top, left, height, width;
};

Window crop_window(const CropAttrs& attr, std::int64_t rows, std::int64_t columns) {
  const IntList border = attr.border, scale = attr.scale;
  if (border.size() != 4)
    fail(ErrorCode::invalid_model, "'border' must hold left, top, right, bottom; it has {} numbers", border.size());
  for (const std::int64_t b : border) {
    if (b < 0 || b > std::max(rows, columns)) fail(ErrorCode::invalid_model, "'border' {} lies outside the image", b);
  }
  Window w{border[1], border[0], rows - border[1] - border[3], columns - border[0] - border[2]};
  if (!scale.empty()) {
    if (scale.size() != 2) fail(ErrorCode::invalid_model, "'scale' must hold height and width; it has {} numbers", scale.size());
    w.height = scale[0];
    w.width = scale[1];
  }
  if (w.height < 0 || w.width < 0 || w.height > rows - w.top || w.width > columns - w.left) {
    fail(ErrorCode::invalid_model, "the cropped part {}x{} at ({}, {}) does not fit an image of {}x{}", w.height, w.width, w.top,
         w.left, rows, columns);
  }
  return w;
}

void infer_crop(InferContext& c) {
  const SymShape* s = c.shape(0);
  if (s == nullptr) return c.output(0, c.dtype(0));
  check_images(*s);
  SymShape out = *s;
  out[2] = out[3] = Dim::unknown();
  if ((*s)[2].is_const() && (*s)[3].is_const()) {
    const Window w = crop_window(parse<CropAttrs>(c), (*s)[2].value(), (*s)[3].value());
    out[2] = w.height;
    out[3] = w.width;
  }
  c.output(0, c.dtype(0), std::move(out));
}

void run_crop(OpContext& c) {
  const Tensor& in = c.input(0);
  check_images(to_sym(in.shape()));
  const Window w = crop_window(parse<CropAttrs>(c), in.dim(2), in.dim(3));
  Tensor& out = c.output(0, in.dtype(), {in.dim(0), in.dim(1), w.height, w.width});
  if (out.size() == 0) return;
  const auto element = static_cast<std::int64_t>(byte_size(in.dtype(), 1));
  const auto* x = static_cast<const char*>(in.data());
  auto* y = static_cast<char*>(out.mutable_data());
  for (std::int64_t p = 0; p < in.dim(0) * in.dim(1); ++p) {
    for (std::int64_t r = 0; r < w.height; ++r) {
      const std::int64_t from = (p * in.dim(2) + w.top + r) * in.dim(3) + w.left;
      std::memcpy(y + (p * w.height + r) * w.width * element, x + from * element, static_cast<std::size_t>(w.width * element));
    }
  }
}

OpDef experimental(const char* name) {
  OpDef def(name, 1);
  def.in("X", "T", types::floats).out("Y", "T", types::floats);
  def.deprecated_at = 10;
  return def;
}

}  // namespace

void register_experimental_images(OpTable& t) {
  t.add(experimental("ImageScaler").attrs<ImageScalerAttrs>().infer_with(infer_image_scaler).run_with(run_image_scaler));
  t.add(experimental("Crop").attrs<CropAttrs>().infer_with(infer_crop).run_with(run_crop));
}

}  // namespace sdx::ops
