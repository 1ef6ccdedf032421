// Operators of com.microsoft that hold training graphs together: BroadcastGradientArgs, Group, PassThrough, YieldOp,
// ZeroGradient, Scale, MixedPrecisionScale, ReduceAllL2.

#include <cmath>

#include "ops/context.h"
#include "ops/math/elementwise.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/tensor/movement.h"
#include "ops/training/ort/signatures.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

// --- BroadcastGradientArgs: over which axes the gradients of two operands are summed, last to first ---------------------

// The operand that was broadcast along an axis, counted from the end; -1: none was.
int broadcast_operand(const Ints (&shapes)[2], std::size_t from_end) {
  const auto extent = [&](const Ints& s) { return from_end < s.size() ? s[s.size() - 1 - from_end] : std::int64_t{1}; };
  if (from_end >= shapes[0].size()) return 0;
  if (from_end >= shapes[1].size()) return 1;
  if (extent(shapes[0]) == extent(shapes[1])) return -1;
  if (extent(shapes[0]) == 1) return 0;
  if (extent(shapes[1]) == 1) return 1;
  fail(ErrorCode::runtime_failure, "shapes {} and {} cannot be broadcast to each other", to_string(shapes[0]),
       to_string(shapes[1]));
}

void infer_broadcast_axes(InferContext& c) {
  for (std::size_t i = 0; i < c.num_outputs(); ++i) c.output(i, DataType::int64, SymShape{Dim::unknown()});
}

void run_broadcast_axes(OpContext& c) {
  const Ints shapes[2] = {to_ints(c.input(0)), to_ints(c.input(1))};
  const std::size_t rank = std::max(shapes[0].size(), shapes[1].size());
  Ints axes[2];
  for (std::size_t i = 0; i < rank; ++i) {
    const int operand = broadcast_operand(shapes, i);
    if (operand >= 0) axes[operand].push_back(static_cast<std::int64_t>(rank - 1 - i));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (c.wants_output(i)) c.set_output(i, from_ints(axes[i]));
  }
}

// --- order alone --------------------------------------------------------------------------------------------------------

void infer_group(InferContext& c) { c.output(0, DataType::boolean, SymShape{Dim(1)}); }

void run_group(OpContext& c) { *static_cast<bool*>(c.output(0, DataType::boolean, {1}).mutable_data()) = true; }

void infer_pass_through(InferContext& c) {
  if (c.num_outputs() > c.num_inputs()) c.fail("{} outputs for {} inputs", c.num_outputs(), c.num_inputs());
  for (std::size_t i = 0; i < c.num_outputs(); ++i) {
    if (c.has_input(i)) c.output(i, c.type(i));
  }
}

void run_pass_through(OpContext& c) {
  for (std::size_t i = 0; i < c.num_outputs(); ++i) {
    if (c.wants_output(i)) c.set_output(i, c.input_value(i));
  }
}

// --- YieldOp: where a forward graph hands its results out and takes their gradients in ----------------------------------

struct YieldAttrs {
  IntList non_differentiable_outputs, full_shape_outputs;

  void fields(auto& f) {
    f("non_differentiable_outputs", non_differentiable_outputs);
    f.required("full_shape_outputs", full_shape_outputs);
  }
};

void infer_yield(InferContext& c) {
  const IntList without = parse<YieldAttrs>(c).non_differentiable_outputs;
  std::size_t output = 0;
  for (std::size_t i = 0; i < c.num_inputs() && output < c.num_outputs(); ++i) {
    if (std::find(without.begin(), without.end(), static_cast<std::int64_t>(i)) != without.end()) continue;
    if (c.has_input(i)) c.output(output, c.type(i));
    ++output;
  }
}

void run_yield(OpContext& c) {
  c.fail(
      "YieldOp waits for gradients from the program that called the forward part, and a run of the whole graph has none; run the "
      "forward model and differentiate it by Gradient, or train with a loss in the graph");
}

// --- scales and norms ---------------------------------------------------------------------------------------------------

void run_zero(OpContext& c) { fill_zero(c.output(0, c.input(0).dtype(), c.input(0).shape())); }

double scale_factor(OpContext& c, std::size_t i) {
  if (c.input(i).size() != 1) c.fail("the scale must be one value, received {}", c.input(i).type_string());
  return element_as_double(c.input(i), 0);
}

template <class C>
void scale_to(const Tensor& in, double factor, Tensor& out) {
  const FloatInput<C> x(in);
  FloatOutput<C> y(out);
  for (std::int64_t i = 0; i < in.size(); ++i) y[i] = x[i] * static_cast<C>(factor);
  y.store();
}

void run_scale(OpContext& c) {
  const double scale = scale_factor(c, 1);
  if (scale == 0) c.fail("the scale must not be 0");
  const Tensor& in = c.input(0);
  Tensor& out = c.output(0, in.dtype(), in.shape());
  const double factor = parse<ScaleAttrs>(c).scale_down ? 1 / scale : scale;
  dispatch_compute(in.dtype(), "Scale", [&](auto tag) { scale_to<typename decltype(tag)::type>(in, factor, out); });
}

struct MixedScaleAttrs {
  std::int64_t to = 0;
  bool fuse_outputs = false;  // all in one vector

  void fields(auto& f) {
    f.required("to", to);
    f("fuse_outputs", fuse_outputs);
  }
  DataType type() const {
    for (const DataType t : {DataType::float32, DataType::float64, DataType::float16, DataType::bfloat16}) {
      if (to == static_cast<std::int64_t>(t)) return t;
    }
    fail(ErrorCode::invalid_model, "attribute 'to' is {}; permitted: 1 (float), 10, 11, 16", to);
  }
};

void infer_mixed_scale(InferContext& c) {
  const auto attr = parse<MixedScaleAttrs>(c);
  if (attr.fuse_outputs) return c.output(0, attr.type(), SymShape{Dim::unknown()});
  for (std::size_t i = 0; i < c.num_outputs(); ++i) {
    const SymShape* s = c.shape(i + 1);
    if (s != nullptr) c.output(i, attr.type(), *s);
    if (s == nullptr) c.output(i, attr.type());
  }
}

void run_mixed_scale(OpContext& c) {
  const auto attr = parse<MixedScaleAttrs>(c);
  const double factor = scale_factor(c, 0);
  std::vector<double> all;
  for (std::size_t i = 1; i < c.num_inputs(); ++i) {
    const Tensor& in = c.input(i);
    if (attr.fuse_outputs) {
      for (std::int64_t k = 0; k < in.size(); ++k) all.push_back(element_as_double(in, k) * factor);
    } else if (c.wants_output(i - 1)) {
      scale_to<double>(in, factor, c.output(i - 1, attr.type(), in.shape()));
    }
  }
  if (attr.fuse_outputs) store_floats(all.data(), c.output(0, attr.type(), {static_cast<std::int64_t>(all.size())}));
}

void infer_norm(InferContext& c) { c.output(0, c.dtype(0), SymShape{}); }

void run_norm(OpContext& c) {
  double sum = 0;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    const FloatInput<double> x(c.input(i));
    for (std::int64_t k = 0; k < c.input(i).size(); ++k) sum += x[k] * x[k];
  }
  const double norm = std::sqrt(sum);
  store_floats(&norm, c.output(0, c.input(0).dtype(), {}));
}

OpDef ms(const char* name) { return {"com.microsoft", name, 1}; }

}  // namespace

void register_training_graph(OpTable& t) {
  const TypeSet f = types::floats, all = types::any_tensor;
  t.add(ms("BroadcastGradientArgs")
            .in("a_shape b_shape", "T", types::int64)
            .out("a_axes b_axes", "T", types::int64, Arity::optional)
            .infer_with(infer_broadcast_axes)
            .run_with(run_broadcast_axes));
  t.add(ms("Group")
            .in("input_tensors", "", all, Arity::variadic)
            .out("done", "B", types::boolean)
            .infer_with(infer_group)
            .run_with(run_group));
  t.add(ms("PassThrough")
            .in("inputs", "", all, Arity::variadic)
            .out("outputs", "", all, Arity::variadic)
            .infer_with(infer_pass_through)
            .run_with(run_pass_through));
  OpDef yield = ms("YieldOp");
  yield.in("module_outputs", "", all, Arity::variadic).out("module_outputs_grad", "", all, Arity::variadic).attrs<YieldAttrs>();
  t.add(std::move(yield).infer_with(infer_yield).run_with(run_yield).random());  // not folded: what it gives comes from outside
  t.add(ms("ZeroGradient")
            .in("old_gradient", "T1", f)
            .in("reset_signal", "", all)
            .out("zero_gradient", "T1", f)
            .infer_with(infer_same)
            .run_with(run_zero));
  t.add(ms("Scale")
            .in("input", "T", f)
            .in("scale", "ScaleT", f | types::indices)
            .out("output", "T", f)
            .attrs<ScaleAttrs>()
            .infer_with(infer_same)
            .run_with(run_scale));
  t.add(ms("MixedPrecisionScale")
            .in("S", "ScaleT", f)
            .in("X", "SrcT", f, Arity::variadic)
            .out("Y", "DstT", f, Arity::variadic)
            .attrs<MixedScaleAttrs>()
            .infer_with(infer_mixed_scale)
            .run_with(run_mixed_scale));
  t.add(ms("ReduceAllL2").in("X", "TIn", f, Arity::variadic).out("Y", "TOut", f).infer_with(infer_norm).run_with(run_norm));
}

}  // namespace sdx::ops
