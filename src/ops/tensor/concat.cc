// Concat: ai.onnx 1 (axis defaults to 1), 4, 11, 13. com.microsoft ConcatTraining: also says how long each input is.

#include <algorithm>

#include "ops/context.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/join.h"
#include "ops/tensor/movement.h"
#include "ops/tensor/shape_values.h"
#include "ops/tensor/signatures.h"

namespace sdx::ops {
namespace {

// Joins the elements of inputs that are rank-1 integers; unknown elements stay unknown.
void concat_elements(InferContext& c) {
  std::vector<Dim> elements;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    if (const auto* known = c.sym(i)) {
      elements.insert(elements.end(), known->begin(), known->end());
      continue;
    }
    const auto length = known_length(c, i);
    if (!length || *length > 64 || !is_integer(c.dtype(i))) return;
    elements.resize(elements.size() + static_cast<std::size_t>(*length));
  }
  if (elements.size() <= 1024) c.output_sym(0, std::move(elements));
}

void infer_concat(InferContext& c) {
  DataType elem = DataType::undefined;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    if (elem == DataType::undefined) elem = c.dtype(i);
  }
  std::vector<const SymShape*> shapes;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    if (c.shape(i) != nullptr) shapes.push_back(c.shape(i));
  }
  if (shapes.empty()) return c.output(0, elem);
  JoinedSym out = joined(shapes, parse<ConcatAttrs>(c).along());
  if (shapes.size() < c.num_inputs()) out.shape[out.axis] = Dim::unknown();
  const std::size_t rank = out.shape.size();
  c.output(0, elem, std::move(out.shape));
  if (rank == 1) concat_elements(c);
}

void run_concat(OpContext& c) {
  const DataType dtype = c.input(0).dtype();
  std::vector<const Shape*> shapes;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    shapes.push_back(&c.input(i).shape());
    if (c.input(i).dtype() != dtype) c.fail("input {} is {}, but input 0 is {}", i, c.input(i).type_string(), name(dtype));
  }
  const auto [shape, axis] = joined(shapes, parse<ConcatAttrs>(c).along());
  produce(c, 0, dtype, shape, [&, &shape = shape, axis = axis](Tensor& out) {
    const std::int64_t outer = product(shape, 0, axis);
    const std::int64_t inner = product(shape, axis + 1, shape.size());
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < c.num_inputs(); ++i) {
      if (c.input(i).size() == 0) continue;
      const Tensor in = widened(c.input(i));
      const std::int64_t run = in.dim(axis) * inner;
      copy_strided(in, 0, out, offset, {{outer, run, shape[axis] * inner}, {run, 1, 1}});
      offset += run;
    }
  });
}

void infer_concat_training(InferContext& c) {
  infer_concat(c);
  if (!c.has_output(1)) return;
  c.output(1, DataType::int64, SymShape{Dim(static_cast<std::int64_t>(c.num_inputs()))});
  std::vector<Dim> lengths;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    const SymShape* s = c.shape(i);
    if (s == nullptr) return;
    lengths.push_back((*s)[static_cast<std::size_t>(normalize_axis(parse<ConcatAttrs>(c).along(), s->size()))]);
  }
  c.output_sym(1, std::move(lengths));
}

void run_concat_training(OpContext& c) {
  run_concat(c);
  if (!c.wants_output(1)) return;
  const auto axis = static_cast<std::size_t>(normalize_axis(parse<ConcatAttrs>(c).along(), c.input(0).rank()));
  auto lengths = c.output(1, DataType::int64, {static_cast<std::int64_t>(c.num_inputs())}).mutable_values<std::int64_t>();
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = c.input(i).dim(axis);
}

void add(OpTable& t, int since) {
  t.add(OpDef("Concat", since)
            .in("inputs", "T", types::any_tensor, Arity::variadic)
            .out("concat_result", "T", types::any_tensor)
            .attrs<ConcatAttrs>()
            .infer_with(infer_concat)
            .run_with(run_concat));
}

}  // namespace

void register_concat(OpTable& t) {
  add(t, 1);
  add(t, 4);
  t.add(OpDef("com.microsoft", "ConcatTraining", 1)
            .in("inputs", "T", types::any_tensor, Arity::variadic)
            .out("concat_result", "T", types::any_tensor)
            .out("per_input_length", "Tint", types::int64, Arity::optional)
            .attrs<ConcatAttrs>()
            .infer_with(infer_concat_training)
            .run_with(run_concat_training));
}

}  // namespace sdx::ops
