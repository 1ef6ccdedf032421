// Pad: ai.onnx 1, 2 (attributes), 11 (inputs), 13, 18 (axes), 19 (wrap), 21, 23, 24, 25; com.microsoft 1.

#include <algorithm>

#include "base/checked.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"
#include "ops/tensor/padded_copy.h"
#include "ops/tensor/shape_values.h"
#include "ops/tensor/signatures.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

Padding mode_of(const PadAttrs& attr) {
  const std::string_view mode = attr.mode;
  if (mode == "constant") return Padding::constant;
  if (mode == "reflect") return Padding::reflect;
  if (mode == "edge") return Padding::edge;
  if (mode == "wrap") return Padding::wrap;
  fail(ErrorCode::invalid_model, "'mode' must be constant, reflect, edge or wrap; received {}", mode);
}

bool is_legacy(const Node& node) { return node.domain != "com.microsoft" && node.version < 11; }

// Begin and end padding for each of `rank` axes, from the compact list (all begins, then all ends) for `axes`.
template <class T>
void spread(const std::vector<T>& pads, const Ints& axes, std::size_t rank, std::vector<T>& begin, std::vector<T>& end) {
  begin.assign(rank, T(0));
  end.assign(rank, T(0));
  if (pads.size() != 2 * axes.size()) {
    fail(ErrorCode::invalid_model, "'pads' must hold {} numbers (begin and end for each axis), received {}", 2 * axes.size(),
         pads.size());
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    begin[static_cast<std::size_t>(axes[i])] = pads[i];
    end[static_cast<std::size_t>(axes[i])] = pads[i + axes.size()];
  }
}

Ints all_axes(std::size_t rank) {
  Ints axes;
  for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

void infer_pad(InferContext& c) {
  const auto attr = parse<PadAttrs>(c);
  mode_of(attr);
  const SymShape* in = c.shape(0);
  if (in == nullptr) return c.output(0, c.dtype(0));
  std::optional<std::vector<Dim>> pads;
  if (is_legacy(c.node())) {
    pads = to_sym(to_vector(attr.pads));
  } else if (c.sym(1) != nullptr) {
    pads = *c.sym(1);
  } else if (const auto numbers = known_ints(c, 1)) {
    pads = to_sym(*numbers);
  }
  std::optional<Ints> axes = all_axes(in->size());
  if (c.has_input(3)) {
    axes = known_ints(c, 3);
    if (axes) axes = normalize_axes(*axes, in->size());
  }
  if (!pads || !axes) return c.output(0, c.dtype(0), SymShape(in->size()));
  std::vector<Dim> begin;
  std::vector<Dim> end;
  spread(*pads, *axes, in->size(), begin, end);
  SymShape out;
  for (std::size_t i = 0; i < in->size(); ++i) {
    out.push_back((*in)[i] + begin[i] + end[i]);
    if (out[i].is_const() && out[i].value() < 0) {
      c.fail("axis {} of {} is cropped by more than its extent", i, to_string(*in));
    }
  }
  c.output(0, c.dtype(0), std::move(out));
}

PaddedAxis pad_axis(std::int64_t in, std::int64_t begin, std::int64_t end, std::size_t axis) {
  PaddedAxis a;
  // A negative pad crops; positive pads then mirror or repeat the rest.
  const std::int64_t crop_begin = begin < 0 ? (begin == INT64_MIN ? INT64_MAX : -begin) : 0;
  const std::int64_t crop_end = end < 0 ? (end == INT64_MIN ? INT64_MAX : -end) : 0;
  const auto partial = checked_add(in, begin);
  const auto extent = partial ? checked_add(*partial, end) : std::nullopt;
  if (!extent || *extent < 0) {
    fail(ErrorCode::runtime_failure, "axis {} of extent {} cannot be padded by {} and {}", axis, in, begin, end);
  }
  a.extent = *extent;
  a.before = std::max<std::int64_t>(0, begin);
  a.first = std::min(crop_begin, in);
  a.inside = std::max<std::int64_t>(0, in - a.first - std::min(crop_end, in));
  if (crop_begin > in || crop_end > in) {  // all input is cropped away and padding as well: only a fill is left
    a.inside = 0;
    a.before = a.extent;
  }
  return a;
}

// `value` holds one element of the data's type (codes for sub-byte types).
void pad(OpContext& c, Padding mode, const Ints& begin, const Ints& end, const Tensor& value) {
  const Tensor in = widened(c.input(0));
  std::vector<PaddedAxis> axes;
  Shape shape;
  for (std::size_t i = 0; i < in.rank(); ++i) {
    axes.push_back(pad_axis(in.dim(i), begin[i], end[i], i));
    shape.push_back(axes[i].extent);
    if (mode != Padding::constant && axes[i].inside == 0 && axes[i].extent > 0) {
      c.fail("axis {} has no element that could be repeated into the padding; use mode constant", i);
    }
  }
  produce(c, 0, c.input(0).dtype(), shape, [&](Tensor& out) { copy_padded(in, out, axes, mode, value); });
}

void run_pad(OpContext& c) {
  const auto attr = parse<PadAttrs>(c);
  const Tensor& in = c.input(0);
  Ints pads;
  Ints axes = all_axes(in.rank());
  Tensor value(in.dtype(), Shape{1});
  fill_zero(value);
  if (is_legacy(c.node())) {
    pads = to_vector(attr.pads);
    if (in.dtype() != DataType::string) set_element(value, 0, static_cast<double>(attr.value));
  } else {
    pads = to_ints(c.input(1));
    if (c.has_input(3)) axes = normalize_axes(to_ints(c.input(3)), in.rank());
    if (const Tensor* given = c.optional_input(2); given != nullptr && given->size() > 0) {
      if (given->size() != 1 || given->dtype() != in.dtype()) {
        c.fail("'constant_value' must be one {}, received {}", name(in.dtype()), given->type_string());
      }
      value = *given;
    }
  }
  Ints begin;
  Ints end;
  spread(pads, axes, in.rank(), begin, end);
  pad(c, mode_of(attr), begin, end, widened(value));
}

OpDef legacy(int since) {
  return OpDef("Pad", since).in("data", "T", types::any_tensor).out("output", "T", types::any_tensor).attrs<PadAttrs>();
}

OpDef with_inputs(const char* domain, int since, TypeSet pads_type) {
  OpDef def(domain, "Pad", since);
  def.in("data", "T", types::any_tensor)
      .in("pads", "", pads_type)
      .in("constant_value", "T", types::any_tensor, Arity::optional)
      .in("axes", "Tind", types::indices, Arity::optional)
      .out("output", "T", types::any_tensor)
      .attrs<PadAttrs>();
  return def;
}

}  // namespace

void register_pad(OpTable& t) {
  t.add(legacy(1).infer_with(infer_pad).run_with(run_pad));
  t.add(legacy(2).infer_with(infer_pad).run_with(run_pad));
  t.add(with_inputs("", 11, types::int64).infer_with(infer_pad).run_with(run_pad));
  t.add(with_inputs("com.microsoft", 1, types::int64).infer_with(infer_pad).run_with(run_pad));
}

}  // namespace sdx::ops
