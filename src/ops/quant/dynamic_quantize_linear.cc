// DynamicQuantizeLinear: ai.onnx 11.

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/quant/dynamic_quant.h"
#include "ops/quant/quant_codec.h"

namespace sdx::ops {
namespace {

void infer_dynamic(InferContext& c) {
  if (const SymShape* x = c.shape(0)) {
    c.output(0, DataType::uint8, *x);
  } else {
    c.output(0, DataType::uint8);
  }
  c.output(1, DataType::float32, SymShape{});
  c.output(2, DataType::uint8, SymShape{});
}

void run_dynamic(OpContext& c) {
  const Tensor& x = c.input(0);
  Tensor& y = c.output(0, DataType::uint8, x.shape());
  const auto in = x.values<float>();
  const DynamicScale q = dynamic_scale(in.data(), x.size(), DataType::uint8);
  auto* out = static_cast<std::uint8_t*>(y.mutable_data());
  parallel_for(x.size(), 16384, [&](std::int64_t begin, std::int64_t end) {
    const QuantRange range = quant_range(DataType::uint8);
    for (std::int64_t i = begin; i < end; ++i) {
      out[i] = static_cast<std::uint8_t>(requantize(in[static_cast<std::size_t>(i)] / q.scale, q.zero_point, range));
    }
  });
  c.output(1, DataType::float32, {}).mutable_values<float>()[0] = q.scale;
  c.output(2, DataType::uint8, {}).mutable_values<std::uint8_t>()[0] = static_cast<std::uint8_t>(q.zero_point);
}

}  // namespace

void register_dynamic_quantize_linear(OpTable& t) {
  t.add(OpDef("DynamicQuantizeLinear", 11)
            .in("x", "T1", bit(DataType::float32))
            .out("y", "T2", bit(DataType::uint8))
            .out("y_scale", "", bit(DataType::float32))
            .out("y_zero_point", "T2", bit(DataType::uint8))
            .infer_with(infer_dynamic)
            .run_with(run_dynamic));
}

}  // namespace sdx::ops
