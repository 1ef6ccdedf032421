// com.microsoft GatherBlockQuantized 1: Gather from a block-wise quantised table, dequantised on the way.

#include <vector>

#include "base/checked.h"
#include "base/thread_pool.h"
#include "ops/attention/attention_core.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "ops/tensor/axes.h"
#include "tensor/element.h"
#include "tensor/types.h"

namespace sdx::ops {
namespace {

struct GatherBlockQuantizedAttrs {
  std::int64_t bits = 4;
  std::int64_t block_size = 128;
  std::int64_t quantize_axis = 1;
  std::int64_t gather_axis = 0;

  void fields(auto& f) {
    f("bits", bits);
    f("block_size", block_size);
    f("quantize_axis", quantize_axis);
    f("gather_axis", gather_axis);
  }
};

constexpr TypeSet kNibbles = set_of(DataType::int4, DataType::uint4);
constexpr TypeSet kFloats = set_of(DataType::float8e4m3fn, DataType::float8e4m3fnuz, DataType::float8e5m2,
                                   DataType::float8e5m2fnuz, DataType::float4e2m1);

std::int64_t bits_of(const GatherBlockQuantizedAttrs& attr, DataType data) {
  if (data != DataType::uint8) return bit_width(data);
  const std::int64_t bits = attr.bits;
  if (bits != 2 && bits != 4 && bits != 8) fail(ErrorCode::invalid_model, "bits must be 2, 4 or 8, received {}", bits);
  return bits;
}

std::int64_t block_of(const GatherBlockQuantizedAttrs& attr, DataType data) {
  const std::int64_t block = attr.block_size;
  const bool whole = block == 0 && (kFloats & bit(data)) != 0;
  if (!whole && (block < 16 || (block & (block - 1)) != 0)) {
    fail(ErrorCode::invalid_model, "block_size must be a power of two from 16, received {}", block);
  }
  return block;
}

void infer_gather(InferContext& c) {
  const auto attr = parse<GatherBlockQuantizedAttrs>(c);
  const DataType elem = c.dtype(2);
  const SymShape* data = c.shape(0);
  const SymShape* indices = c.shape(1);
  if (data == nullptr || indices == nullptr || c.dtype(0) == DataType::undefined) return c.output(0, elem);
  block_of(attr, c.dtype(0));
  SymShape logical = *data;
  const auto axis = static_cast<std::size_t>(normalize_axis(attr.gather_axis, logical.size()));
  normalize_axis(attr.quantize_axis, logical.size());
  if (c.dtype(0) == DataType::uint8) logical.back() = logical.back() * Dim(8 / bits_of(attr, c.dtype(0)));
  SymShape out(logical.begin(), logical.begin() + static_cast<std::ptrdiff_t>(axis));
  out.insert(out.end(), indices->begin(), indices->end());
  out.insert(out.end(), logical.begin() + static_cast<std::ptrdiff_t>(axis) + 1, logical.end());
  c.output(0, elem, std::move(out));
}

struct Table {
  const Tensor* data = nullptr;
  Shape shape;  // in elements, not bytes
  std::int64_t bits = 0, block = 0;
  std::size_t gather = 0, quantize = 0;
  Tensor scales;                          // float32
  std::vector<std::int64_t> scale_steps;  // per axis; 0 where the scale is broadcast
  std::int64_t scale_width = 1;           // last extent of scales
  const Tensor* zeros = nullptr;
  float default_zero = 0;
};

void read_scales(OpContext& c, Table& t) {
  t.scales = converted(c.input(2), DataType::float32);
  Shape expected = t.shape;
  const std::int64_t extent = expected[t.quantize];
  expected[t.quantize] = t.block == 0 ? std::min<std::int64_t>(1, extent) : ceil_div(extent, t.block);
  const bool may_broadcast = (kFloats & bit(t.data->dtype())) != 0;
  bool fits = t.scales.rank() == expected.size();
  for (std::size_t i = 0; fits && i < expected.size(); ++i) {
    fits = t.scales.dim(i) == expected[i] || (may_broadcast && i != t.quantize && t.scales.dim(i) == 1);
  }
  if (!fits) c.fail("scales must be {}, received {}", to_string(expected), t.scales.type_string());
  t.scale_width = t.scales.shape().back();
  if (t.scales.size() == 0) return;  // nothing will be looked up
  t.scale_steps = strides_of(t.scales.shape());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (t.scales.dim(i) == 1) t.scale_steps[i] = 0;
  }
}

void read_zeros(OpContext& c, Table& t) {
  const bool bytes = t.data->dtype() == DataType::uint8;
  t.default_zero = bytes ? static_cast<float>(1 << (t.bits - 1)) : 0.0F;
  t.zeros = c.optional_input(3);
  if (t.zeros == nullptr) return;
  const std::int64_t rows = t.scale_width > 0 ? t.scales.size() / t.scale_width : 0;
  const std::int64_t expected = bytes ? rows * ceil_div(element_count(Shape{t.scale_width, t.bits}), 8) : t.scales.size();
  if (t.zeros->dtype() != t.data->dtype() || t.zeros->size() != expected || (kFloats & bit(t.data->dtype())) != 0) {
    c.fail("zero_points must be {} with {} elements, received {}", name(t.data->dtype()), expected, t.zeros->type_string());
  }
}

Table table_of(OpContext& c) {
  const auto attr = parse<GatherBlockQuantizedAttrs>(c);
  Table t;
  t.data = &c.input(0);
  const DataType elem = t.data->dtype();
  if (((kNibbles | kFloats | bit(DataType::uint8)) & bit(elem)) == 0 || t.data->rank() == 0) {
    c.fail("data cannot be {}", t.data->type_string());
  }
  t.shape = t.data->shape();
  t.bits = bits_of(attr, elem);
  t.block = block_of(attr, elem);
  t.gather = static_cast<std::size_t>(normalize_axis(attr.gather_axis, t.shape.size()));
  t.quantize = static_cast<std::size_t>(normalize_axis(attr.quantize_axis, t.shape.size()));
  if (elem == DataType::uint8) {
    if (t.gather != 0 || (t.bits < 8 && t.gather == t.quantize)) c.fail("packed bytes can only be gathered along axis 0");
    t.shape.back() = element_count(Shape{t.shape.back(), 8 / t.bits});
  }
  element_count(t.shape);
  read_scales(c, t);
  read_zeros(c, t);
  return t;
}

// Element `at` (row-major) of the table, before scaling and without its zero point.
float raw(const Table& t, std::int64_t at) {
  const auto bits = static_cast<int>(t.bits);
  switch (t.data->dtype()) {
    case DataType::uint8:
    case DataType::uint4: return static_cast<float>(get_packed(t.data->data(), bits, at));
    case DataType::int4: return static_cast<float>(sign_extend(get_packed(t.data->data(), bits, at), bits));
    case DataType::float4e2m1: return small_to_float(get_packed(t.data->data(), bits, at), kE2M1);
    default: return static_cast<float>(element_as_double(*t.data, at));
  }
}

float zero_point(const Table& t, std::int64_t scale_at) {
  if (t.zeros == nullptr) return t.default_zero;
  const auto bits = static_cast<int>(t.bits);
  if (t.data->dtype() == DataType::uint8) {
    // Rows are padded to whole bytes.
    const std::int64_t row = ceil_div(t.scale_width * t.bits, 8);
    const auto* bytes = static_cast<const std::uint8_t*>(t.zeros->data()) + scale_at / t.scale_width * row;
    return static_cast<float>(get_packed(bytes, bits, scale_at % t.scale_width));
  }
  const std::uint8_t v = get_packed(t.zeros->data(), bits, scale_at);
  return t.data->dtype() == DataType::int4 ? static_cast<float>(sign_extend(v, bits)) : static_cast<float>(v);
}

float dequantized(const Table& t, std::int64_t at) {
  std::int64_t rest = at, scale_at = 0;
  for (std::size_t i = t.shape.size(); i-- > 0;) {
    std::int64_t k = rest % t.shape[i];
    rest /= t.shape[i];
    if (i == t.quantize) k = t.block == 0 ? 0 : k / t.block;
    scale_at += k * t.scale_steps[i];
  }
  return (raw(t, at) - zero_point(t, scale_at)) * static_cast<const float*>(t.scales.data())[scale_at];
}

void run_gather(OpContext& c) {
  const Table t = table_of(c);
  const Tensor& indices = c.input(1);
  const std::vector<std::int64_t> index = to_ints(indices);
  Shape shape(t.shape.begin(), t.shape.begin() + static_cast<std::ptrdiff_t>(t.gather));
  shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  shape.insert(shape.end(), t.shape.begin() + static_cast<std::ptrdiff_t>(t.gather) + 1, t.shape.end());
  const std::int64_t extent = t.shape[t.gather];
  const auto count = static_cast<std::int64_t>(index.size());
  Tensor y(DataType::float32, shape);
  auto* out = static_cast<float*>(y.mutable_data());
  const std::int64_t inner = y.size() > 0 ? product(t.shape, t.gather + 1, t.shape.size()) : 1;
  parallel_for(y.size() > 0 ? y.size() / inner : 0, 8, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r) {
      std::int64_t k = index[static_cast<std::size_t>(r % count)];
      if (k < 0) k += extent;
      const bool inside = k >= 0 && k < extent;  // an index outside the table gives zeros
      const std::int64_t from = inside ? (r / count * extent + k) * inner : 0;
      for (std::int64_t i = 0; i < inner; ++i) out[r * inner + i] = inside ? dequantized(t, from + i) : 0.0F;
    }
  });
  convert_into(c.output(0, c.input(2).dtype(), shape), y);
}

}  // namespace

void register_gather_block_quantized(OpTable& t) {
  t.add(OpDef("com.microsoft", "GatherBlockQuantized", 1)
            .in("data", "T1", kNibbles | kFloats | bit(DataType::uint8))
            .in("indices", "Tind", types::indices)
            .in("scales", "T2", types::floats)
            .in("zero_points", "T1", kNibbles | bit(DataType::uint8), Arity::optional)
            .out("output", "T2", types::floats)
            .attrs<GatherBlockQuantizedAttrs>()
            .infer_with(infer_gather)
            .run_with(run_gather));
}

}  // namespace sdx::ops
