#include "ops/quant/quant_codec.h"

#include "base/error.h"
#include "tensor/dispatch.h"

namespace sdx::ops {
namespace {

using ByteFloats = TypeList<Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ, Float6E2M3, Float6E3M2, Float8E8M0>;

bool is_signed_packed(DataType type) { return type == DataType::int4 || type == DataType::int2; }

}  // namespace

QuantRange quant_range(DataType type) {
  switch (type) {
    case DataType::int2: return {-2, 1};
    case DataType::uint2: return {0, 3};
    case DataType::int4: return {-8, 7};
    case DataType::uint4: return {0, 15};
    case DataType::int8: return {-128, 127};
    case DataType::uint8: return {0, 255};
    case DataType::int16: return {-32768, 32767};
    case DataType::uint16: return {0, 65535};
    default:
      fail(ErrorCode::not_implemented, "{} is not an integer quantisation type; expected int or uint of 2, 4, 8 or 16 bits",
           name(type));
  }
}

bool is_quant_integer(DataType type) noexcept {
  switch (type) {
    case DataType::int2:
    case DataType::uint2:
    case DataType::int4:
    case DataType::uint4:
    case DataType::int8:
    case DataType::uint8:
    case DataType::int16:
    case DataType::uint16:
    case DataType::int32: return true;
    default: return false;
  }
}

void decode_ints(DataType type, const void* data, std::int64_t begin, std::int64_t count, std::int32_t* out) {
  if (is_sub_byte(type)) {
    const int bits = bit_width(type);
    const bool extend = is_signed_packed(type);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint8_t raw = get_packed(data, bits, begin + i);
      out[i] = extend ? sign_extend(raw, bits) : raw;
    }
    return;
  }
  using Types = TypeList<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t>;
  dispatch(type, Types{}, "integer decoding", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = static_cast<const T*>(data) + begin;
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<std::int32_t>(in[i]);
  });
}

void decode_floats(DataType type, const void* data, std::int64_t begin, std::int64_t count, float* out) {
  if (type == DataType::float4e2m1) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = small_to_float(get_packed(data, 4, begin + i), kE2M1);
    return;
  }
  if (is_quant_integer(type)) {
    constexpr std::int64_t kChunk = 256;
    std::int32_t chunk[kChunk];
    for (std::int64_t at = 0; at < count; at += kChunk) {
      const std::int64_t n = count - at < kChunk ? count - at : kChunk;
      decode_ints(type, data, begin + at, n, chunk);
      for (std::int64_t i = 0; i < n; ++i) out[at + i] = static_cast<float>(chunk[i]);
    }
    return;
  }
  const auto copy = [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = static_cast<const T*>(data) + begin;
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i]);
  };
  if (bit_width(type) == 8) return dispatch(type, ByteFloats{}, "float decoding", copy);
  dispatch(type, FloatTypes{}, "float decoding", copy);
}

std::vector<std::int32_t> decode_ints(const Tensor& tensor) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(tensor.size()));
  decode_ints(tensor.dtype(), tensor.data(), 0, tensor.size(), out.data());
  return out;
}

std::vector<float> decode_floats(const Tensor& tensor) {
  std::vector<float> out(static_cast<std::size_t>(tensor.size()));
  decode_floats(tensor.dtype(), tensor.data(), 0, tensor.size(), out.data());
  return out;
}

void encode_ints(DataType type, const std::int32_t* in, std::int64_t begin, std::int64_t count, void* data) {
  if (is_sub_byte(type)) {
    auto* out = static_cast<std::uint8_t*>(data) + begin;
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>(in[i]);
    return;
  }
  using Types = TypeList<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t>;
  dispatch(type, Types{}, "integer encoding", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = static_cast<T*>(data) + begin;
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(in[i]);
  });
}

void encode_floats(DataType type, const float* in, std::int64_t begin, std::int64_t count, bool saturate, void* data) {
  if (type == DataType::float4e2m1) {
    auto* out = static_cast<std::uint8_t*>(data) + begin;
    for (std::int64_t i = 0; i < count; ++i) out[i] = float_to_small(in[i], kE2M1);
    return;
  }
  if (bit_width(type) == 8) {
    return dispatch(type, ByteFloats{}, "float encoding", [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* out = static_cast<T*>(data) + begin;
      for (std::int64_t i = 0; i < count; ++i) out[i] = T(in[i], saturate);
    });
  }
  dispatch(type, FloatTypes{}, "float encoding", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = static_cast<T*>(data) + begin;
    for (std::int64_t i = 0; i < count; ++i) out[i] = T(in[i]);
  });
}

void pack_bytes(const std::uint8_t* in, std::int64_t count, int bits, void* out) {
  if (count == 0) return;
  const int per = 8 / bits;
  static_cast<std::uint8_t*>(out)[(count - 1) / per] = 0;  // the unused high bits of the last byte
  for (std::int64_t i = 0; i < count; ++i) set_packed(out, bits, i, in[i]);
}

}  // namespace sdx::ops
