#include "ops/math/broadcast.h"

#include <algorithm>

#include "base/error.h"

namespace sdx::ops {

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape out = longer;
  const std::size_t pad = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    const std::int64_t d = shorter[i];
    std::int64_t& o = out[pad + i];
    if (o == 1) {
      o = d;
    } else if (d != 1 && d != o) {
      fail(ErrorCode::runtime_failure, "shapes {} and {} cannot be broadcast: extents {} and {} differ and neither is 1",
           to_string(a), to_string(b), o, d);
    }
  }
  return out;
}

SymShape broadcast_shapes(const SymShape& a, const SymShape& b) {
  const SymShape& longer = a.size() >= b.size() ? a : b;
  const SymShape& shorter = a.size() >= b.size() ? b : a;
  SymShape out = longer;
  const std::size_t pad = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    const Dim& d = shorter[i];
    Dim& o = out[pad + i];
    if (o == d || (d.is_const() && d.value() == 1)) continue;
    if (o.is_const() && o.value() == 1) {
      o = d;
    } else if (o.is_const() && d.is_const()) {
      fail(ErrorCode::invalid_model, "shapes {} and {} cannot be broadcast: extents {} and {} differ and neither is 1",
           to_string(a), to_string(b), o.value(), d.value());
    } else if (!o.is_const() && d.is_const()) {
      o = d;  // a constant other than 1 decides
    } else if (!o.is_const()) {
      o = Dim::unknown();  // two different symbols: either may be 1
    }
  }
  return out;
}

void infer_broadcast(InferContext& c, std::size_t first, std::size_t last, DataType elem) {
  SymShape shape;
  for (std::size_t i = first; i < last; ++i) {
    const SymShape* s = c.shape(i);
    if (s == nullptr) return c.output(0, elem);
    shape = broadcast_shapes(shape, *s);
  }
  c.output(0, elem, std::move(shape));
}

}  // namespace sdx::ops
