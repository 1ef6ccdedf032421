// ConvInteger: ai.onnx 10.

#include <algorithm>

#include "ops/conv/signatures.h"
#include "ops/op.h"
#include "ops/quant/integer_conv.h"
#include "ops/quant/quant_codec.h"

namespace sdx::ops {
namespace {

constexpr TypeSet kBytes = set_of(DataType::int8, DataType::uint8);

void infer_conv_integer(InferContext& c) {
  const SymShape* x = c.shape(0);
  const SymShape* w = c.shape(1);
  if (x == nullptr || w == nullptr) return c.output(0, DataType::int32);
  c.output(0, DataType::int32, conv_output_shape(c.attrs(), *x, *w));
}

void run_conv_integer(OpContext& c) {
  const Tensor& x = c.input(0);
  const Tensor& w = c.input(1);
  IntegerConv conv{conv_geometry(c.attrs(), x.shape(), w.shape()), &x, 0, &w, {}};
  Tensor& y = c.output(0, DataType::int32, conv.geometry.output_shape());
  if (const Tensor* zero = c.optional_input(2)) {
    if (zero->size() != 1 || zero->dtype() != x.dtype()) {
      c.fail("x_zero_point must be one {}, received {}", name(x.dtype()), zero->type_string());
    }
    conv.x_zero = decode_ints(*zero)[0];
  }
  conv.w_zero = channel_zero_points(c.optional_input(3), w.dtype(), conv.geometry.out_channels);
  auto* out = static_cast<std::int32_t*>(y.mutable_data());
  const std::int64_t plane = conv.geometry.out_plane();
  const std::int64_t channels = conv.geometry.out_channels;
  integer_conv(c, conv,
               [=](std::int64_t batch, std::int64_t m, std::int64_t begin, std::int64_t count, const std::int32_t* sums) {
                 std::copy(sums, sums + count, out + (batch * channels + m) * plane + begin);
               });
}

}  // namespace

void register_conv_integer(OpTable& t) {
  t.add(OpDef("ConvInteger", 10)
            .in("x", "T1", kBytes)
            .in("w", "T2", kBytes)
            .in("x_zero_point", "T1", kBytes, Arity::optional)
            .in("w_zero_point", "T2", kBytes, Arity::optional)
            .out("y", "", bit(DataType::int32))
            .attrs<ConvAttrs>()
            .infer_with(infer_conv_integer)
            .run_with(run_conv_integer));
}

}  // namespace sdx::ops
