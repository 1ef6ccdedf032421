// MaxUnpool: ai.onnx 9, 11, 22 (bfloat16). Indices count in the flattened output: [N, C, spatial...].

#include <cstring>

#include "ops/context.h"
#include "ops/conv/conv_geometry.h"
#include "ops/conv/signatures.h"
#include "ops/op.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

struct MaxUnpoolAttrs {
  WindowFields window;

  void fields(auto& f) {
    f.required("kernel_shape", window.kernel_shape);
    f("pads", window.pads);
    f("strides", window.strides);
  }
};

// (in-1)*stride + kernel - pads; the inverse of a pooling without dilation.
Dim unpooled(const WindowAttrs& w, std::size_t axis, const Dim& in) {
  const std::int64_t rest = w.kernel[axis] - w.pads[axis] - w.pads[axis + w.kernel.size()];
  if (!in.is_const()) return (in - Dim(1)) * Dim(w.strides[axis]) + Dim(rest);
  const auto span = checked_mul(in.value() - 1, w.strides[axis]);
  const auto total = span ? checked_add(*span, rest) : std::nullopt;
  if (!total || *total < 0) {
    fail(ErrorCode::invalid_model, "spatial axis {} of extent {} cannot be unpooled with stride {}, kernel {}, pads {} and {}",
         axis, in.value(), w.strides[axis], w.kernel[axis], w.pads[axis], w.pads[axis + w.kernel.size()]);
  }
  return *total;
}

SymShape computed_shape(const Attributes& attrs, const SymShape& x) {
  if (x.size() < 3) {
    fail(ErrorCode::invalid_model, "X must have rank 3 or more ([N, C, spatial...]), received shape {}", to_string(x));
  }
  const WindowAttrs w = read_window_attrs(attrs, x.size() - 2);
  SymShape out{x[0], x[1]};
  for (std::size_t i = 2; i < x.size(); ++i) out.push_back(unpooled(w, i - 2, x[i]));
  return out;
}

void infer_unpool(InferContext& c) {
  const SymShape* x = c.shape(0);
  if (!c.has_input(2)) {
    if (x == nullptr) return c.output(0, c.dtype(0));
    return c.output(0, c.dtype(0), computed_shape(c.attrs(), *x));
  }
  if (const auto* wanted = c.sym(2)) {
    for (const Dim& d : *wanted) {
      if (d.is_const() && d.value() < 0) c.fail("output_shape holds {}, which is not an extent", d.value());
    }
    if (x != nullptr && wanted->size() != x->size()) {
      c.fail("output_shape has {} values, X rank {}: they must agree", wanted->size(), x->size());
    }
    return c.output(0, c.dtype(0), *wanted);
  }
  if (x != nullptr) return c.output(0, c.dtype(0), SymShape(x->size()));
  c.output(0, c.dtype(0));
}

Shape output_shape(OpContext& c) {
  const Tensor& x = c.input(0);
  if (const Tensor* wanted = c.optional_input(2)) {
    Shape out = to_ints(*wanted);
    if (out.size() != x.rank()) c.fail("output_shape has {} values, X rank {}: they must agree", out.size(), x.rank());
    element_count(out);
    return out;
  }
  return to_shape(computed_shape(c.attrs(), to_sym(x.shape())));
}

void run_unpool(OpContext& c) {
  const Tensor& x = c.input(0);
  const Tensor& indices = c.input(1);
  if (indices.shape() != x.shape()) {
    c.fail("X {} and I {} must have the same shape", to_string(x.shape()), to_string(indices.shape()));
  }
  // The indices were made for the shape that the attributes give; output_shape may pad that at the end of each axis.
  const Shape from = to_shape(computed_shape(c.attrs(), to_sym(x.shape())));
  const Shape out = output_shape(c);
  Tensor& y = c.output(0, x.dtype(), out);
  const auto width = static_cast<std::size_t>(bit_width(x.dtype())) / 8;
  auto* to = static_cast<unsigned char*>(y.mutable_data());
  if (y.bytes() > 0) std::memset(to, 0, y.bytes());
  const auto* values = static_cast<const unsigned char*>(x.data());
  const std::int64_t* at = c.data<std::int64_t>(1);
  const std::int64_t limit = element_count(from);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    std::int64_t flat = at[i];
    if (flat < 0 || flat >= limit) {
      c.fail("index {} is out of range for the unpooled shape {} ({} elements)", flat, to_string(from), limit);
    }
    std::int64_t target = 0;
    std::int64_t stride = 1;
    for (std::size_t d = out.size(); d-- > 0;) {
      const std::int64_t p = flat % from[d];
      flat /= from[d];
      if (p >= out[d]) c.fail("index {} lies outside output_shape {}", at[i], to_string(out));
      target += p * stride;
      stride *= out[d];
    }
    std::memcpy(to + static_cast<std::size_t>(target) * width, values + static_cast<std::size_t>(i) * width, width);
  }
}

}  // namespace

void register_max_unpool(OpTable& t) {
  OpDef max_unpool("MaxUnpool", 9);
  max_unpool.in("X", "T1", types::floats).in("I", "T2", types::int64);
  max_unpool.in("output_shape", "T2", types::int64, Arity::optional).out("output", "T1", types::floats);
  max_unpool.attrs<MaxUnpoolAttrs>();
  t.add(std::move(max_unpool).infer_with(infer_unpool).run_with(run_unpool));
}

}  // namespace sdx::ops
