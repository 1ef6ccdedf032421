#include "tensor/element.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/system/printable.h"
#include "tensor/dispatch.h"
#include "tensor/print.h"

#include <fmt/format.h>

namespace sdx {
namespace {

using AllNumbers = TypeList<float, double, Float16, BFloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                            std::uint16_t, std::uint32_t, std::uint64_t, bool, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2,
                            Float8E5M2FNUZ, Float8E8M0, Float6E2M3, Float6E3M2>;

// Views of files may be unaligned, so elements are copied out.
template <class T>
T load(const Tensor& t, std::int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(t.data()) + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(Tensor& t, std::int64_t i, T value) {
  std::memcpy(static_cast<char*>(t.mutable_data()) + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
}

double packed_as_double(const Tensor& t, std::int64_t i) {
  const int bits = bit_width(t.dtype());
  const std::uint8_t raw = get_packed(t.data(), bits, i);
  switch (t.dtype()) {
    case DataType::int4:
    case DataType::int2: return sign_extend(raw, bits);
    case DataType::float4e2m1: return static_cast<double>(small_to_float(raw, kE2M1));
    default: return raw;
  }
}

void set_packed_element(Tensor& t, std::int64_t i, double value) {
  const int bits = bit_width(t.dtype());
  std::uint8_t raw = 0;
  if (t.dtype() == DataType::float4e2m1) {
    raw = float_to_small(static_cast<float>(value), kE2M1);
  } else {
    const bool is_signed = t.dtype() == DataType::int4 || t.dtype() == DataType::int2;
    const int low = is_signed ? -(1 << (bits - 1)) : 0;
    const int high = low + (1 << bits) - 1;
    const double v = std::isnan(value) ? 0 : std::clamp(value, static_cast<double>(low), static_cast<double>(high));
    raw = static_cast<std::uint8_t>(static_cast<int>(v) & ((1 << bits) - 1));
  }
  set_packed(t.mutable_data(), bits, i, raw);
}

}  // namespace

double element_as_double(const Tensor& t, std::int64_t i) {
  if (is_sub_byte(t.dtype())) return packed_as_double(t, i);
  if (t.dtype() == DataType::complex64) return static_cast<double>(load<std::complex<float>>(t, i).real());
  if (t.dtype() == DataType::complex128) return load<std::complex<double>>(t, i).real();
  double out = 0;
  dispatch(t.dtype(), AllNumbers{}, "reading an element", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_arithmetic_v<T>) {
      out = static_cast<double>(load<T>(t, i));
    } else {
      out = static_cast<double>(static_cast<float>(load<T>(t, i)));
    }
  });
  return out;
}

std::int64_t element_as_int(const Tensor& t, std::int64_t i) {
  if (t.dtype() == DataType::int64) return load<std::int64_t>(t, i);
  if (t.dtype() == DataType::uint64) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(load<std::uint64_t>(t, i), INT64_MAX));
  }
  return saturating_cast<std::int64_t>(element_as_double(t, i));
}

void set_element(Tensor& t, std::int64_t i, double value) {
  if (is_sub_byte(t.dtype())) return set_packed_element(t, i, value);
  if (t.dtype() == DataType::complex64) return store(t, i, std::complex<float>(static_cast<float>(value), 0));
  if (t.dtype() == DataType::complex128) return store(t, i, std::complex<double>(value, 0));
  dispatch(t.dtype(), AllNumbers{}, "writing an element", [&](auto tag) {
    using T = typename decltype(tag)::type;
    store<T>(t, i, saturating_cast<T>(value));
  });
}

void set_element_int(Tensor& t, std::int64_t i, std::int64_t value) {
  if (t.dtype() == DataType::int64) return store(t, i, value);
  if (t.dtype() == DataType::uint64) return store(t, i, value < 0 ? 0 : static_cast<std::uint64_t>(value));
  set_element(t, i, static_cast<double>(value));
}

std::vector<std::int64_t> to_ints(const Tensor& t) {
  if (!is_integer(t.dtype()) && t.dtype() != DataType::boolean) {
    fail(ErrorCode::invalid_argument, "expected integers, received {}", t.type_string());
  }
  std::vector<std::int64_t> out(static_cast<std::size_t>(t.size()));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = element_as_int(t, static_cast<std::int64_t>(i));
  return out;
}

std::vector<float> to_floats(const Tensor& t) {
  std::vector<float> out(static_cast<std::size_t>(t.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(element_as_double(t, static_cast<std::int64_t>(i)));
  }
  return out;
}

Tensor to_float32(const Tensor& t) {
  if (t.dtype() == DataType::float32) return t;
  Tensor out(DataType::float32, t.shape());
  const auto to = out.mutable_values<float>();
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(element_as_double(t, static_cast<std::int64_t>(i)));
  return out;
}

Tensor from_ints(const std::vector<std::int64_t>& values) {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, std::span<const std::int64_t>(values));
}

std::string print_element(const Tensor& t, std::int64_t i) {
  if (t.dtype() == DataType::string) return "\"" + one_line(static_cast<const std::string*>(t.data())[i]) + "\"";
  if (t.dtype() == DataType::boolean) return element_as_double(t, i) != 0 ? "true" : "false";
  if (t.dtype() == DataType::uint64) return std::to_string(load<std::uint64_t>(t, i));
  if (t.dtype() == DataType::complex64) {
    const auto z = load<std::complex<float>>(t, i);
    return fmt::format("({:.9g}, {:.9g})", z.real(), z.imag());
  }
  if (t.dtype() == DataType::complex128) {
    const auto z = load<std::complex<double>>(t, i);
    return fmt::format("({:.17g}, {:.17g})", z.real(), z.imag());
  }
  if (is_integer(t.dtype())) return std::to_string(element_as_int(t, i));
  if (t.dtype() == DataType::float64) return fmt::format("{}", load<double>(t, i));
  return fmt::format("{}", static_cast<float>(element_as_double(t, i)));
}

std::string print_elements(const Tensor& t, std::int64_t limit) {
  std::string out = "{";
  for (std::int64_t i = 0; i < t.size() && i < limit; ++i) {
    if (i != 0) out += ", ";
    out += print_element(t, i);
  }
  if (t.size() > limit) out += fmt::format(", … {} in all", t.size());
  return out + "}";
}

}  // namespace sdx
