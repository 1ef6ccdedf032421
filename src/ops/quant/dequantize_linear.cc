// DequantizeLinear: ai.onnx 10, 13 (axis), 19 (float8, f16), 21 (blocks, 4 and 16 bits), 23 (output_dtype), 24, 25, 28;
// com.microsoft 1.

#include <algorithm>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/quant/quant_codec.h"
#include "ops/quant/quant_layout.h"
#include "ops/quant/signatures.h"

namespace sdx::ops {
namespace {

using enum QuantizeIn::Slot;

constexpr TypeSet kInputs =
    set_of(DataType::int8, DataType::uint8, DataType::int16, DataType::uint16, DataType::int32, DataType::float8e4m3fn,
           DataType::float8e4m3fnuz, DataType::float8e5m2, DataType::float8e5m2fnuz) |
    types::packed | types::float6;
constexpr TypeSet kScales = set_of(DataType::float32, DataType::float16, DataType::bfloat16, DataType::float8e8m0);
constexpr TypeSet kOutputs = set_of(DataType::float32, DataType::float16, DataType::bfloat16);

DataType result_type(const QuantizeAttrs& attr, DataType scale) {
  const std::int64_t asked = attr.output_dtype;
  // An E8M0 scale holds powers of two only; ONNX leaves the result's type without output_dtype to the scale, which no
  // consumer accepts, so it is float32.
  if (asked == 0) return scale == DataType::float8e8m0 ? DataType::float32 : scale;
  const auto type = static_cast<DataType>(asked);
  if (asked < 0 || asked >= kDataTypeCount || (kOutputs & bit(type)) == 0) {
    fail(ErrorCode::invalid_model, "output_dtype must be float32, float16 or bfloat16, received data type {}", asked);
  }
  return type;
}

void infer_dequantize(InferContext& c) {
  const auto attr = parse<QuantizeAttrs>(c);
  const DataType type = result_type(attr, c.dtype(kScale));
  const SymShape* x = c.shape(kX);
  if (x == nullptr) return c.output(0, type);
  c.output(0, type, *x);
  const SymShape* scale = c.shape(kScale);
  if (scale == nullptr || !all_const(*x) || !all_const(*scale)) return;
  quant_layout(to_shape(*x), to_shape(*scale), nullptr, attr.axis, attr.block_size);
}

struct Dequantizer {
  const Tensor& x;
  std::vector<float> scale;
  std::vector<std::int32_t> zero;
  std::vector<float> zero_float;
  DataType target;
  bool steps;
  void* out;

  // x - zero point, exactly: differences of 32-bit integers need 33 bits before they become floats.
  void centred(std::int64_t begin, std::int64_t n, std::int64_t s, float* y) const {
    const auto z = static_cast<std::size_t>(s);
    if (zero.empty()) {
      decode_floats(x.dtype(), x.data(), begin, n, y);
      for (std::int64_t i = 0; i < n && !zero_float.empty(); ++i) y[i] -= zero_float[z + static_cast<std::size_t>(steps ? i : 0)];
      return;
    }
    constexpr std::int64_t kChunk = 1024;
    std::int32_t ints[kChunk];
    decode_ints(x.dtype(), x.data(), begin, n, ints);
    if (x.dtype() == DataType::int32) {
      for (std::int64_t i = 0; i < n; ++i) {
        y[i] = static_cast<float>(std::int64_t{ints[i]} - zero[z + static_cast<std::size_t>(steps ? i : 0)]);
      }
    } else if (steps) {
      for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(ints[i] - zero[z + static_cast<std::size_t>(i)]);
    } else {
      const std::int32_t zp = zero[z];
      for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(ints[i] - zp);
    }
  }

  void run(std::int64_t begin, std::int64_t count, std::int64_t s) const {
    constexpr std::int64_t kChunk = 1024;
    float y[kChunk];
    for (std::int64_t at = 0; at < count; at += kChunk) {
      const std::int64_t n = std::min(kChunk, count - at);
      const std::int64_t from = steps ? s + at : s;
      centred(begin + at, n, from, y);
      if (steps) {
        for (std::int64_t i = 0; i < n; ++i) y[i] *= scale[static_cast<std::size_t>(from + i)];
      } else {
        const float by = scale[static_cast<std::size_t>(from)];
        for (std::int64_t i = 0; i < n; ++i) y[i] *= by;
      }
      encode_floats(target, y, begin + at, n, true, out);
    }
  }
};

void run_dequantize(OpContext& c) {
  const auto attr = parse<QuantizeAttrs>(c);
  const Tensor& x = c.input(kX);
  const Tensor& scale = c.input(kScale);
  const Tensor* zero = c.optional_input(kZero);
  if (zero != nullptr && zero->dtype() != x.dtype()) {
    fail(ErrorCode::invalid_model, "x_zero_point is {}, x is {}; they must have the same type", name(zero->dtype()),
         name(x.dtype()));
  }
  const QuantLayout layout =
      quant_layout(x.shape(), scale.shape(), zero != nullptr ? &zero->shape() : nullptr, attr.axis, attr.block_size);
  const DataType target = result_type(attr, scale.dtype());
  Tensor& y = c.output(0, target, x.shape());
  Dequantizer d{x, decode_floats(scale), {}, {}, target, layout.steps, y.mutable_data()};
  if (zero != nullptr && is_quant_integer(x.dtype())) d.zero = decode_ints(*zero);
  if (zero != nullptr && !is_quant_integer(x.dtype())) d.zero_float = decode_floats(*zero);
  parallel_for(layout.runs, std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, layout.run)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t r = begin; r < end; ++r) {
                   const QuantLayout::Run run = layout.at(r);
                   d.run(run.begin, run.count, run.scale);
                 }
               });
}

OpDef definition(const char* domain, int since) {
  OpDef def(domain, "DequantizeLinear", since);
  def.in("x", "T1", kInputs).in("x_scale", "", kScales).in("x_zero_point", "T1", kInputs, Arity::optional).out("y", "", kOutputs);
  def.attrs<QuantizeAttrs>();
  return def;
}

}  // namespace

void register_dequantize_linear(OpTable& t) {
  t.add(definition("", 10).infer_with(infer_dequantize).run_with(run_dequantize));
  t.add(definition("", 13).infer_with(infer_dequantize).run_with(run_dequantize));
  for (const char* domain : {"", "com.microsoft"}) {
    t.add(definition(domain, *domain == 0 ? 21 : 1).infer_with(infer_dequantize).run_with(run_dequantize));
  }
}

}  // namespace sdx::ops
