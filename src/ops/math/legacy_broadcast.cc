#include "ops/math/legacy_broadcast.h"

#include <utility>

#include "ops/math/broadcast.h"
#include "ops/math/signatures.h"

namespace sdx::ops {

Tensor legacy_operand(const OpContext& c) {
  const auto attr = parse<LegacyBroadcastAttrs>(c);
  const Tensor& a = c.input(0);
  const Tensor& b = c.input(1);
  if (c.version() >= 7) return b;
  Shape shape = b.shape();
  if (!attr.broadcast) {
    if (shape != a.shape()) {
      fail(ErrorCode::invalid_model, "without the attribute 'broadcast' both shapes must be equal; received {} and {}",
           to_string(a.shape()), to_string(shape));
    }
    return b;
  }
  const std::int64_t axis = attr.axis;
  if (axis >= 0 && std::cmp_less_equal(axis, a.rank())) {
    while (static_cast<std::size_t>(axis) + shape.size() < a.rank()) shape.push_back(1);
  }
  if (shape.size() > a.rank() || broadcast_shapes(a.shape(), shape) != a.shape()) {
    fail(ErrorCode::invalid_model, "B {} cannot be broadcast to A {} (axis {})", to_string(b.shape()), to_string(a.shape()),
         axis);
  }
  return b.reshaped(std::move(shape));
}

void infer_binary(InferContext& c, DataType elem) {
  if (c.version() >= 7) return infer_broadcast(c, 0, 2, elem);
  if (const SymShape* a = c.shape(0)) return c.output(0, elem, *a);
  c.output(0, elem);
}

}  // namespace sdx::ops
