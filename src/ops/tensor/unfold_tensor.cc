// com.microsoft UnfoldTensor 1: slices of `size` along an axis, `step` apart, on an axis of their own at the end.

#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"

namespace sdx::ops {
namespace {

struct UnfoldTensorAttrs {
  std::int64_t dim = -1;
  std::int64_t size = 0;
  std::int64_t step = 1;

  void fields(auto& f) {
    f("dim", dim);
    f.required("size", size);
    f("step", step);
  }
};

struct Unfold {
  std::int64_t dim, size, step;
};

Unfold unfold_of(const UnfoldTensorAttrs& attr, std::size_t rank) {
  if (rank == 0) fail(ErrorCode::invalid_model, "UnfoldTensor needs an axis, received a scalar");
  const Unfold u{normalize_axis(attr.dim, rank), attr.size, attr.step};
  if (u.size < 1 || u.step < 1)
    fail(ErrorCode::invalid_model, "size and step must be positive, received {} and {}", u.size, u.step);
  return u;
}

std::int64_t windows(const Unfold& u, std::int64_t extent) {
  if (u.size > extent) fail(ErrorCode::invalid_model, "slices of {} do not fit an extent of {}", u.size, extent);
  return (extent - u.size) / u.step + 1;
}

void infer_unfold(InferContext& c) {
  const SymShape* s = c.shape(0);
  if (s == nullptr) return c.output(0, c.dtype(0));
  const Unfold u = unfold_of(parse<UnfoldTensorAttrs>(c), s->size());
  SymShape out = *s;
  Dim& extent = out[static_cast<std::size_t>(u.dim)];
  extent = extent.is_const() ? Dim(windows(u, extent.value())) : Dim::unknown();
  out.push_back(Dim(u.size));
  c.output(0, c.dtype(0), std::move(out));
}

void run_unfold(OpContext& c) {
  const Tensor& x = c.input(0);
  const Unfold u = unfold_of(parse<UnfoldTensorAttrs>(c), x.rank());
  const auto dim = static_cast<std::size_t>(u.dim);
  Shape shape = x.shape();
  shape[dim] = windows(u, x.dim(dim));
  shape.push_back(u.size);
  Tensor& y = c.output(0, x.dtype(), shape);
  if (y.size() == 0) return;
  const std::vector<std::int64_t> from = strides_of(x.shape()), to = strides_of(shape);
  std::vector<CopyAxis> axes;
  for (std::size_t i = 0; i < x.rank(); ++i) axes.push_back({shape[i], from[i] * (i == dim ? u.step : 1), to[i]});
  axes.push_back({u.size, from[dim], 1});
  copy_strided(x, 0, y, 0, std::move(axes));
}

}  // namespace

void register_unfold_tensor(OpTable& t) {
  constexpr TypeSet kAny = types::numeric | types::boolean | types::string | types::complex;
  t.add(OpDef("com.microsoft", "UnfoldTensor", 1)
            .in("input", "T", kAny)
            .out("output", "T", kAny)
            .attrs<UnfoldTensorAttrs>()
            .infer_with(infer_unfold)
            .run_with(run_unfold));
}

}  // namespace sdx::ops
