#include "ops/conv/conv_geometry.h"

#include <optional>

#include "base/error.h"
#include "ops/conv/signatures.h"

namespace sdx::ops {
namespace {

constexpr std::int64_t kMaxAttr = (std::int64_t{1} << 31) - 1;  // keeps (kernel-1)*dilation+1 below 2^62

std::vector<std::int64_t> checked_list(IntList list, std::string_view name, std::size_t expected, std::int64_t least,
                                       std::int64_t otherwise) {
  if (list.empty()) return std::vector<std::int64_t>(expected, otherwise);
  if (list.size() != expected) {
    fail(ErrorCode::invalid_model, "attribute '{}' must have {} values for this input, received {}", name, expected, list.size());
  }
  for (const std::int64_t v : list) {
    if (v < least || v > kMaxAttr) {
      fail(ErrorCode::invalid_model, "attribute '{}' holds {}; permitted: {} to {}", name, v, least, kMaxAttr);
    }
  }
  return to_vector(list);
}

std::int64_t effective_kernel(const WindowAttrs& w, std::size_t axis) { return (w.kernel[axis] - 1) * w.dilations[axis] + 1; }

WindowAttrs read_pool_attrs(const Attributes& attrs, std::size_t spatial) {
  WindowAttrs w = read_window_attrs(attrs, spatial);
  w.pools = true;
  return w;
}

bool is_same(AutoPad p) { return p == AutoPad::same_upper || p == AutoPad::same_lower; }

// Extents after [N, C]; at least one is needed.
std::size_t spatial_rank(std::size_t rank, std::string_view what) {
  if (rank < 3) {
    fail(ErrorCode::invalid_model, "{} must have rank 3 or more ([N, C, spatial...]), received rank {}", what, rank);
  }
  return rank - 2;
}

void check_same_rank(std::size_t x, std::size_t w) {
  if (x != w) fail(ErrorCode::invalid_model, "X has rank {} and W rank {}: they must be the same", x, w);
}

std::int64_t read_group(const Attributes& attrs) {
  const std::int64_t group = group_of(attrs);
  if (group < 1 || group > kMaxAttr) fail(ErrorCode::invalid_model, "attribute 'group' is {}; it must be positive", group);
  return group;
}

void check_conv_channels(std::int64_t c, std::int64_t m, std::int64_t per_group, std::int64_t group) {
  if (c % group != 0 || c / group != per_group) {
    fail(ErrorCode::invalid_model, "X has {} channels and W takes {} per group with group {}: X must have {} channels", c,
         per_group, group, checked_mul(per_group, group).value_or(-1));
  }
  if (m % group != 0) {
    fail(ErrorCode::invalid_model, "W has {} output channels, which is not a multiple of group {}", m, group);
  }
}

// The weights' spatial extents; empty when one is unknown.
std::vector<std::int64_t> const_kernel(const SymShape& w) {
  std::vector<std::int64_t> kernel;
  for (std::size_t i = 2; i < w.size(); ++i) {
    if (!w[i].is_const()) return {};
    kernel.push_back(w[i].value());
  }
  return kernel;
}

std::vector<std::int64_t> spatial_of(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

struct TransposeAttrs {
  WindowAttrs window;
  std::vector<std::int64_t> output_padding;
  std::vector<std::int64_t> output_shape;  // empty: not given
};

TransposeAttrs read_transpose_attrs(const Attributes& attrs, std::size_t spatial, const std::vector<std::int64_t>& kernel) {
  const auto given = parse<OutputAttrs>(attrs);
  TransposeAttrs t{read_window_attrs(attrs, spatial, kernel, kLeastPad),
                   checked_list(given.output_padding, "output_padding", spatial, 0, 0), to_vector(given.output_shape)};
  // Some exporters write the whole shape, [N, C, spatial...].
  if (t.output_shape.size() == spatial + 2) t.output_shape.erase(t.output_shape.begin(), t.output_shape.begin() + 2);
  if (!t.output_shape.empty() && t.output_shape.size() != spatial) {
    fail(ErrorCode::invalid_model, "attribute 'output_shape' must have {} values, received {}", spatial, t.output_shape.size());
  }
  for (const std::int64_t v : t.output_shape) {
    if (v < 0 || v > kMaxAttr) fail(ErrorCode::invalid_model, "attribute 'output_shape' holds {}, which is not an extent", v);
  }
  return t;
}

// stride*(in-1) + output_padding + effective kernel: the extent that the windows cover before pads are cut off.
std::int64_t covered(const TransposeAttrs& t, std::size_t axis, std::int64_t in) {
  const auto span = checked_mul(t.window.strides[axis], in - 1);
  const auto total = span ? checked_add(*span, t.output_padding[axis] + effective_kernel(t.window, axis)) : std::nullopt;
  if (!total || *total > (std::int64_t{1} << 61)) {
    fail(ErrorCode::invalid_model, "the output extent of spatial axis {} is too large (input {}, stride {})", axis, in,
         t.window.strides[axis]);
  }
  return *total;
}

// Source: ONNX ConvTranspose-11: how auto_pad and output_shape decide pads.
WindowAxis transpose_axis(const TransposeAttrs& t, std::size_t axis, std::int64_t in) {
  const WindowAttrs& w = t.window;
  WindowAxis a{in, 0, w.kernel[axis], w.strides[axis], w.dilations[axis], w.pads[axis], w.pads[axis + w.kernel.size()]};
  const std::int64_t full = covered(t, axis, in);
  if (t.output_shape.empty() && !is_same(w.auto_pad)) {
    a.out = full - a.pad_begin - a.pad_end;
  } else {
    if (t.output_shape.empty()) {
      a.out = in * a.stride;
    } else {
      a.out = t.output_shape[axis];
    }
    const std::int64_t total = std::max<std::int64_t>(full - a.out, 0);  // beyond the windows only the bias is left
    const std::int64_t small = total / 2;
    const bool upper = w.auto_pad == AutoPad::same_upper;
    a.pad_begin = upper ? small : total - small;
    a.pad_end = total - a.pad_begin;
  }
  if (in == 0) a.out = std::max<std::int64_t>(a.out, 0);
  if (a.out < 0) {
    fail(ErrorCode::invalid_model, "pads {} and {} of spatial axis {} are larger than what the windows cover ({})", a.pad_begin,
         a.pad_end, axis, full);
  }
  return a;
}

Dim transpose_extent(const TransposeAttrs& t, std::size_t axis, const Dim& in) {
  const WindowAttrs& w = t.window;
  if (!t.output_shape.empty()) return t.output_shape[axis];
  if (in.is_const()) return transpose_axis(t, axis, in.value()).out;
  if (is_same(w.auto_pad)) return in * Dim(w.strides[axis]);
  const std::int64_t rest = t.output_padding[axis] + effective_kernel(w, axis) - w.pads[axis] - w.pads[axis + w.kernel.size()];
  return (in - Dim(1)) * Dim(w.strides[axis]) + Dim(rest);
}

}  // namespace

AutoPad read_auto_pad(std::string_view word) {
  if (word == "NOTSET" || word.empty()) return AutoPad::notset;
  if (word == "SAME_UPPER") return AutoPad::same_upper;
  if (word == "SAME_LOWER") return AutoPad::same_lower;
  if (word == "VALID") return AutoPad::valid;
  fail(ErrorCode::invalid_model, "attribute 'auto_pad' is '{}'; permitted: NOTSET, SAME_UPPER, SAME_LOWER, VALID", word);
}

WindowAttrs read_window_attrs(const Attributes& attrs, std::size_t spatial, const std::vector<std::int64_t>& kernel,
                              std::int64_t least_pad) {
  const auto given = parse<WindowFields>(attrs);
  WindowAttrs w;
  w.auto_pad = read_auto_pad(given.auto_pad);
  w.ceil_mode = given.ceil_mode;
  if (given.kernel_shape.empty()) {
    w.kernel = kernel;
    if (kernel.empty()) fail(ErrorCode::invalid_model, "required attribute 'kernel_shape' is missing or empty");
    for (const std::int64_t k : kernel) {
      if (k < 1 || k > kMaxAttr) fail(ErrorCode::invalid_model, "W has a kernel extent of {}; it must be positive", k);
    }
  } else {
    w.kernel = checked_list(given.kernel_shape, "kernel_shape", spatial, 1, 1);
    if (!kernel.empty() && kernel != w.kernel) {
      fail(ErrorCode::invalid_model, "attribute 'kernel_shape' {} differs from the weights' spatial shape {}",
           to_string(w.kernel), to_string(kernel));
    }
  }
  if (w.kernel.size() != spatial) {
    fail(ErrorCode::invalid_model, "the kernel has {} axes, the input {} spatial axes", w.kernel.size(), spatial);
  }
  w.strides = checked_list(given.strides, "strides", spatial, 1, 1);
  w.dilations = checked_list(given.dilations, "dilations", spatial, 1, 1);
  w.pads.assign(2 * spatial, 0);
  if (w.auto_pad == AutoPad::notset) w.pads = checked_list(given.pads, "pads", 2 * spatial, least_pad, 0);
  return w;
}

bool crops(const Attributes& attrs) {
  const IntList pads = parse<WindowFields>(attrs).pads;
  return std::any_of(pads.begin(), pads.end(), [](std::int64_t p) { return p < 0; });
}

WindowAxis window_axis(const WindowAttrs& w, std::size_t axis, std::int64_t in) {
  const std::size_t n = w.kernel.size();
  WindowAxis a{in, 0, w.kernel[axis], w.strides[axis], w.dilations[axis], w.pads[axis], w.pads[axis + n]};
  const std::int64_t effective = effective_kernel(w, axis);
  if (is_same(w.auto_pad)) {
    a.out = in == 0 ? 0 : (in - 1) / a.stride + 1;
    const std::int64_t total = in == 0 ? 0 : std::max<std::int64_t>((a.out - 1) * a.stride + effective - in, 0);
    a.pad_begin = w.auto_pad == AutoPad::same_upper ? total / 2 : total - total / 2;
    a.pad_end = total - a.pad_begin;
    return a;
  }
  const std::int64_t room = in + a.pad_begin + a.pad_end - effective;
  if (room < 0 && in == 0) return a;  // nothing in, nothing out
  if (room < 0 && (!w.pools || room <= -2 * a.stride)) {
    fail(ErrorCode::invalid_model,
         "the window of spatial axis {} (kernel {}, dilation {}: {} wide) is larger than the padded input ({} + {} + {}){}", axis,
         a.kernel, a.dilation, effective, in, a.pad_begin, a.pad_end,
         w.pools ? fmt::format(" by two strides ({}) or more", a.stride) : std::string());
  }
  // With VALID and ceil_mode the specification's formula drops the partial window and its shape inference keeps it; declared
  // shapes of models come from the latter. A negative quotient is rounded towards 0, as ONNX Runtime does.
  const bool up = w.ceil_mode || room < 0;
  a.out = (up ? ceil_div(room, a.stride) : room / a.stride) + 1;
  if (w.ceil_mode && room >= 0 && (a.out - 1) * a.stride >= in + a.pad_begin) --a.out;
  return a;
}

Dim window_extent(const WindowAttrs& w, std::size_t axis, const Dim& in) {
  if (in.is_const()) return window_axis(w, axis, in.value()).out;
  const Dim stride(w.strides[axis]);
  if (is_same(w.auto_pad)) return ceil_div(in, stride);
  const Dim room = in + Dim(w.pads[axis] + w.pads[axis + w.kernel.size()] - effective_kernel(w, axis));
  // With ceil_mode the last window may be dropped, depending on the extent: not a polynomial.
  if (w.ceil_mode && w.strides[axis] != 1) return Dim::unknown();
  return floor_div(room, stride) + Dim(1);
}

Shape ConvGeometry::output_shape() const {
  Shape shape{batch, out_channels};
  for (const WindowAxis& a : axes) shape.push_back(a.out);
  return shape;
}

namespace {

std::int64_t product(const std::vector<WindowAxis>& axes, std::int64_t WindowAxis::*extent) {
  std::int64_t p = 1;
  for (const WindowAxis& a : axes) p *= a.*extent;
  return p;
}

}  // namespace

std::int64_t ConvGeometry::in_plane() const { return product(axes, &WindowAxis::in); }
std::int64_t ConvGeometry::out_plane() const { return product(axes, &WindowAxis::out); }
std::int64_t ConvGeometry::kernel_taps() const { return product(axes, &WindowAxis::kernel); }

ConvGeometry conv_geometry(const Attributes& attrs, const Shape& x, const Shape& w) {
  const std::size_t spatial = spatial_rank(x.size(), "X");
  check_same_rank(x.size(), w.size());
  const WindowAttrs window = read_window_attrs(attrs, spatial, spatial_of(w), kLeastPad);
  ConvGeometry g{x[0], x[1], w[0], read_group(attrs), {}};
  check_conv_channels(x[1], w[0], w[1], g.groups);
  for (std::size_t i = 0; i < spatial; ++i) g.axes.push_back(window_axis(window, i, x[i + 2]));
  element_count(g.output_shape());  // refuses products beyond 2^62, zero extents left aside
  return g;
}

SymShape conv_output_shape(const Attributes& attrs, const SymShape& x, const SymShape& w) {
  const std::size_t spatial = spatial_rank(x.size(), "X");
  check_same_rank(x.size(), w.size());
  const std::int64_t group = read_group(attrs);
  if (x[1].is_const() && w[0].is_const() && w[1].is_const()) {
    check_conv_channels(x[1].value(), w[0].value(), w[1].value(), group);
  }
  SymShape out{x[0], w[0]};
  const std::vector<std::int64_t> kernel = const_kernel(w);
  if (kernel.empty() && parse<WindowFields>(attrs).kernel_shape.empty()) {
    out.resize(x.size());
    return out;
  }
  const WindowAttrs window = read_window_attrs(attrs, spatial, kernel, kLeastPad);
  for (std::size_t i = 0; i < spatial; ++i) out.push_back(window_extent(window, i, x[i + 2]));
  return out;
}

ConvGeometry conv_transpose_geometry(const Attributes& attrs, const Shape& x, const Shape& w) {
  const std::size_t spatial = spatial_rank(x.size(), "X");
  check_same_rank(x.size(), w.size());
  const TransposeAttrs t = read_transpose_attrs(attrs, spatial, spatial_of(w));
  ConvGeometry g{x[0], x[1], 0, read_group(attrs), {}};
  if (x[1] != w[0] || x[1] % g.groups != 0) {
    fail(ErrorCode::invalid_model, "X has {} channels, W {} and group is {}: the first two must agree and be a multiple of group",
         x[1], w[0], g.groups);
  }
  const auto channels = checked_mul(w[1], g.groups);
  if (!channels) fail(ErrorCode::invalid_model, "{} output channels in each of {} groups are too many", w[1], g.groups);
  g.out_channels = *channels;
  for (std::size_t i = 0; i < spatial; ++i) g.axes.push_back(transpose_axis(t, i, x[i + 2]));
  element_count(g.output_shape());  // refuses products beyond 2^62, zero extents left aside
  return g;
}

SymShape conv_transpose_output_shape(const Attributes& attrs, const SymShape& x, const SymShape& w) {
  const std::size_t spatial = spatial_rank(x.size(), "X");
  check_same_rank(x.size(), w.size());
  const std::int64_t group = read_group(attrs);
  if (x[1].is_const() && w[0].is_const() && x[1].value() != w[0].value()) {
    fail(ErrorCode::invalid_model, "X has {} channels and W {}: they must be the same", x[1].value(), w[0].value());
  }
  SymShape out{x[0], w[1] * Dim(group)};
  const std::vector<std::int64_t> kernel = const_kernel(w);
  if (kernel.empty() && parse<WindowFields>(attrs).kernel_shape.empty()) {
    out.resize(x.size());
    return out;
  }
  const TransposeAttrs t = read_transpose_attrs(attrs, spatial, kernel);
  for (std::size_t i = 0; i < spatial; ++i) out.push_back(transpose_extent(t, i, x[i + 2]));
  return out;
}

SymShape pool_output_shape(const Attributes& attrs, const SymShape& x) {
  const std::size_t spatial = spatial_rank(x.size(), "X");
  const WindowAttrs window = read_pool_attrs(attrs, spatial);
  SymShape out{x[0], x[1]};
  for (std::size_t i = 0; i < spatial; ++i) out.push_back(window_extent(window, i, x[i + 2]));
  return out;
}

std::vector<WindowAxis> pool_axes(const Attributes& attrs, const Shape& x) {
  const std::size_t spatial = spatial_rank(x.size(), "X");
  const WindowAttrs window = read_pool_attrs(attrs, spatial);
  std::vector<WindowAxis> axes;
  for (std::size_t i = 0; i < spatial; ++i) axes.push_back(window_axis(window, i, x[i + 2]));
  return axes;
}

// Pads below the kernel's extent leave no window without input, unless dilated taps step over it.
bool may_average_nothing(const WindowAttrs& w) {
  for (std::size_t i = 0; i < w.kernel.size(); ++i) {
    const bool padded = w.pads[i] > 0 || w.pads[i + w.kernel.size()] > 0 || w.auto_pad != AutoPad::notset || w.ceil_mode;
    if (padded && w.dilations[i] != 1) return true;
    if (w.pads[i] >= w.kernel[i] || w.pads[i + w.kernel.size()] >= w.kernel[i]) return true;
  }
  return false;
}

}  // namespace sdx::ops
