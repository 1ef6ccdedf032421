#include "ops/quant/quant_scalar.h"

#include "ops/math/broadcast.h"
#include "ops/quant/quant_codec.h"

namespace sdx::ops {

QuantScalar quant_scalar(const OpContext& c, std::size_t scale, std::size_t zero, DataType elem) {
  const Tensor& s = c.input(scale);
  if (s.size() != 1 || s.dtype() != DataType::float32) {
    c.fail("input {} (a scale) must be one float32, received {}", scale, s.type_string());
  }
  QuantScalar q{s.values<float>()[0], 0};
  if (const Tensor* z = c.optional_input(zero)) {
    if (z->size() != 1 || z->dtype() != elem) {
      c.fail("input {} (a zero point) must be one {}, received {}", zero, name(elem), z->type_string());
    }
    q.zero = decode_ints(*z)[0];
  }
  return q;
}

void infer_broadcast_of(InferContext& c, std::initializer_list<std::size_t> inputs, DataType elem) {
  SymShape out;
  for (const std::size_t i : inputs) {
    const SymShape* s = c.shape(i);
    if (s == nullptr) return c.output(0, elem);
    out = broadcast_shapes(out, *s);
  }
  c.output(0, elem, std::move(out));
}

void infer_like(InferContext& c, std::size_t i) {
  if (const SymShape* s = c.shape(i)) return c.output(0, c.dtype(i), *s);
  c.output(0, c.dtype(i));
}

}  // namespace sdx::ops
