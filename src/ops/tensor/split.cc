// Split: ai.onnx 1 (sizes as an attribute or an input), 2, 11, 13 (input), 18 (num_outputs).
// com.microsoft SplitTraining: sizes as an input.

#include <algorithm>

#include "base/checked.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"
#include "ops/tensor/shape_values.h"
#include "ops/tensor/signatures.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

void check_sizes(const Ints& sizes, const Dim& extent, std::size_t outputs) {
  if (sizes.size() != outputs) {
    fail(ErrorCode::invalid_model, "'split' lists {} sizes for {} outputs", sizes.size(), outputs);
  }
  std::int64_t sum = 0;
  for (const std::int64_t s : sizes) {
    const auto next = checked_add(sum, s);
    if (s < 0 || !next) fail(ErrorCode::invalid_model, "'split' {} has a size out of range", to_string(sizes));
    sum = *next;
  }
  if (extent.is_const() && sum != extent.value()) {
    fail(ErrorCode::invalid_model, "'split' {} adds up to {}; the axis has extent {}", to_string(sizes), sum, extent.value());
  }
}

// Sizes when none are given. Before opset 18 the parts are equal; from 18 on the last ones may be smaller.
SymShape even_sizes(const Dim& extent, std::size_t outputs, int version) {
  const auto n = static_cast<std::int64_t>(outputs);
  if (n == 0) fail(ErrorCode::invalid_model, "the node has no outputs");
  if (!extent.is_const()) {
    SymShape sizes(outputs);
    const Dim part = version >= 18 ? ceil_div(extent, n) : floor_div(extent, n);
    // From opset 18 on, a part is the size of every output only if it surely divides the extent.
    if (version < 18 || part * n == extent) std::fill(sizes.begin(), sizes.end(), part);
    return sizes;
  }
  const std::int64_t e = extent.value();
  if (version < 18 && e % n != 0) {
    fail(ErrorCode::invalid_model, "extent {} cannot be split into {} equal parts; give 'split'", e, n);
  }
  const std::int64_t part = ceil_div(e, n);
  SymShape sizes;
  for (std::int64_t i = 0, left = e; i < n; ++i) {
    sizes.emplace_back(std::min(part, left));
    left -= std::min(part, left);
  }
  return sizes;
}

void check_num_outputs(const SplitAttrs& attr, std::size_t outputs, bool has_sizes) {
  if (!attr.num_outputs) return;
  if (has_sizes) fail(ErrorCode::invalid_model, "'split' and 'num_outputs' exclude each other");
  const std::int64_t n = *attr.num_outputs;
  if (n != static_cast<std::int64_t>(outputs)) {
    fail(ErrorCode::invalid_model, "'num_outputs' is {}, but the node has {} outputs", n, outputs);
  }
}

Ints as_ints(const Tensor& sizes) {
  Ints out;
  for (std::int64_t i = 0; i < sizes.size(); ++i) out.push_back(element_as_int(sizes, i));
  return out;
}

// In opset 1 the sizes have the type of the data, so they may be floats.
AxesArgument sizes_argument(const InferContext& c, const SplitAttrs& attr) {
  if (c.version() < 2 && !attr.split && c.value(1) != nullptr) return {true, as_ints(*c.value(1))};
  return axes_argument(c, 1, attr.split);
}

AxesArgument sizes_argument(const OpContext& c, const SplitAttrs& attr) {
  if (c.version() < 2 && !attr.split && c.has_input(1)) return {true, as_ints(c.input(1))};
  return axes_argument(c, 1, attr.split);
}

void infer_split(InferContext& c) {
  const auto attr = parse<SplitAttrs>(c);
  const AxesArgument given = sizes_argument(c, attr);
  check_num_outputs(attr, c.num_outputs(), given.given);
  const SymShape* in = c.shape(0);
  if (in == nullptr) {
    for (std::size_t i = 0; i < c.num_outputs(); ++i) c.output(i, c.dtype(0));
    return;
  }
  const auto axis = static_cast<std::size_t>(normalize_axis(attr.axis, in->size()));
  SymShape sizes(c.num_outputs());
  if (given.axes) {
    check_sizes(*given.axes, (*in)[axis], c.num_outputs());
    sizes = to_sym(*given.axes);
  } else if (given.given) {
    const std::vector<Dim>* elements = c.sym(1);
    if (elements != nullptr && elements->size() == sizes.size()) sizes = *elements;
  } else {
    sizes = even_sizes((*in)[axis], c.num_outputs(), c.version());
  }
  for (std::size_t i = 0; i < c.num_outputs(); ++i) {
    SymShape out = *in;
    out[axis] = sizes[i];
    c.output(i, c.dtype(0), std::move(out));
  }
  const std::vector<Dim>* elements = c.sym(0);
  if (elements == nullptr || in->size() != 1 || !all_const(sizes)) return;
  std::size_t at = 0;
  for (std::size_t i = 0; i < c.num_outputs(); ++i) {
    const auto n = static_cast<std::size_t>(sizes[i].value());
    if (n > elements->size() - at) return;
    const auto begin = elements->begin() + static_cast<std::ptrdiff_t>(at);
    c.output_sym(i, std::vector<Dim>(begin, begin + static_cast<std::ptrdiff_t>(n)));
    at += n;
  }
}

void run_split(OpContext& c) {
  const auto attr = parse<SplitAttrs>(c);
  const Tensor in = widened(c.input(0));
  const auto axis = static_cast<std::size_t>(normalize_axis(attr.axis, in.rank()));
  const AxesArgument given = sizes_argument(c, attr);
  check_num_outputs(attr, c.num_outputs(), given.given);
  if (given.given) check_sizes(*given.axes, in.dim(axis), c.num_outputs());
  const Ints sizes = given.given ? *given.axes : to_shape(even_sizes(in.dim(axis), c.num_outputs(), c.version()));
  const std::int64_t outer = product(in.shape(), 0, axis);
  const std::int64_t inner = product(in.shape(), axis + 1, in.rank());
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Shape shape = in.shape();
    shape[axis] = sizes[i];
    const std::int64_t run = sizes[i] * inner;
    if (c.wants_output(i)) {
      produce(c, i, c.input(0).dtype(), shape, [&](Tensor& out) {
        copy_strided(in, offset, out, 0, {{outer, in.dim(axis) * inner, run}, {run, 1, 1}});
      });
    }
    offset += run;
  }
}

OpDef split(int since) {
  OpDef def("Split", since);
  def.in("input", "T", types::any_tensor).out("outputs", "T", types::any_tensor, Arity::variadic).attrs<SplitAttrs>();
  return def;
}

}  // namespace

void register_split(OpTable& t) {
  t.add(split(1).in("split", "T", types::any_tensor, Arity::optional).infer_with(infer_split).run_with(run_split));
  t.add(split(2).infer_with(infer_split).run_with(run_split));
  t.add(split(13).in("split", "", types::int64, Arity::optional).infer_with(infer_split).run_with(run_split));
  t.add(OpDef("com.microsoft", "SplitTraining", 1)
            .in("input", "T", types::any_tensor)
            .in("split", "", types::int64)
            .out("outputs", "T", types::any_tensor, Arity::variadic)
            .attrs<SplitAttrs>()
            .infer_with(infer_split)
            .run_with(run_split));
  t.add(split(18).in("split", "", types::int64, Arity::optional).infer_with(infer_split).run_with(run_split));
}

}  // namespace sdx::ops
