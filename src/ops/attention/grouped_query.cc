#include "ops/attention/grouped_query.h"

#include "base/error.h"
#include "ops/attention/signatures.h"
#include "ops/math/convert.h"

namespace sdx::ops {

HeadCounts head_counts(const Attributes& attrs) {
  const auto attr = parse<HeadCountAttrs>(attrs);
  const HeadCounts h{attr.num_heads, attr.kv_num_heads};
  if (h.q < 1 || h.kv < 1 || h.q % h.kv != 0 || h.q > (1 << 20)) {
    fail(ErrorCode::invalid_model, "num_heads must be a positive multiple of kv_num_heads, received {} and {}", h.q, h.kv);
  }
  return h;
}

GroupedQuery grouped_query(OpContext& c, const HeadCounts& heads, std::int64_t size) {
  const Tensor& query = c.input(0);
  const std::int64_t batch = query.dim(0), length = query.dim(1);
  GroupedQuery g;
  g.query = converted(query, DataType::float32);
  const auto* data = static_cast<const float*>(g.query.data());
  g.q = {data, element_count(Shape{length, query.dim(2)}), size, query.dim(2)};
  if (!c.has_input(1)) {
    g.k = g.v = g.q;
    g.k.data += heads.q * size;
    g.v.data += (heads.q + heads.kv) * size;
    return g;
  }
  const Shape expected{batch, length, heads.kv * size};
  if (c.input(1).shape() != expected || c.input(2).shape() != expected) {
    c.fail("key and value must be {}, received {} and {}", to_string(expected), c.input(1).type_string(),
           c.input(2).type_string());
  }
  g.key = converted(c.input(1), DataType::float32);
  g.value = converted(c.input(2), DataType::float32);
  g.k = view_bsd(static_cast<const float*>(g.key.data()), heads.kv, length, size);
  g.v = view_bsd(static_cast<const float*>(g.value.data()), heads.kv, length, size);
  return g;
}

}  // namespace sdx::ops
