// QuantizeLinear: ai.onnx 10, 13 (axis), 19 (float8, f16), 21 (blocks, 4 and 16 bits), 23 (precision), 24, 25, 28;
// com.microsoft 1.
// As in ONNX Runtime, the quotient is a float unless `precision` names a narrower type: for f16 input a quotient rounded to
// f16 would put 16-bit results up to 16 steps away.

#include <algorithm>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/quant/quant_codec.h"
#include "ops/quant/quant_layout.h"
#include "ops/quant/signatures.h"
#include "tensor/types.h"

namespace sdx::ops {
namespace {

using enum QuantizeIn::Slot;

constexpr TypeSet kInputs = set_of(DataType::float32, DataType::float16, DataType::bfloat16, DataType::int32);
constexpr TypeSet kScales = kInputs | bit(DataType::float8e8m0);
constexpr TypeSet kTargets = set_of(DataType::int8, DataType::uint8, DataType::int16, DataType::uint16, DataType::float8e4m3fn,
                                    DataType::float8e4m3fnuz, DataType::float8e5m2, DataType::float8e5m2fnuz) |
                             types::packed | types::float6;

DataType target_type(const QuantizeAttrs& attr, DataType zero_point) {
  const std::int64_t asked = attr.output_dtype;
  if (asked == 0) return zero_point != DataType::undefined ? zero_point : DataType::uint8;
  const auto type = static_cast<DataType>(asked);
  if (asked < 0 || asked >= kDataTypeCount || (kTargets & bit(type)) == 0) {
    fail(ErrorCode::invalid_model, "output_dtype {} is not a type that QuantizeLinear can produce", asked);
  }
  if (zero_point != DataType::undefined && zero_point != type) {
    fail(ErrorCode::invalid_model, "output_dtype is {}, but y_zero_point is {}; they must agree", name(type), name(zero_point));
  }
  return type;
}

void infer_quantize(InferContext& c) {
  const auto attr = parse<QuantizeAttrs>(c);
  if (c.has_input(kZero) && c.dtype(kZero) == DataType::undefined && attr.output_dtype == 0) {
    if (const SymShape* s = c.shape(kX)) return c.output(0, DataType::undefined, *s);
    return c.output(0, DataType::undefined);
  }
  const DataType type = target_type(attr, c.dtype(kZero));
  const SymShape* x = c.shape(kX);
  if (x == nullptr) return c.output(0, type);
  c.output(0, type, *x);
  const SymShape* scale = c.shape(kScale);
  if (scale == nullptr || !all_const(*x) || !all_const(*scale)) return;
  quant_layout(to_shape(*x), to_shape(*scale), nullptr, attr.axis, attr.block_size);
}

DataType division_type(const QuantizeAttrs& attr) {
  const std::int64_t precision = attr.precision;
  if (precision == static_cast<std::int64_t>(DataType::float16)) return DataType::float16;
  if (precision == static_cast<std::int64_t>(DataType::bfloat16)) return DataType::bfloat16;
  if (precision != 0 && precision != static_cast<std::int64_t>(DataType::float32)) {
    fail(ErrorCode::invalid_model, "precision must be float32, float16 or bfloat16, received data type {}", precision);
  }
  return DataType::float32;
}

struct Quantizer {
  const Tensor& x;
  std::vector<float> scale;
  std::vector<std::int32_t> zero;  // for integer targets
  std::vector<float> zero_float;   // for float targets
  DataType target;
  DataType division;
  bool saturate;
  bool steps;
  std::uint8_t* out;

  // Quotients of elements [begin, begin + n) with scales from index s.
  void divide(std::int64_t begin, std::int64_t n, std::int64_t s, float* q) const {
    decode_floats(x.dtype(), x.data(), begin, n, q);
    if (steps) {
      for (std::int64_t i = 0; i < n; ++i) q[i] /= scale[static_cast<std::size_t>(s + i)];
    } else {
      const float by = scale[static_cast<std::size_t>(s)];
      for (std::int64_t i = 0; i < n; ++i) q[i] /= by;
    }
    if (division == DataType::float16) {
      for (std::int64_t i = 0; i < n; ++i) q[i] = half_to_float(float_to_half(q[i]));
    } else if (division == DataType::bfloat16) {
      for (std::int64_t i = 0; i < n; ++i) q[i] = static_cast<float>(BFloat16(q[i]));
    }
  }

  void run(std::int64_t begin, std::int64_t count, std::int64_t s) const {
    constexpr std::int64_t kChunk = 1024;
    float q[kChunk];
    std::int32_t y[kChunk];
    const bool integer = is_quant_integer(target);
    const QuantRange range = integer ? quant_range(target) : QuantRange{0, 0};
    for (std::int64_t at = 0; at < count; at += kChunk) {
      const std::int64_t n = std::min(kChunk, count - at);
      const std::int64_t from = steps ? s + at : s;
      divide(begin + at, n, from, q);
      const auto z = static_cast<std::size_t>(from);
      if (!integer) {
        for (std::int64_t i = 0; i < n && !zero_float.empty(); ++i) {
          q[i] += zero_float[z + static_cast<std::size_t>(steps ? i : 0)];
        }
        encode_floats(target, q, begin + at, n, saturate, out);
        continue;
      }
      if (steps && !zero.empty()) {
        for (std::int64_t i = 0; i < n; ++i) y[i] = requantize(q[i], zero[z + static_cast<std::size_t>(i)], range);
      } else {
        const std::int32_t zp = zero.empty() ? 0 : zero[z];
        for (std::int64_t i = 0; i < n; ++i) y[i] = requantize(q[i], zp, range);
      }
      encode_ints(target, y, begin + at, n, out);
    }
  }
};

void run_quantize(OpContext& c) {
  const auto attr = parse<QuantizeAttrs>(c);
  const Tensor& x = c.input(kX);
  const Tensor& scale = c.input(kScale);
  const Tensor* zero = c.optional_input(kZero);
  const DataType target = target_type(attr, zero != nullptr ? zero->dtype() : DataType::undefined);
  const QuantLayout layout =
      quant_layout(x.shape(), scale.shape(), zero != nullptr ? &zero->shape() : nullptr, attr.axis, attr.block_size);
  Tensor& y = c.output(0, target, x.shape());
  const bool packed = is_sub_byte(target);
  std::vector<std::uint8_t> bytes(packed ? static_cast<std::size_t>(x.size()) : 0);
  Quantizer q{x,
              decode_floats(scale),
              {},
              {},
              target,
              division_type(attr),
              attr.saturate,
              layout.steps,
              packed ? bytes.data() : static_cast<std::uint8_t*>(y.mutable_data())};
  if (zero != nullptr && is_quant_integer(target)) q.zero = decode_ints(*zero);
  if (zero != nullptr && !is_quant_integer(target)) q.zero_float = decode_floats(*zero);
  parallel_for(layout.runs, std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, layout.run)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t r = begin; r < end; ++r) {
                   const QuantLayout::Run run = layout.at(r);
                   q.run(run.begin, run.count, run.scale);
                 }
               });
  if (packed) pack_bytes(bytes.data(), x.size(), bit_width(target), y.mutable_data());
}

OpDef definition(const char* domain, int since) {
  OpDef def(domain, "QuantizeLinear", since);
  // From opset 23 on, the scale may have another type than x; the kernel supports that in all versions.
  def.in("x", "", kInputs)
      .in("y_scale", "", kScales)
      .in("y_zero_point", "T3", kTargets, Arity::optional)
      .out("y", "T3", kTargets);
  def.attrs<QuantizeAttrs>();
  return def;
}

}  // namespace

void register_quantize_linear(OpTable& t) {
  t.add(definition("", 10).infer_with(infer_quantize).run_with(run_quantize));
  t.add(definition("", 13).infer_with(infer_quantize).run_with(run_quantize));
  t.add(definition("", 19).infer_with(infer_quantize).run_with(run_quantize));
  t.add(definition("", 21).infer_with(infer_quantize).run_with(run_quantize));
  t.add(definition("com.microsoft", 1).infer_with(infer_quantize).run_with(run_quantize));
}

}  // namespace sdx::ops
