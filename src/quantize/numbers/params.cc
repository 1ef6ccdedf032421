#include "quantize/numbers/params.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "tensor/element.h"

namespace sdx::quantize {
namespace {

constexpr double kLargestE4M3 = 448;

struct Slices {
  std::int64_t outer = 1, count = 1, inner = 1;
};

Slices slices_of(const Shape& shape, std::optional<std::int64_t> axis) {
  Slices s;
  if (!axis) {
    for (const std::int64_t e : shape) s.inner *= e;
    return s;
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    (at < *axis ? s.outer : at == *axis ? s.count : s.inner) *= shape[i];
  }
  return s;
}

template <class F>
void for_each_run(const Slices& s, std::int64_t slice, const F& use) {
  for (std::int64_t o = 0; o < s.outer; ++o) use((o * s.count + slice) * s.inner);
}

// Elements of 4 bits may leave half of the last byte unset.
Tensor cleared(QuantType type, const Shape& shape) {
  Tensor t(data_type(type), shape);
  std::fill_n(static_cast<std::byte*>(t.mutable_data()), t.bytes(), std::byte{0});
  return t;
}

// The type's codes; those of 4 bits lie two to a byte, the first in the low bits.
class Codes {
 public:
  Codes(QuantType type, const Shape& shape) : type_(type), tensor_(cleared(type, shape)) {
    data_ = static_cast<std::byte*>(tensor_.mutable_data());
    whole_ = code_range(type, false, false);
  }

  void store(std::int64_t index, float x, const QuantParams& p) {
    if (type_ == QuantType::qfloat8e4m3fn) {
      set_element(tensor_, index, static_cast<double>(x) / static_cast<double>(p.scale));
      return;
    }
    // Rounds like QuantizeLinear: the quotient in float32, to the nearest, halves to even.
    const double code = std::nearbyint(static_cast<double>(x / p.scale)) + static_cast<double>(p.zero);
    const auto q = static_cast<std::int32_t>(std::clamp(code, whole_.low, whole_.high));
    switch (type_) {
      case QuantType::qint8:
      case QuantType::quint8: data_[index] = static_cast<std::byte>(q); break;
      case QuantType::qint16:
      case QuantType::quint16: reinterpret_cast<std::uint16_t*>(data_)[index] = static_cast<std::uint16_t>(q); break;
      default: data_[index / 2] |= static_cast<std::byte>((q & 15) << (index % 2 * 4));
    }
  }
  Tensor take() { return std::move(tensor_); }

 private:
  QuantType type_;
  Tensor tensor_;
  std::byte* data_ = nullptr;
  CodeRange whole_;
};

DataType scale_type(const Tensor& weights) {
  return weights.dtype() == DataType::float16 ? DataType::float16 : DataType::float32;
}

QuantizedTensor quantize_slices(const Tensor& floats, QuantType type, std::optional<std::int64_t> axis, const Slices& s,
                                std::vector<QuantParams> params, DataType scales) {
  for (QuantParams& p : params) p.scale = scale_in(scales, p.scale);
  QuantizedTensor out;
  out.axis = axis;
  Codes codes(type, floats.shape());
  const auto x = floats.values<float>();
  for (std::int64_t c = 0; c < s.count; ++c) {
    const QuantParams& p = params[params.size() == 1 ? 0 : static_cast<std::size_t>(c)];
    for_each_run(s, c, [&](std::int64_t begin) {
      for (std::int64_t i = begin; i < begin + s.inner; ++i) codes.store(i, x[static_cast<std::size_t>(i)], p);
    });
  }
  out.codes = codes.take();
  const Shape shape = axis ? Shape{s.count} : Shape{};
  out.scale = Tensor(scales, shape);
  out.zero = cleared(type, shape);
  for (std::int64_t c = 0; c < s.count; ++c) {
    const QuantParams& p = params[params.size() == 1 ? 0 : static_cast<std::size_t>(c)];
    set_element(out.scale, c, static_cast<double>(p.scale));
    set_element(out.zero, c, static_cast<double>(p.zero));
  }
  return out;
}

// One, or one for each index.
void check_count(std::size_t count, const char* what, const Tensor& weights, std::optional<std::int64_t> axis, const Slices& s) {
  if (count == 1 || count == static_cast<std::size_t>(s.count)) return;
  fail(ErrorCode::invalid_argument, "{} {} for weights of {} (axis {}); expected 1 or {}", count, what, weights.type_string(),
       axis.value_or(0), s.count);
}

}  // namespace

CodeRange code_range(QuantType type, bool symmetric, bool reduce_range) {
  switch (type) {
    case QuantType::qint8:
      if (reduce_range) return {-64, 64};
      return {symmetric ? -127.0 : -128.0, 127};
    case QuantType::quint8: return {0, reduce_range ? 127.0 : 255.0};
    case QuantType::qint16: return {symmetric ? -32767.0 : -32768.0, 32767};
    case QuantType::quint16: return {0, 65535};
    // With only 16 codes each one counts: without the lowest, steps would be 7 % larger; with it, the largest value is half a
    // step off at most.
    case QuantType::qint4: return {-8, 7};
    case QuantType::quint4: return {0, 15};
    case QuantType::qfloat8e4m3fn: return {-kLargestE4M3, kLargestE4M3};
  }
  return {};
}

QuantParams params_of(Range range, QuantType type, bool symmetric, bool reduce_range, std::optional<float> least) {
  double low = std::min(range.low, 0.0), high = std::max(range.high, 0.0);
  if (least) high = std::max(high, low + static_cast<double>(*least));
  const bool whole_numbers = type != QuantType::qfloat8e4m3fn;
  if (symmetric || !whole_numbers) {
    high = std::max(-low, high);
    low = -high;
  }
  const CodeRange codes = code_range(type, symmetric, reduce_range);
  const double scale = (high - low) / (codes.high - codes.low);
  // Only zeros, or a scale that float32 cannot divide by.
  if (!(scale >= static_cast<double>(std::numeric_limits<float>::min()))) {
    return {1, whole_numbers && symmetric ? static_cast<std::int64_t>(std::nearbyint((codes.low + codes.high) / 2)) : 0};
  }
  QuantParams p;
  p.scale = static_cast<float>(scale);
  if (!whole_numbers) return p;
  // The middle of an odd number of codes is one of them; else that nearest to it.
  const double zero = symmetric ? (codes.low + codes.high) / 2 + (codes.low == 0 ? 0.25 : 0) : codes.low - low / scale;
  p.zero = static_cast<std::int64_t>(std::clamp(std::nearbyint(zero), codes.low, codes.high));
  return p;
}

QuantParams restricted_params_of(Range range, std::optional<float> least) {
  const double low = std::min(range.low, 0.0);
  double high = std::max(range.high, 0.0);
  if (least) high = std::max(high, low + static_cast<double>(*least));
  constexpr std::int64_t kMiddle = 128;
  const std::int64_t zero = low < 0 ? kMiddle : 0;
  const double scale = std::max(-low / kMiddle, high / static_cast<double>(255 - zero));
  if (!(scale >= static_cast<double>(std::numeric_limits<float>::min()))) return {1, zero};
  return {static_cast<float>(scale), zero};
}

QuantizedTensor quantize_tensor(const Tensor& weights, const WeightSettings& settings) {
  const Tensor floats = to_float32(weights).aligned();
  const Slices s = slices_of(floats.shape(), settings.axis);
  if (!settings.ranges.empty()) check_count(settings.ranges.size(), "ranges", weights, settings.axis, s);
  const auto x = floats.values<float>();
  std::vector<QuantParams> params;
  for (std::int64_t c = 0; c < s.count; ++c) {
    Range range;
    bool finite = true;
    for_each_run(s, c, [&](std::int64_t begin) {
      for (std::int64_t i = begin; i < begin + s.inner; ++i) {
        const auto v = static_cast<double>(x[static_cast<std::size_t>(i)]);
        finite = finite && std::isfinite(v);
        range.low = std::min(range.low, v);
        range.high = std::max(range.high, v);
      }
    });
    if (!finite)
      fail(ErrorCode::invalid_argument, "weights of {} with NaN or infinities cannot be quantised", weights.type_string());
    if (!settings.ranges.empty()) range = settings.ranges[settings.ranges.size() == 1 ? 0 : static_cast<std::size_t>(c)];
    params.push_back(params_of(range, settings.type, settings.symmetric, settings.reduce_range, settings.least_range));
  }
  return quantize_slices(floats, settings.type, settings.axis, s, std::move(params), scale_type(weights));
}

QuantizedTensor quantize_tensor(const Tensor& weights, QuantType type, std::optional<std::int64_t> axis,
                                const std::vector<QuantParams>& params) {
  const Tensor floats = to_float32(weights).aligned();
  const Slices s = slices_of(floats.shape(), axis);
  check_count(params.size(), "scales", weights, axis, s);
  return quantize_slices(floats, type, axis, s, params, scale_type(weights));
}

float scale_in(DataType type, float scale) {
  if (type != DataType::float16) return scale;
  constexpr double kLeast = 0x1p-24;
  Tensor half(DataType::float16, {});
  set_element(half, 0, std::max(static_cast<double>(scale), kLeast));
  return static_cast<float>(element_as_double(half, 0));
}

Tensor float_scalar(float value, DataType type) {
  Tensor t(type, {});
  set_element(t, 0, static_cast<double>(value));
  return t;
}

Tensor code_scalar(QuantType type, std::int64_t value) {
  Tensor t = cleared(type, {});
  set_element(t, 0, static_cast<double>(value));
  return t;
}

}  // namespace sdx::quantize
