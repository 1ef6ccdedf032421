// ConcatFromSequence: ai.onnx 11. SplitToSequence: ai.onnx 11, 24.

#include <algorithm>
#include <optional>

#include "base/checked.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/sequence/signatures.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/join.h"
#include "ops/tensor/movement.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

void infer_concat(InferContext& c) {
  const auto attr = parse<ConcatFromSequenceAttrs>(c);
  const Type& s = c.type(0);
  if (!s.inner || !s.inner->is_tensor()) return;
  if (!s.inner->shape) return c.output(0, s.inner->elem);
  SymShape out = *s.inner->shape;
  const bool stacks = attr.new_axis;
  const auto axis = normalize_axis(attr.axis, out.size() + (stacks ? 1 : 0));
  if (stacks) {
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis), Dim());
  } else {
    out[static_cast<std::size_t>(axis)] = Dim::unknown();
  }
  c.output(0, s.inner->elem, std::move(out));
}

void run_concat(OpContext& c) {
  const auto attr = parse<ConcatFromSequenceAttrs>(c);
  const Value& v = c.input_value(0);
  if (!v.is_sequence() || v.sequence().items.empty()) c.fail("expected a sequence with items, received {}", v.type_string());
  const std::vector<Value>& items = v.sequence().items;
  const Tensor& first = items[0].tensor();
  const bool stacks = attr.new_axis;
  const auto place = stacks ? normalize_axis(attr.axis, first.rank() + 1) : 0;
  std::vector<Shape> shapes;
  for (const Value& item : items) {
    const Tensor& t = item.tensor();
    if (t.dtype() != first.dtype()) c.fail("items {} and {} have different types", first.type_string(), t.type_string());
    shapes.push_back(t.shape());
    if (stacks && t.rank() != first.rank()) c.fail("items {} and {} cannot be stacked", first.type_string(), t.type_string());
    if (stacks) shapes.back().insert(shapes.back().begin() + static_cast<std::ptrdiff_t>(place), 1);
  }
  std::vector<const Shape*> views;
  for (const Shape& s : shapes) views.push_back(&s);
  const auto [shape, axis] = joined(views, attr.axis);
  produce(c, 0, first.dtype(), shape, [&, &shape = shape, axis = axis](Tensor& out) {
    const std::int64_t outer = product(shape, 0, axis);
    const std::int64_t inner = product(shape, axis + 1, shape.size());
    std::int64_t offset = 0;
    for (const Value& item : items) {
      if (item.tensor().size() == 0) continue;
      const Tensor in = widened(item.tensor());
      const std::int64_t run = (stacks ? 1 : in.dim(axis)) * inner;
      copy_strided(in, 0, out, offset, {{outer, run, shape[axis] * inner}, {run, 1, 1}});
      offset += run;
    }
  });
}

// If `split` is given, the axis stays, whatever keepdims says. Source: ONNX SplitToSequence-11.
bool keeps_axis(const Node& node, bool has_split) { return has_split || parse<SplitToSequenceAttrs>(node).keepdims; }

// An empty list is as good as none, as in ONNX Runtime.
bool has_split(const OpContext& c) { return c.has_input(1) && c.input(1).shape() != Shape{0}; }
// nullopt: not known yet.
std::optional<bool> has_split(InferContext& c) {
  if (!c.has_input(1)) return false;
  const SymShape* s = c.shape(1);
  if (s == nullptr || (s->size() == 1 && !(*s)[0].is_const())) return std::nullopt;
  return s->size() != 1 || (*s)[0].value() != 0;
}

void infer_split(InferContext& c) {
  const SymShape* in = c.shape(0);
  if (in == nullptr) return c.output(0, Type::sequence(Type::tensor(c.dtype(0))));
  SymShape out = *in;
  const auto axis = normalize_axis(parse<SplitToSequenceAttrs>(c).axis, in->size());
  const auto split = has_split(c);
  if (!split && !keeps_axis(c.node(), false)) return c.output(0, Type::sequence(Type::tensor(c.dtype(0))));
  if (keeps_axis(c.node(), split.value_or(true))) {
    out[static_cast<std::size_t>(axis)] = split.value_or(true) ? Dim() : Dim(1);
  } else {
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  c.output(0, Type::sequence(Type::tensor(c.dtype(0), std::move(out))));
}

Ints part_sizes(const OpContext& c, std::int64_t extent) {
  if (!has_split(c)) return Ints(static_cast<std::size_t>(extent), 1);
  const Tensor& split = c.input(1);
  if (split.rank() == 0) {
    const std::int64_t size = element_as_int(split, 0);
    if (size < 1) c.fail("'split' is {}; it must be positive", size);
    Ints sizes;
    for (std::int64_t left = extent; left > 0; left -= sizes.back()) sizes.push_back(std::min(size, left));
    return sizes;
  }
  Ints sizes = to_ints(split);
  std::int64_t sum = 0;
  for (const std::int64_t s : sizes) {
    const auto next = checked_add(sum, s);
    if (s < 0 || !next) c.fail("'split' {} has a size out of range", to_string(sizes));
    sum = *next;
  }
  if (sum != extent) c.fail("'split' {} adds up to {}; the axis has extent {}", to_string(sizes), sum, extent);
  return sizes;
}

void run_split(OpContext& c) {
  const Tensor in = widened(c.input(0));
  const DataType dtype = c.input(0).dtype();
  const auto axis = static_cast<std::size_t>(normalize_axis(parse<SplitToSequenceAttrs>(c).axis, in.rank()));
  if (in.size() == 0 && in.dim(axis) > (1 << 20)) c.fail("a sequence of {} empty tensors is refused", in.dim(axis));
  const bool keeps = keeps_axis(c.node(), has_split(c));
  const std::int64_t outer = product(in.shape(), 0, axis);
  const std::int64_t inner = product(in.shape(), axis + 1, in.rank());
  Sequence s;
  s.element_type = dtype;
  std::int64_t offset = 0;
  for (const std::int64_t size : part_sizes(c, in.dim(axis))) {
    Shape shape = in.shape();
    shape[axis] = size;
    if (!keeps) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    Tensor codes(in.dtype(), shape);
    const std::int64_t run = size * inner;
    copy_strided(in, offset, codes, 0, {{outer, in.dim(axis) * inner, run}, {run, 1, 1}});
    offset += run;
    if (is_sub_byte(dtype)) {
      Tensor packed(dtype, shape);
      narrow(codes, packed);
      codes = std::move(packed);
    }
    s.items.emplace_back(std::move(codes));
  }
  c.set_output(0, std::move(s));
}

}  // namespace

void register_sequence_tensors(OpTable& t) {
  OpDef concat_from_sequence("ConcatFromSequence", 11);
  concat_from_sequence.in("input_sequence", "", types::sequence).out("concat_result", "", types::any_tensor);
  concat_from_sequence.attrs<ConcatFromSequenceAttrs>();
  t.add(std::move(concat_from_sequence).infer_with(infer_concat).run_with(run_concat));
  OpDef split_to_sequence("SplitToSequence", 11);
  split_to_sequence.in("input", "T", types::any_tensor).in("split", "", types::indices, Arity::optional);
  split_to_sequence.out("output_sequence", "", types::sequence).attrs<SplitToSequenceAttrs>();
  t.add(std::move(split_to_sequence).infer_with(infer_split).run_with(run_split));
}

}  // namespace sdx::ops
