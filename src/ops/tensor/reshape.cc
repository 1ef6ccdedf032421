// Reshape: ai.onnx 1 (attribute), 5, 13, 14 (allowzero), 19, 21, 23, 24, 25. Flatten: ai.onnx 1, 9, 11, 13, 21, 23, 24, 25.

#include <algorithm>

#include "ops/context.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"
#include "ops/tensor/shape_values.h"
#include "ops/tensor/signatures.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

constexpr std::int64_t kMaxRank = 1024;

// total(have) / total(want), where equal extents cancel: so zeros that were copied do not make the quotient undefined.
Dim quotient(SymShape have, SymShape want) {
  for (auto it = want.begin(); it != want.end();) {
    const auto match = std::find(have.begin(), have.end(), *it);
    if (match == have.end()) {
      ++it;
      continue;
    }
    have.erase(match);
    it = want.erase(it);
  }
  const Dim n = product(have, 0, have.size());
  const Dim d = product(want, 0, want.size());
  if (d.is_const() && d.value() == 0) {
    fail(ErrorCode::invalid_model, "the extent -1 cannot be computed: the others multiply to 0");
  }
  if (n.is_const() && d.is_const() && n.value() % d.value() != 0) {
    fail(ErrorCode::invalid_model, "the extent -1 cannot be computed: {} elements do not divide by {}", n.value(), d.value());
  }
  return floor_div(n, d);
}

// Source: ONNX Reshape-14: 0 copies the input's extent (unless allowzero), and one -1 takes the rest.
SymShape resolve(const SymShape* data, const std::vector<Dim>& wanted, bool allow_zero) {
  SymShape out = wanted;
  std::size_t inferred = wanted.size();
  std::size_t unknowns = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Dim& d = wanted[i];
    if (d.is_unknown()) ++unknowns;
    if (!d.is_const() || d.value() > 0) continue;
    if (d.value() < -1) fail(ErrorCode::invalid_model, "shape {}: extents must be at least -1", to_string(wanted));
    if (d.value() == -1) {
      if (inferred != wanted.size()) fail(ErrorCode::invalid_model, "shape {} has more than one -1", to_string(wanted));
      inferred = i;
      out[i] = Dim::unknown();
    } else if (!allow_zero) {
      if (data != nullptr && i >= data->size()) {
        fail(ErrorCode::invalid_model, "shape {}: 0 copies extent {}, which the input {} lacks", to_string(wanted), i,
             to_string(*data));
      }
      out[i] = data != nullptr ? (*data)[i] : Dim::unknown();
    }
  }
  if (data == nullptr) return out;
  if (inferred == wanted.size() && unknowns == 1) {
    // Whatever the unknown number says, the element count leaves one possibility, unless there are no elements at all.
    inferred = static_cast<std::size_t>(std::find_if(wanted.begin(), wanted.end(), [](const Dim& d) { return d.is_unknown(); }) -
                                        wanted.begin());
    const Dim total = product(*data, 0, data->size());
    if (!total.is_const() || total.value() == 0) return out;
  } else if (unknowns > 0) {
    return out;
  }
  if (inferred < wanted.size()) {
    SymShape others = out;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(inferred));
    if (std::none_of(others.begin(), others.end(), [](const Dim& d) { return d.is_unknown(); })) {
      out[inferred] = quotient(*data, others);
    }
    return out;
  }
  const Dim have = product(*data, 0, data->size());
  const Dim want = product(out, 0, out.size());
  if (have.is_const() && want.is_const() && have.value() != want.value()) {
    fail(ErrorCode::invalid_model, "shape {} needs {} elements; the input {} has {}", to_string(wanted), want.value(),
         to_string(*data), have.value());
  }
  return out;
}

void infer_reshape(InferContext& c) {
  const auto attr = parse<ReshapeAttrs>(c);
  const bool allow_zero = attr.allow_zero;
  if (c.version() < 5) {
    c.output(0, c.dtype(0), resolve(c.shape(0), to_sym(to_vector(attr.shape)), false));
  } else if (const std::vector<Dim>* wanted = c.sym(1)) {
    c.output(0, c.dtype(0), resolve(c.shape(0), *wanted, allow_zero));
  } else {
    const auto rank = known_length(c, 1);
    if (!rank || *rank > kMaxRank) return c.output(0, c.dtype(0));
    c.output(0, c.dtype(0), SymShape(static_cast<std::size_t>(*rank)));
  }
  pass_elements(c);
}

void run_reshape(OpContext& c) {
  const auto attr = parse<ReshapeAttrs>(c);
  const Tensor& data = c.input(0);
  const Ints wanted = c.version() < 5 ? to_vector(attr.shape) : to_ints(c.input(1));
  const SymShape have = to_sym(data.shape());
  const SymShape shape = resolve(&have, to_sym(wanted), attr.allow_zero);
  if (!all_const(shape) || element_count(to_shape(shape)) != data.size()) {
    c.fail("shape {} does not fit the input {}", to_string(wanted), data.type_string());
  }
  copy_all(data, c.output(0, data.dtype(), to_shape(shape)));
}

// Unlike elsewhere, the rank itself is a valid axis.
std::size_t flatten_axis(const FlattenAttrs& attr, std::size_t rank) {
  const std::int64_t axis = attr.axis;
  const auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis > r) {
    fail(ErrorCode::invalid_model, "axis {} is out of range for rank {}; permitted: {} to {}", axis, r, -r, r);
  }
  return static_cast<std::size_t>(axis < 0 ? axis + r : axis);
}

void infer_flatten(InferContext& c) {
  const SymShape* s = c.shape(0);
  if (s == nullptr) return c.output(0, c.dtype(0), SymShape(2));
  const std::size_t axis = flatten_axis(parse<FlattenAttrs>(c), s->size());
  c.output(0, c.dtype(0), SymShape{product(*s, 0, axis), product(*s, axis, s->size())});
}

void run_flatten(OpContext& c) {
  const Tensor& in = c.input(0);
  const std::size_t axis = flatten_axis(parse<FlattenAttrs>(c), in.rank());
  copy_all(in, c.output(0, in.dtype(), {product(in.shape(), 0, axis), product(in.shape(), axis, in.rank())}));
}

}  // namespace

void register_reshape(OpTable& t) {
  OpDef reshape("Reshape", 1);
  reshape.in("data", "T", types::any_tensor).out("reshaped", "T", types::any_tensor).attrs<ReshapeAttrs>();
  t.add(std::move(reshape).infer_with(infer_reshape).run_with(run_reshape));
  OpDef reshape_5("Reshape", 5);
  reshape_5.in("data", "T", types::any_tensor).in("shape", "", types::int64).out("reshaped", "T", types::any_tensor);
  reshape_5.attrs<ReshapeAttrs>();
  t.add(std::move(reshape_5).infer_with(infer_reshape).run_with(run_reshape));
  OpDef flatten("Flatten", 1);
  flatten.in("input", "T", types::any_tensor).out("output", "T", types::any_tensor).attrs<FlattenAttrs>();
  t.add(std::move(flatten).infer_with(infer_flatten).run_with(run_flatten));
}

}  // namespace sdx::ops
