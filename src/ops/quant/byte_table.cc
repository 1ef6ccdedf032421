// ByteTable: sdx 1. Y = table[X], where a byte of X counts as an unsigned index.

#include "ops/op.h"
#include "ops/quant/quant_codec.h"

namespace sdx::ops {
namespace {

void infer_byte_table(InferContext& c) {
  if (const SymShape* s = c.shape(0)) return c.output(0, c.dtype(1), *s);
  c.output(0, c.dtype(1));
}

void run_byte_table(OpContext& c) {
  const Tensor &x = c.input(0), &table = c.input(1);
  if (table.size() != 256) c.fail("the table must have 256 bytes, received {}", table.type_string());
  Tensor& y = c.output(0, table.dtype(), x.shape());
  const auto *in = static_cast<const std::uint8_t*>(x.data()), *to = static_cast<const std::uint8_t*>(table.data());
  auto* out = static_cast<std::uint8_t*>(y.mutable_data());
  for (std::int64_t i = 0; i < x.size(); ++i) out[i] = to[in[i]];
}

}  // namespace

void register_byte_table(OpTable& t) {
  constexpr TypeSet kBytes = set_of(DataType::int8, DataType::uint8);
  t.add(OpDef("sdx", "ByteTable", 1)
            .in("X", "", kBytes)
            .in("table", "T", kBytes)
            .out("Y", "T", kBytes)
            .infer_with(infer_byte_table)
            .run_with(run_byte_table));
}

}  // namespace sdx::ops
