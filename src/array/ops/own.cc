#include "array/ops/own.h"

#include "ops/context.h"

namespace sdx::array::detail {
namespace {

// Attributes keep the address of their names only until they are set.
struct Names {
  const char* type;
  const char* shape;
};
constexpr Names kNames[] = {{"type0", "shape0"}, {"type1", "shape1"}, {"type2", "shape2"}};

void infer_told(ops::InferContext& c) {
  for (std::size_t i = 0; i < c.num_outputs(); ++i) {
    c.output(i, static_cast<DataType>(c.attrs().get_int(kNames[i].type)), to_sym(c.attrs().get_ints(kNames[i].shape)));
  }
}

}  // namespace

OwnOp told_op(const char* name, ops::RunFn run) { return own_op(name, infer_told, run); }

void emit_own(Emitter& e, const OwnOp& op, std::vector<ValueId> inputs, EmittedAttributes attributes) {
  const std::size_t count = e.num_results();
  for (std::size_t i = 0; i < count; ++i) {
    attributes.emplace_back(kNames[i].type, static_cast<std::int64_t>(e.out_dtype(i)));
    attributes.emplace_back(kNames[i].shape, std::vector<std::int64_t>(e.out_shape(i)));
  }
  const std::vector<ValueId> made = e.own_many(op, std::move(inputs), count, std::move(attributes));
  for (std::size_t i = 0; i < count; ++i) e.result(made[i], i);
}

}  // namespace sdx::array::detail
