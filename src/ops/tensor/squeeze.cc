// Squeeze, Unsqueeze: ai.onnx 1, 11 (attribute), 13 (axes as an input), 21, 23, 24, 25.

#include <algorithm>

#include "ops/context.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"
#include "ops/tensor/shape_values.h"
#include "ops/tensor/signatures.h"

namespace sdx::ops {
namespace {

// Axes that are absent, or none, as in ONNX Runtime: all extents that are 1. nullopt: not decided yet.
std::optional<SymShape> squeezed(const SymShape& in, const AxesArgument& argument) {
  std::vector<bool> drop(in.size(), false);
  if (argument.given && !argument.axes) return std::nullopt;
  if (argument.given && !argument.axes->empty()) {
    for (const std::int64_t given : *argument.axes) {  // ONNX Runtime takes an axis that is listed twice
      const std::int64_t axis = normalize_axis(given, in.size());
      const Dim& d = in[static_cast<std::size_t>(axis)];
      if (d.is_const() && d.value() != 1) {
        fail(ErrorCode::invalid_model, "axis {} of {} cannot be squeezed: its extent is not 1", axis, to_string(in));
      }
      drop[static_cast<std::size_t>(axis)] = true;
    }
  } else {
    if (!all_const(in)) return std::nullopt;
    for (std::size_t i = 0; i < in.size(); ++i) drop[i] = in[i].value() == 1;
  }
  SymShape out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!drop[i]) out.push_back(in[i]);
  }
  return out;
}

void infer_squeeze(InferContext& c) {
  const SymShape* in = c.shape(0);
  const AxesArgument axes = axes_argument(c, 1, parse<SqueezeAttrs>(c).axes);
  if (in == nullptr) return c.output(0, c.dtype(0));
  if (auto out = squeezed(*in, axes)) {
    c.output(0, c.dtype(0), std::move(*out));
    return pass_elements(c);
  }
  const auto dropped = known_length(c, 1);
  if (axes.given && dropped && *dropped > 0 && *dropped <= static_cast<std::int64_t>(in->size())) {
    return c.output(0, c.dtype(0), SymShape(in->size() - static_cast<std::size_t>(*dropped)));
  }
  c.output(0, c.dtype(0));
}

void run_squeeze(OpContext& c) {
  const Tensor& in = c.input(0);
  const auto out = squeezed(to_sym(in.shape()), axes_argument(c, 1, parse<SqueezeAttrs>(c).axes));
  copy_all(in, c.output(0, in.dtype(), to_shape(out.value())));
}

SymShape unsqueezed(const SymShape& in, const Ints& axes) {
  const std::size_t rank = in.size() + axes.size();
  std::vector<bool> added(rank, false);
  for (const std::int64_t axis : normalize_axes(axes, rank)) added[static_cast<std::size_t>(axis)] = true;
  SymShape out;
  for (std::size_t i = 0, next = 0; i < rank; ++i) out.push_back(added[i] ? Dim(1) : in[next++]);
  return out;
}

void infer_unsqueeze(InferContext& c) {
  const SymShape* in = c.shape(0);
  const AxesArgument axes = axes_argument(c, 1, parse<SqueezeAttrs>(c).axes);
  if (in == nullptr) return c.output(0, c.dtype(0));
  if (axes.axes) {
    c.output(0, c.dtype(0), unsqueezed(*in, *axes.axes));
    return pass_elements(c);
  }
  const auto added = known_length(c, 1);
  if (added && *added <= 64) return c.output(0, c.dtype(0), SymShape(in->size() + static_cast<std::size_t>(*added)));
  c.output(0, c.dtype(0));
}

void run_unsqueeze(OpContext& c) {
  const Tensor& in = c.input(0);
  const AxesArgument axes = axes_argument(c, 1, parse<SqueezeAttrs>(c).axes);
  if (!axes.given) c.fail("'axes' is required");
  copy_all(in, c.output(0, in.dtype(), to_shape(unsqueezed(to_sym(in.shape()), *axes.axes))));
}

void add(OpTable& t, const char* name, const char* result, bool required, InferFn infer, RunFn run) {
  t.add(OpDef(name, 1)
            .in("data", "T", types::any_tensor)
            .out(result, "T", types::any_tensor)
            .attrs<SqueezeAttrs>()
            .infer_with(infer)
            .run_with(run));
  t.add(OpDef(name, 13)
            .in("data", "T", types::any_tensor)
            .in("axes", "", types::int64, required ? Arity::required : Arity::optional)
            .out(result, "T", types::any_tensor)
            .infer_with(infer)
            .run_with(run));
}

}  // namespace

void register_squeeze(OpTable& t) {
  add(t, "Squeeze", "squeezed", false, infer_squeeze, run_squeeze);
  add(t, "Unsqueeze", "expanded", true, infer_unsqueeze, run_unsqueeze);
}

}  // namespace sdx::ops
