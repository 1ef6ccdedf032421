// Matrices quantised to few bits.

#include <algorithm>

#include <sdx/array.hpp>

#include "array/array_op.h"
#include "array/ops/batch.h"
#include "array/ops/common.h"
#include "array/ops/index/gather.h"
#include "kernels/cpu/quant/groups.h"

namespace sdx::array {
namespace detail {
namespace {

// params.ints of all kinds holds mode, group, bits.
struct Format {
  cpu::GroupMode mode = cpu::GroupMode::affine;
  std::int64_t group = 64, bits = 4;
  std::vector<std::int64_t> ints() const { return {static_cast<std::int64_t>(mode), group, bits}; }
  bool affine() const { return mode == cpu::GroupMode::affine; }
};

Format format_in(const Params& p) { return {static_cast<cpu::GroupMode>(p.ints[0]), p.ints[1], p.ints[2]}; }

Format format_of(const char* operation, const std::string& mode, std::optional<int> group, std::optional<int> bits) {
  Format f;
  if (mode == "affine") {
    f = {cpu::GroupMode::affine, group.value_or(64), bits.value_or(4)};
    const bool known = (f.group == 32 || f.group == 64 || f.group == 128) && f.bits >= 1 && f.bits <= 8 && f.bits != 7;
    if (!known) refuse(operation, "affine groups of {} with {} bits; expected 32, 64, 128 and 1 to 6 or 8", f.group, f.bits);
    return f;
  }
  if (mode == "mxfp4") {
    f = {cpu::GroupMode::mxfp4, 32, 4};
  } else if (mode == "mxfp8") {
    f = {cpu::GroupMode::mxfp8, 32, 8};
  } else if (mode == "nvfp4") {
    f = {cpu::GroupMode::nvfp4, 16, 4};
  } else {
    refuse(operation, "mode '{}'; expected affine, mxfp4, mxfp8 or nvfp4", mode);
  }
  if (group.value_or(static_cast<int>(f.group)) != f.group || bits.value_or(static_cast<int>(f.bits)) != f.bits) {
    refuse(operation, "mode {} has groups of {} and {} bits", mode, f.group, f.bits);
  }
  return f;
}

// Attribute "ints" of all operators holds mode, group, bits.
cpu::GroupFormat format_of(const ops::OpContext& c) {
  const auto ints = c.attrs().get_ints("ints");
  return {static_cast<cpu::GroupMode>(ints[0]), ints[1], static_cast<int>(ints[2])};
}

void run_quantize(ops::OpContext& c) {
  const cpu::GroupFormat f = format_of(c);
  auto* codes = static_cast<std::uint8_t*>(result_tensor(c, 0).mutable_data());
  Tensor& scales = result_tensor(c, 1);
  const bool affine = f.mode == cpu::GroupMode::affine;
  float* biases = affine ? static_cast<float*>(result_tensor(c, 2).mutable_data()) : nullptr;
  cpu::quantize_groups(f, c.data<float>(0), scales.size(), codes, affine ? static_cast<float*>(scales.mutable_data()) : nullptr,
                       biases, affine ? nullptr : static_cast<std::uint8_t*>(scales.mutable_data()));
}

void emit_quantize(Emitter& e) { e.results<run_quantize>("Quantize", e.inputs(), {{"ints", e.params().ints}}); }

VmapResult quantize_vmap(const VmapCall& c);
const Kind kQuantize{.name = "quantize", .emit = emit_quantize, .vmap = quantize_vmap};

std::vector<array> quantized(const array& w, const Format& f, const StreamOrDevice& s = {}) {
  Shape codes = w.shape(), groups = w.shape();
  codes.back() = codes.back() * f.bits / 32;
  groups.back() /= f.group;
  const Dtype type = f.affine() ? Dtype::float32 : Dtype::uint8;
  std::vector<std::pair<Dtype, Shape>> results{{Dtype::uint32, codes}, {type, groups}};
  if (f.affine()) results.emplace_back(type, groups);
  Params p;
  p.ints = f.ints();
  return make_many(kQuantize, std::move(results), {w}, std::move(p), s);
}

VmapResult quantize_vmap(const VmapCall& c) {
  VmapResult out{quantized(batch_first(c, 0), format_in(c.params)), {}};
  out.out_axes.assign(out.outputs.size(), 0);
  return out;
}

// Returns the codes, scales (float32 or uint8) and, if affine, biases in the inputs from `first` on.
cpu::GroupedCodes codes_in(const ops::OpContext& c, std::size_t first) {
  cpu::GroupedCodes q;
  q.format = format_of(c);
  q.codes = static_cast<const std::uint8_t*>(c.input(first).data());
  if (q.format.mode == cpu::GroupMode::affine) {
    q.scales = c.data<float>(first + 1);
    q.biases = c.data<float>(first + 2);
  } else {
    q.small_scales = c.data<std::uint8_t>(first + 1);
  }
  return q;
}

void run_dequantize(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  const cpu::GroupedCodes q = codes_in(c, 0);
  cpu::dequantize_groups(q, out.size() / q.format.group, static_cast<float*>(out.mutable_data()));
}

void emit_dequantize(Emitter& e) { e.results<run_dequantize>("Dequantize", e.inputs(), {{"ints", e.params().ints}}); }

array dequantized(const std::vector<array>& inputs, const Format& f, const StreamOrDevice& s = {});

// Sums each group of elements: of gradients times codes for the scale's gradient, of gradients for the bias's.
array over_groups(const array& g, std::int64_t group) {
  Shape apart = g.shape();
  apart.back() /= group;
  apart.push_back(group);
  return sum(reshape(g, std::move(apart)), -1);
}

std::vector<array> dequantize_vjp(const VjpCall& c) {
  const Format f = format_in(c.params);
  const array& g = c.of_outputs[0];
  std::vector<array> out;
  for (const std::size_t i : c.wanted) {
    if (i == 0 || !f.affine()) {
      out.push_back(zeros_of(c.inputs[i].shape(), c.inputs[i].dtype()));
    } else if (i == 1) {
      const array one = ones_like(c.inputs[1]), zero = zeros_like(c.inputs[1]);
      out.push_back(over_groups(multiply(g, dequantized({c.inputs[0], one, zero}, f)), f.group));
    } else {
      out.push_back(over_groups(g, f.group));
    }
  }
  return out;
}

VmapResult dequantize_vmap(const VmapCall& c) {
  std::vector<array> inputs;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) inputs.push_back(batched(c, i));
  return batch_result(dequantized(inputs, format_in(c.params)));
}

const Kind kDequantize{.name = "dequantize", .emit = emit_dequantize, .vjp = dequantize_vjp, .vmap = dequantize_vmap};

array dequantized(const std::vector<array>& inputs, const Format& f, const StreamOrDevice& s) {
  Shape shape = inputs[1].shape();
  shape.back() *= f.group;
  Params p;
  p.ints = f.ints();
  return make(kDequantize, Dtype::float32, std::move(shape), inputs, std::move(p), s);
}

// Inputs: x [batch, m, k], codes [batch, rows, …], scales, biases if affine, positions of x, positions of codes.
void run_product(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  if (out.size() == 0) return;
  const Tensor& x = c.input(0);
  const cpu::GroupedCodes q = codes_in(c, 1);
  const std::size_t positions = q.format.mode == cpu::GroupMode::affine ? 4 : 3;
  cpu::GroupProducts z{out.dim(0), out.dim(1), out.dim(2), x.dim(2), c.attrs().get_int("transpose") != 0};
  z.of_x = c.data<std::int64_t>(positions), z.of_w = c.data<std::int64_t>(positions + 1);
  const std::int64_t matrices = c.input(1).dim(0);
  for (std::int64_t i = 0; i < z.count; ++i) {
    if (z.of_x[i] < 0 || z.of_x[i] >= x.dim(0) || z.of_w[i] < 0 || z.of_w[i] >= matrices) {
      c.fail("positions {} and {} are out of range for {} and {} matrices", z.of_x[i], z.of_w[i], x.dim(0), matrices);
    }
  }
  cpu::matmul_groups(q, z, c.data<float>(0), static_cast<float*>(out.mutable_data()));
}

// params.ints also holds whether the matrix is transposed.
void emit_product(Emitter& e) {
  const auto& ints = e.params().ints;
  e.results<run_product>("QuantizedMatMul", e.inputs(),
                         {{"ints", std::vector<std::int64_t>(ints.begin(), ints.begin() + 3)}, {"transpose", ints[3]}});
}

array quantized_product(const std::vector<array>& inputs, const Format& f, bool transpose, const StreamOrDevice& s = {});

// Computes what quantized_product() does by a product of floats.
array product_of_floats(const std::vector<array>& in, const Format& f, bool transpose) {
  const array w = dequantized({in.begin() + 1, in.end() - 2}, f);
  const array picked = take(w, in.back(), 0);
  return matmul(take(in[0], in[in.size() - 2], 0), transpose ? swapaxes(picked, -1, -2) : picked);
}

std::vector<array> product_vjp(const VjpCall& c) {
  const Format f = format_in(c.params);
  const bool transposed = c.params.ints[3] != 0;
  const array &g = c.of_outputs[0], &of_x = c.inputs[c.inputs.size() - 2];
  std::vector<array> out;
  for (const std::size_t i : c.wanted) {
    if (i == 0) {
      std::vector<array> inputs{g};
      inputs.insert(inputs.end(), c.inputs.begin() + 1, c.inputs.end() - 2);
      inputs.insert(inputs.end(), {iota(g.shape()[0]), c.inputs.back()});
      const array each = quantized_product(inputs, f, !transposed);
      out.push_back(scatter_zeros(c.inputs[0].shape(), {of_x}, expand_dims(each, 1), {0}));
    } else if (f.affine() && (i == 2 || i == 3)) {
      const auto by_parts = [&](const std::vector<array>& in) {
        return std::vector<array>{product_of_floats(in, f, transposed)};
      };
      out.push_back(vjp(by_parts, c.inputs, {g}).second[i]);
    } else {
      out.push_back(zeros_of(c.inputs[i].shape(), c.inputs[i].dtype()));
    }
  }
  return out;
}

const Kind kProduct{.name = "quantized_matmul", .emit = emit_product, .vjp = product_vjp};

array quantized_product(const std::vector<array>& inputs, const Format& f, bool transpose, const StreamOrDevice& s) {
  const array &x = inputs[0], &w = inputs[1];
  const std::int64_t n = transpose ? w.shape()[1] : w.shape()[2] * 32 / f.bits;
  Params p;
  p.ints = f.ints();
  p.ints.push_back(transpose);
  return make(kProduct, Dtype::float32, {inputs.back().shape()[0], x.shape()[1], n}, inputs, std::move(p), s);
}

// Converts codes, scales and biases to the types that kernels take. Throws if they do not fit.
std::vector<array> checked(const char* operation, const array& w, const array& scales, const std::optional<array>& biases,
                           const Format& f, const StreamOrDevice& s) {
  if (w.dtype() != Dtype::uint32 || w.ndim() < 2) {
    refuse(operation, "a quantized matrix of shape {} and type {}; expected uint32", to_string(w.shape()), name(w.dtype()));
  }
  Shape groups = w.shape();
  groups.back() = groups.back() * 32 / f.bits / f.group;
  const bool typed = f.affine() ? is_floating(scales.dtype()) : scales.dtype() == Dtype::uint8;
  if (scales.shape() != groups || !typed || w.shape().back() * 32 != groups.back() * f.group * f.bits) {
    refuse(operation, "scales of shape {} and type {} for a matrix of shape {}, groups of {} and {} bits",
           to_string(scales.shape()), name(scales.dtype()), to_string(w.shape()), f.group, f.bits);
  }
  if (biases.has_value() != f.affine() || (biases && biases->shape() != groups)) {
    refuse(operation, "biases must be given for affine codes alone, with the scales' shape {}", to_string(groups));
  }
  if (!f.affine()) return {w, scales};
  return {w, as_type(scales, Dtype::float32, s), as_type(*biases, Dtype::float32, s)};
}

// Returns the factor of all elements that a global scale stands for.
array of_global(const array& global_scale, const StreamOrDevice& s) {
  if (global_scale.size() != 1)
    refuse("quantize", "a global scale of shape {}; expected one number", to_string(global_scale.shape()));
  return multiply(reshape(as_type(global_scale, Dtype::float32, s), {}, s), array(1.0F / 2688.0F), s);
}

void check_global(const char* operation, const Format& f, const std::optional<array>& global_scale) {
  if (global_scale && f.mode != cpu::GroupMode::nvfp4) refuse(operation, "a global scale; expected with mode nvfp4 only");
}

// Joins the leading axes to one.
array as_batch(const array& a, const StreamOrDevice& s) {
  return reshape(a, {-1, a.shape()[a.shape().size() - 2], a.shape().back()}, s);
}

Dtype product_type(const char* operation, const array& x, const array& scales, const Format& f) {
  if (!is_floating(x.dtype())) refuse(operation, "an operand of type {}; expected floats", name(x.dtype()));
  return f.affine() ? promote(x.dtype(), scales.dtype()) : x.dtype();
}

}  // namespace
}  // namespace detail

std::vector<array> quantize(const array& w, std::optional<int> group_size, std::optional<int> bits, const std::string& mode,
                            const std::optional<array>& global_scale, StreamOrDevice s) {
  const detail::Format f = detail::format_of("quantize", mode, group_size, bits);
  detail::check_global("quantize", f, global_scale);
  if (!is_floating(w.dtype()) || w.ndim() < 2 || w.shape().back() % f.group != 0 || w.shape().back() * f.bits % 32 != 0) {
    detail::refuse("quantize", "an array of shape {} and type {}; expected floats, two axes, the last a multiple of {}",
                   to_string(w.shape()), name(w.dtype()), f.group);
  }
  array wide = detail::as_type(w, Dtype::float32, s);
  if (global_scale) wide = divide(wide, detail::of_global(*global_scale, s), s);
  std::vector<array> out = detail::quantized(wide, f, s);
  for (std::size_t i = 1; f.affine() && i < out.size(); ++i) out[i] = detail::as_type(out[i], w.dtype(), s);
  return out;
}

array dequantize(const array& w, const array& scales, const std::optional<array>& biases, std::optional<int> group_size,
                 std::optional<int> bits, const std::string& mode, const std::optional<array>& global_scale,
                 std::optional<Dtype> dtype, StreamOrDevice s) {
  const detail::Format f = detail::format_of("dequantize", mode, group_size, bits);
  detail::check_global("dequantize", f, global_scale);
  array out = detail::dequantized(detail::checked("dequantize", w, scales, biases, f, s), f, s);
  if (global_scale) out = multiply(out, detail::of_global(*global_scale, s), s);
  return detail::as_type(out, dtype.value_or(f.affine() ? scales.dtype() : Dtype::bfloat16), s);
}

array quantized_matmul(const array& x, const array& w, const array& scales, const std::optional<array>& biases, bool transpose,
                       std::optional<int> group_size, std::optional<int> bits, const std::string& mode, StreamOrDevice s) {
  if (w.ndim() != 2) {
    return gather_qmm(x, w, scales, biases, std::nullopt, std::nullopt, transpose, group_size, bits, mode, std::nullopt, false,
                      s);
  }
  if (x.ndim() == 0) detail::refuse("quantized_matmul", "a scalar is not a matrix");
  // All rows form one matrix.
  const auto widened = [&](const array& a) { return expand_dims(a, 0, s); };
  const array out = gather_qmm(reshape(x, {1, -1, x.shape().back()}, s), widened(w), widened(scales),
                               biases ? std::optional(widened(*biases)) : std::nullopt, std::nullopt, std::nullopt, transpose,
                               group_size, bits, mode, std::nullopt, false, s);
  Shape shape = x.shape();
  shape.back() = out.shape().back();
  return reshape(out, std::move(shape), s);
}

array gather_qmm(const array& x, const array& w, const array& scales, const std::optional<array>& biases,
                 const std::optional<array>& lhs_indices, const std::optional<array>& rhs_indices, bool transpose,
                 std::optional<int> group_size, std::optional<int> bits, const std::string& mode,
                 const std::optional<array>& global_scale, bool, StreamOrDevice s) {
  constexpr const char* kName = "gather_qmm";
  const detail::Format f = detail::format_of(kName, mode, group_size, bits);
  detail::check_global(kName, f, global_scale);
  if (x.ndim() < 2) detail::refuse(kName, "x of shape {}; expected at least two dimensions", to_string(x.shape()));
  const Dtype type = detail::product_type(kName, x, scales, f);
  std::vector<array> parts = detail::checked(kName, w, scales, biases, f, s);
  const std::int64_t k = transpose ? w.shape().back() * 32 / f.bits : w.shape()[w.shape().size() - 2];
  if (x.shape().back() != k) {
    detail::refuse(kName, "x of shape {} and a quantized matrix of shape {} do not fit", to_string(x.shape()),
                   to_string(w.shape()));
  }
  // Without positions, each matrix is taken in turn.
  const auto positions = [&](const std::optional<array>& given, const array& of) {
    if (given) return detail::positions_of(kName, *given, s);
    const Shape lead(of.shape().begin(), of.shape().end() - 2);
    return reshape(detail::iota(element_count(lead)), lead, s);
  };
  const std::vector<array> pair = broadcast_arrays({positions(lhs_indices, x), positions(rhs_indices, w)}, s);
  std::vector<array> inputs{detail::as_batch(detail::as_type(x, Dtype::float32, s), s)};
  for (const array& part : parts) inputs.push_back(detail::as_batch(part, s));
  for (const array& p : pair) inputs.push_back(reshape(p, {-1}, s));
  array out = detail::quantized_product(inputs, f, transpose, s);
  if (global_scale) out = multiply(out, detail::of_global(*global_scale, s), s);
  Shape shape = pair[0].shape();
  shape.insert(shape.end(), out.shape().begin() + 1, out.shape().end());
  return detail::as_type(reshape(out, std::move(shape), s), type, s);
}

array qqmm(const array& x, const array& w, const std::optional<array>& scales, std::optional<int> group_size,
           std::optional<int> bits, const std::string& mode, const std::optional<array>& global_scale_x,
           const std::optional<array>& global_scale_w, StreamOrDevice s) {
  if (mode == "affine") detail::refuse("qqmm", "mode affine; expected mxfp4, mxfp8 or nvfp4");
  const auto rounded = [&](const array& a, const std::optional<array>& global) {
    const std::vector<array> q = quantize(a, group_size, bits, mode, global, s);
    return dequantize(q[0], q[1], std::nullopt, group_size, bits, mode, global, Dtype::float32, s);
  };
  const array weights = scales ? dequantize(w, *scales, std::nullopt, group_size, bits, mode, global_scale_w, Dtype::float32, s)
                               : rounded(w, global_scale_w);
  return detail::as_type(matmul(rounded(x, global_scale_x), swapaxes(weights, -1, -2, s), s), x.dtype(), s);
}

array gather_qqmm(const array& x, const array& w, const std::optional<array>& scales, const std::optional<array>& lhs_indices,
                  const std::optional<array>& rhs_indices, std::optional<int> group_size, std::optional<int> bits,
                  const std::string& mode, const std::optional<array>& global_scale_x, const std::optional<array>& global_scale_w,
                  bool sorted_indices, StreamOrDevice s) {
  if (mode == "affine") detail::refuse("gather_qqmm", "mode affine; expected mxfp4, mxfp8 or nvfp4");
  const std::vector<array> q = quantize(x, group_size, bits, mode, global_scale_x, s);
  const array rounded = dequantize(q[0], q[1], std::nullopt, group_size, bits, mode, global_scale_x, Dtype::float32, s);
  const std::vector<array> weights =
      scales ? std::vector<array>{w, *scales} : quantize(w, group_size, bits, mode, global_scale_w, s);
  return detail::as_type(gather_qmm(rounded, weights[0], weights[1], std::nullopt, lhs_indices, rhs_indices, true, group_size,
                                    bits, mode, global_scale_w, sorted_indices, s),
                         x.dtype(), s);
}

}  // namespace sdx::array
