// SequenceConstruct, SequenceEmpty, SequenceAt, SequenceInsert, SequenceErase, SequenceLength: ai.onnx 11.

#include "ops/context.h"
#include "ops/last_use.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "ops/tensor/movement.h"
#include "tensor/element.h"
#include "tensor/own.h"

namespace sdx::ops {
namespace {

struct SequenceEmptyAttrs {
  std::int64_t dtype = static_cast<std::int64_t>(DataType::float32);

  void fields(auto& f) { f("dtype", dtype); }
};

// The type of the items; unknown when the sequence's is.
Type item_type(const InferContext& c, std::size_t i) {
  const Type& t = c.type(i);
  if (!t.known()) return {};
  if (t.kind == Type::Kind::optional && t.inner && t.inner->kind == Type::Kind::sequence && t.inner->inner) {
    return *t.inner->inner;
  }
  if (t.kind != Type::Kind::sequence) c.fail("input {} must be a sequence, received {}", i, t.str());
  return t.inner ? *t.inner : Type{};
}

const Sequence& sequence_at(const OpContext& c, std::size_t i) {
  const Value& v = c.input_value(i);
  if (!v.is_sequence()) c.fail("input {} must be a sequence, received {}", i, v.type_string());
  return v.sequence();
}

// Accepts `permitted` positions from the front, and as many from the back.
std::size_t position(const OpContext& c, std::size_t input, std::int64_t permitted) {
  const Tensor& t = c.input(input);
  if (t.size() != 1) c.fail("'position' must be one number, received {}", t.type_string());
  const std::int64_t p = element_as_int(t, 0);
  const std::int64_t n = static_cast<std::int64_t>(sequence_at(c, 0).items.size());
  if (p < -n || p >= permitted) c.fail("position {} is out of range for a sequence of {}", p, n);
  return static_cast<std::size_t>(p < 0 ? p + n : p);
}

// Input 0 as a sequence without other holders. It is the input itself if nothing reads that any more, so that a Loop that appends
// item after item does not copy all of them each time.
Value take_to_change(OpContext& c) {
  Value v = take_container(c, 0);
  if (sole_sequence(v) == nullptr) v = Sequence(v.sequence());
  return v;
}

void infer_construct(InferContext& c) {
  Type item = c.type(0);
  for (std::size_t i = 1; i < c.num_inputs(); ++i) item = common(item, c.type(i));
  c.output(0, Type::sequence(std::move(item)));
}

void run_construct(OpContext& c) {
  Sequence s;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    const Tensor& t = c.input(i);
    if (i == 0) s.element_type = t.dtype();
    if (t.dtype() != s.element_type) {
      c.fail("input {} is {}; the sequence holds {}", i, t.type_string(), name(s.element_type));
    }
    s.items.emplace_back(t.clone());  // the input's memory may be reused while the sequence lives
  }
  c.set_output(0, std::move(s));
}

DataType empty_type(const SequenceEmptyAttrs& attr) {
  const std::int64_t code = attr.dtype;
  if (code <= 0 || code >= kDataTypeCount) fail(ErrorCode::invalid_model, "'dtype' {} is not an element type", code);
  return static_cast<DataType>(code);
}

void infer_empty(InferContext& c) { c.output(0, Type::sequence(Type::tensor(empty_type(parse<SequenceEmptyAttrs>(c))))); }

void run_empty(OpContext& c) { c.set_output(0, Sequence{empty_type(parse<SequenceEmptyAttrs>(c)), {}}); }

void infer_at(InferContext& c) { c.output(0, item_type(c, 0)); }

void run_at(OpContext& c) {
  const Sequence& s = sequence_at(c, 0);
  const Value& item = s.items[position(c, 1, static_cast<std::int64_t>(s.items.size()))];
  if (!item.is_tensor()) return c.set_output(0, item);
  copy_all(item.tensor(), c.output(0, item.tensor().dtype(), item.tensor().shape()));
}

void infer_insert(InferContext& c) {
  const Type item = item_type(c, 0);
  // An empty sequence may be of unknown item shape, so only what both agree on holds.
  c.output(0, Type::sequence(common(item.known() ? item : c.type(1), c.type(1))));
}

void run_insert(OpContext& c) {
  const Sequence& in = sequence_at(c, 0);
  const Tensor& t = c.input(1);
  if (!in.items.empty() && in.element_type != t.dtype()) {
    c.fail("a {} cannot go into a sequence of {}", t.type_string(), name(in.element_type));
  }
  const auto n = static_cast<std::int64_t>(in.items.size());
  const std::size_t at = c.has_input(2) ? position(c, 2, n + 1) : in.items.size();
  Value item = t.clone();
  Value changed = take_to_change(c);
  Sequence& s = *sole_sequence(changed);
  s.element_type = t.dtype();
  s.items.insert(s.items.begin() + static_cast<std::ptrdiff_t>(at), std::move(item));
  c.set_output(0, std::move(changed));
}

void infer_erase(InferContext& c) { c.output(0, Type::sequence(item_type(c, 0))); }

void run_erase(OpContext& c) {
  const auto n = static_cast<std::int64_t>(sequence_at(c, 0).items.size());
  if (n == 0) c.fail("nothing can be erased from an empty sequence");
  const std::size_t at = c.has_input(1) ? position(c, 1, n) : static_cast<std::size_t>(n - 1);
  Value changed = take_to_change(c);
  Sequence& s = *sole_sequence(changed);
  s.items.erase(s.items.begin() + static_cast<std::ptrdiff_t>(at));
  c.set_output(0, std::move(changed));
}

void infer_length(InferContext& c) { c.output(0, DataType::int64, SymShape{}); }

void run_length(OpContext& c) {
  c.output(0, DataType::int64, {}).mutable_values<std::int64_t>()[0] = static_cast<std::int64_t>(sequence_at(c, 0).items.size());
}

}  // namespace

void register_sequence_ops(OpTable& t) {
  t.add(OpDef("SequenceConstruct", 11)
            .in("inputs", "T", types::any_tensor, Arity::variadic)
            .out("output_sequence", "", types::sequence)
            .infer_with(infer_construct)
            .run_with(run_construct));
  t.add(OpDef("SequenceEmpty", 11)
            .out("output", "", types::sequence)
            .attrs<SequenceEmptyAttrs>()
            .infer_with(infer_empty)
            .run_with(run_empty));
  t.add(OpDef("SequenceAt", 11)
            .in("input_sequence", "", types::sequence)
            .in("position", "", types::indices)
            .out("tensor", "", types::anything)
            .infer_with(infer_at)
            .run_with(run_at));
  t.add(OpDef("SequenceInsert", 11)
            .in("input_sequence", "", types::sequence)
            .in("tensor", "", types::any_tensor)
            .in("position", "", types::indices, Arity::optional)
            .out("output_sequence", "", types::sequence)
            .infer_with(infer_insert)
            .run_with(run_insert));
  t.add(OpDef("SequenceErase", 11)
            .in("input_sequence", "", types::sequence)
            .in("position", "", types::indices, Arity::optional)
            .out("output_sequence", "", types::sequence)
            .infer_with(infer_erase)
            .run_with(run_erase));
  t.add(OpDef("SequenceLength", 11)
            .in("input_sequence", "", types::sequence)
            .out("length", "", types::int64)
            .infer_with(infer_length)
            .run_with(run_length));
}

}  // namespace sdx::ops
