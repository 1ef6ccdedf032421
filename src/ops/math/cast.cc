// Cast (1 and 6: `to` is text or number; 9, 13, 19, 21, 23, 24, 25, 28), CastLike (15 to 25), BitCast (26).

#include <cstring>

#include "ops/context.h"
#include "ops/math/convert.h"
#include "ops/math/signatures.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

DataType target_type(const CastAttrs& attr) {
  DataType type = DataType::undefined;
  if (!attr.word.empty()) {
    type = parse_data_type(attr.word);
  } else if (attr.to > 0 && attr.to < kDataTypeCount) {
    type = static_cast<DataType>(attr.to);
  }
  if (type == DataType::undefined) fail(ErrorCode::invalid_model, "attribute 'to' is not an element type");
  return type;
}

ConvertOptions conversion_options(const CastAttrs& attr) {
  ConvertOptions options;
  options.saturate = attr.saturate;
  const std::string_view mode = attr.round_mode;
  if (mode == "nearest") {
    options.e8m0_rounding = RoundMode::nearest;
  } else if (mode == "down") {
    options.e8m0_rounding = RoundMode::down;
  } else if (mode != "up") {
    fail(ErrorCode::invalid_model, "attribute 'round_mode' is '{}'; permitted: up, down, nearest", mode);
  }
  return options;
}

bool holds_sizes(DataType type) { return type == DataType::int64 || type == DataType::int32; }

void infer_cast_to(InferContext& c, DataType to) {
  if (const SymShape* s = c.shape(0)) {
    c.output(0, to, *s);
  } else {
    c.output(0, to);
  }
  // Sizes fit in 32 bits for all that one can store, so a symbol survives the way through int32.
  if (c.sym(0) != nullptr && holds_sizes(to) && holds_sizes(c.dtype(0))) c.output_sym(0, *c.sym(0));
}

void infer_cast(InferContext& c) {
  const DataType to = target_type(parse<CastAttrs>(c));
  if ((bit(to) & kConvertible) == 0) c.fail("attribute 'to' is {}, which Cast does not produce", name(to));
  conversion_options(parse<CastAttrs>(c));
  infer_cast_to(c, to);
}

void run_cast(OpContext& c) {
  const Tensor& in = c.input(0);
  convert(in, c.output(0, target_type(parse<CastAttrs>(c)), in.shape()), conversion_options(parse<CastAttrs>(c)));
}

void infer_cast_like(InferContext& c) {
  conversion_options(parse<CastAttrs>(c));
  infer_cast_to(c, c.dtype(1));
}

void run_cast_like(OpContext& c) {
  const Tensor& in = c.input(0);
  convert(in, c.output(0, c.input(1).dtype(), in.shape()), conversion_options(parse<CastAttrs>(c)));
}

void check_bit_widths(DataType from, DataType to) {
  if (from == DataType::string || to == DataType::string || bit_width(from) != bit_width(to)) {
    fail(ErrorCode::invalid_model, "{} cannot be reinterpreted as {}: both must have the same number of bits", name(from),
         name(to));
  }
}

void infer_bit_cast(InferContext& c) {
  const DataType to = target_type(parse<CastAttrs>(c));
  if (c.dtype(0) != DataType::undefined) check_bit_widths(c.dtype(0), to);
  if (const SymShape* s = c.shape(0)) return c.output(0, to, *s);
  c.output(0, to);
}

void run_bit_cast(OpContext& c) {
  const Tensor& in = c.input(0);
  const DataType to = target_type(parse<CastAttrs>(c));
  check_bit_widths(in.dtype(), to);
  Tensor& out = c.output(0, to, in.shape());
  if (in.bytes() == 0) return;
  if (to == DataType::boolean && in.dtype() != DataType::boolean) {
    // A C++ bool holds 0 or 1 alone; reading any other byte as bool is undefined.
    const auto* from = static_cast<const std::uint8_t*>(in.data());
    auto* flags = static_cast<bool*>(out.mutable_data());
    for (std::int64_t i = 0; i < in.size(); ++i) flags[i] = from[i] != 0;
    return;
  }
  std::memcpy(out.mutable_data(), in.data(), in.bytes());
}

}  // namespace

void register_cast(OpTable& t) {
  for (const int since : {1, 6}) {
    t.add(OpDef("Cast", since)
              .in("input", "T1", kConvertible)
              .out("output", "T2", kConvertible)
              .attrs<CastAttrs>()
              .infer_with(infer_cast)
              .run_with(run_cast));
  }
  t.add(OpDef("CastLike", 15)
            .in("input", "T1", kConvertible)
            .in("target_type", "T2", kConvertible)
            .out("output", "T2", kConvertible)
            .attrs<CastAttrs>()
            .infer_with(infer_cast_like)
            .run_with(run_cast_like));
  t.add(OpDef("BitCast", 26)
            .in("input", "T1", types::any_tensor & ~types::string)
            .out("output", "T2", types::any_tensor & ~types::string)
            .attrs<CastAttrs>()
            .infer_with(infer_bit_cast)
            .run_with(run_bit_cast));
}

}  // namespace sdx::ops
