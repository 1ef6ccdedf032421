// Rotary position embeddings.

#include <sdx/array.hpp>

#include "array/array_op.h"
#include "array/ops/batch.h"
#include "array/ops/common.h"
#include "kernels/cpu/attention/rope.h"

namespace sdx::array {
namespace detail {
namespace {

// Inputs: [.., positions, elements]; offsets (int64), one or one for each element of the first axis; frequencies (float32), or
// none.
void run_rope(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  if (out.size() == 0) return;
  cpu::Rope r;
  r.elements = out.shape().back();
  r.rows = out.size() / r.elements;
  r.positions = out.dim(out.rank() - 2);
  r.dims = c.attrs().get_int("dims");
  r.interleaved = c.attrs().get_int("traditional") != 0;
  r.inverse = c.attrs().get_int("inverse") != 0;
  r.base = static_cast<double>(c.attrs().get_float("base"));
  r.scale = static_cast<double>(c.attrs().get_float("scale"));
  r.frequencies = c.has_input(2) ? c.data<float>(2) : nullptr;
  cpu::rope(out.dtype(), r, c.data<std::int64_t>(1), c.input(1).size(), c.input(0).data(), out.mutable_data());
}

// params.ints holds dims, traditional, inverse; params.reals holds base and scale.
void emit_rope(Emitter& e) {
  const Params& p = e.params();
  e.results<run_rope>("Rope", e.inputs(),
                      {{"dims", p.ints[0]},
                       {"traditional", p.ints[1]},
                       {"inverse", p.ints[2]},
                       {"base", static_cast<float>(p.reals[0])},
                       {"scale", static_cast<float>(p.reals[1])}});
}

array rotated(const array& a, const array& offset, const std::vector<array>& rest, const Params& p, bool inverse,
              const StreamOrDevice& s = {});

std::vector<array> rest_of(const std::vector<array>& inputs) { return {inputs.begin() + 2, inputs.end()}; }

// The gradient turns back: the transpose of a rotation is its inverse.
std::vector<array> rope_vjp(const VjpCall& c) {
  std::vector<array> out;
  for (const std::size_t i : c.wanted) {
    if (i == 2) refuse("rope", "no derivative with respect to freqs");
    out.push_back(i == 0 ? rotated(c.of_outputs[0], c.inputs[1], rest_of(c.inputs), c.params, c.params.ints[2] == 0)
                         : zeros_of(c.inputs[i].shape(), c.inputs[i].dtype()));
  }
  return out;
}

VmapResult rope_vmap(const VmapCall& c) {
  if (c.inputs.size() > 2 && is_batched(c, 2)) refuse("rope", "freqs cannot be batched");
  const array a = batched(c, 0);
  array offset = c.inputs[1];
  const std::int64_t each = a.shape()[1];
  if (is_batched(c, 1) || offset.size() != 1) {
    offset = reshape(broadcast_to(batched(c, 1), {c.batch, each}), {-1});
  }
  const array out = rotated(flatten(a, 0, 1), offset, rest_of(c.inputs), c.params, c.params.ints[2] != 0);
  return batch_result(reshape(out, a.shape()));
}

const Kind kRope{.name = "rope", .emit = emit_rope, .vjp = rope_vjp, .vmap = rope_vmap};

array rotated(const array& a, const array& offset, const std::vector<array>& rest, const Params& given, bool inverse,
              const StreamOrDevice& s) {
  Params p = given;
  p.ints[2] = inverse;
  std::vector<array> inputs{a, offset};
  inputs.insert(inputs.end(), rest.begin(), rest.end());
  return make(kRope, a.dtype(), a.shape(), std::move(inputs), std::move(p), s);
}

}  // namespace
}  // namespace detail

array fast::rope(const array& a, int dims, bool traditional, std::optional<float> base, float scale, const array& offset,
                 const std::optional<array>& freqs, StreamOrDevice s) {
  using detail::refuse;
  if (a.ndim() < 3 || !is_floating(a.dtype())) {
    refuse("rope", "an array of shape {} and type {}; expected floats with at least three dimensions", to_string(a.shape()),
           name(a.dtype()));
  }
  if (dims < 2 || dims % 2 != 0 || dims > a.shape().back()) {
    refuse("rope", "dims {}; expected an even number up to {}", dims, a.shape().back());
  }
  if (base.has_value() == freqs.has_value()) refuse("rope", "exactly one of base and freqs must be given");
  if (freqs && freqs->shape() != Shape{dims / 2}) {
    refuse("rope", "freqs of shape {}; expected [{}]", to_string(freqs->shape()), dims / 2);
  }
  if (is_floating(offset.dtype()) || (offset.size() != 1 && offset.shape() != Shape{a.shape()[0]})) {
    refuse("rope", "an offset of shape {} and type {}; expected an integer, or {} of them", to_string(offset.shape()),
           name(offset.dtype()), a.shape()[0]);
  }
  detail::Params p;
  p.ints = {dims, traditional, 0};
  p.reals = {static_cast<double>(base.value_or(0)), static_cast<double>(scale)};
  std::vector<array> rest;
  if (freqs) rest.push_back(detail::as_type(*freqs, Dtype::float32, s));
  const array offsets = reshape(detail::as_type(offset, Dtype::int64, s), {-1}, s);
  return detail::rotated(a, offsets, rest, p, false, s);
}

array fast::rope(const array& a, int dims, bool traditional, std::optional<float> base, float scale, int offset,
                 const std::optional<array>& freqs, StreamOrDevice s) {
  return rope(a, dims, traditional, base, scale, array(std::int64_t{offset}), freqs, s);
}

}  // namespace sdx::array
