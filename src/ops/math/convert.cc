#include "ops/math/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>

#include "base/text/ascii.h"
#include "base/thread_pool.h"
#include "tensor/dispatch.h"

namespace sdx::ops {
namespace {

// Elements pass through a buffer of one of five carrier types: n loads and 5n stores instead of n*n loops. 1024 elements of 8
// bytes stay in the first-level cache.
constexpr std::int64_t kChunk = 1024;
enum class Carrier { f32, f64, i32, i64, u64 };

Carrier carrier_of(DataType type) {
  if (type == DataType::float64) return Carrier::f64;
  if (type == DataType::uint64) return Carrier::u64;
  if (type == DataType::int64 || type == DataType::uint32) return Carrier::i64;
  // int32 if it suffices: few processors convert vectors of 64-bit integers.
  return is_floating(type) ? Carrier::f32 : Carrier::i32;
}

using Plain = TypeList<float, double, Float16, BFloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                       std::uint16_t, std::uint32_t, std::uint64_t, bool, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2,
                       Float8E5M2FNUZ, Float8E8M0, Float6E2M3, Float6E3M2>;

template <class C>
void load_packed(const Tensor& in, std::int64_t at, std::int64_t n, C* to) {
  const int bits = bit_width(in.dtype());
  const bool is_signed = in.dtype() == DataType::int4 || in.dtype() == DataType::int2;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint8_t raw = get_packed(in.data(), bits, at + i);
    if constexpr (std::is_same_v<C, float>) {
      to[i] = small_to_float(raw, kE2M1);
    } else {
      to[i] = static_cast<C>(is_signed ? sign_extend(raw, bits) : static_cast<int>(raw));
    }
  }
}

// C is the carrier of T.
template <class C>
void load(const Tensor& in, std::int64_t at, std::int64_t n, C* to) {
  if (is_sub_byte(in.dtype())) return load_packed(in, at, n, to);
  dispatch(in.dtype(), Plain{}, "Cast", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<ComputeType<T>, C> || (std::is_integral_v<T> && std::is_integral_v<C>)) {
      const auto* from = static_cast<const T*>(in.data()) + at;
      for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<C>(from[i]);
    }
  });
}

// Rounds to float so that a further rounding to fewer bits is equivalent to a single rounding: inexact results get an odd last
// bit. Source: Boldo and Melquiond, "When double rounding is odd", 2005.
float round_to_odd(double v) {
  const auto f = static_cast<float>(v);
  if (static_cast<double>(f) == v || v != v) return f;
  auto bits = std::bit_cast<std::uint32_t>(f);
  if (std::fabs(static_cast<double>(f)) > std::fabs(v)) --bits;
  return std::bit_cast<float>(bits | 1U);
}

// Gives x86's results for numbers that the type cannot hold, so that files made there mean the same everywhere.
template <class T, class C>
T float_to_int(C v) {
  using Wide = std::conditional_t<(sizeof(T) < 4 || std::is_same_v<T, std::int32_t>), std::int32_t, std::int64_t>;
  // 2^31 and 2^63 are the first numbers beyond the types; both carriers represent them and their negatives exactly.
  const C top = static_cast<C>(sizeof(Wide) == 4 ? 2147483648.0 : 9223372036854775808.0);
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    if (v >= top) return v >= 2 * top ? 0 : static_cast<std::uint64_t>(v);
  }
  // Truncation brings what lies between -2^31 - 1 and -2^31 back into the range.
  const C whole = std::trunc(v);
  const bool fits = whole >= -top && whole < top;  // false for NaN
  return static_cast<T>(fits ? static_cast<Wide>(whole) : std::numeric_limits<Wide>::min());
}

template <class T, class C>
T to_small_float(C v, const ConvertOptions& options) {
  float f = 0;
  if constexpr (std::is_same_v<C, float>) {
    f = v;
  } else {
    f = round_to_odd(static_cast<double>(v));
  }
  if constexpr (std::is_same_v<T, Float8E8M0>) {
    T out;
    out.bits = float_to_e8m0(f, options.saturate, options.e8m0_rounding);
    return out;
  } else if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return T(f);
  } else {
    return T(f, options.saturate);
  }
}

template <class T, class C>
T store_one(C v, const ConvertOptions& options) {
  if constexpr (std::is_same_v<T, bool>) {
    return v != 0;
  } else if constexpr (is_reduced_float_v<T>) {
    return to_small_float<T>(v, options);
  } else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<C>) {
    return float_to_int<T>(v);
  } else {
    return static_cast<T>(v);  // integers lose their high bits: defined since C++20
  }
}

template <class C>
void store_packed(const C* from, Tensor& out, std::int64_t at, std::int64_t n) {
  const int bits = bit_width(out.dtype());
  void* data = out.mutable_data();
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint8_t raw = 0;
    if (out.dtype() == DataType::float4e2m1) {
      // The format has no NaN. The specification is silent; ONNX's own test data turn NaN into minus zero (code 8).
      const auto v = static_cast<float>(from[i]);
      raw = v != v ? std::uint8_t{8} : float_to_small(v, kE2M1);
    } else {
      raw = static_cast<std::uint8_t>(store_one<std::uint8_t>(from[i], {}) & ((1 << bits) - 1));
    }
    set_packed(data, bits, at + i, raw);
  }
}

template <class C>
void store(const C* from, Tensor& out, std::int64_t at, std::int64_t n, const ConvertOptions& options) {
  if (is_sub_byte(out.dtype())) return store_packed(from, out, at, n);
  dispatch(out.dtype(), Plain{}, "Cast", [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* to = static_cast<T*>(out.mutable_data()) + at;
    for (std::int64_t i = 0; i < n; ++i) to[i] = store_one<T>(from[i], options);
  });
}

template <class C>
void convert_numbers(const Tensor& in, Tensor& out, const ConvertOptions& options) {
  // A chunk boundary falls on a whole byte of packed types, so threads never share a byte.
  const std::int64_t chunks = (in.size() + kChunk - 1) / kChunk;
  parallel_for(chunks, 16, [&](std::int64_t begin, std::int64_t end) {
    std::array<C, kChunk> buffer;
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int64_t at = k * kChunk;
      const std::int64_t n = std::min(kChunk, in.size() - at);
      load<C>(in, at, n, buffer.data());
      store<C>(buffer.data(), out, at, n, options);
    }
  });
}

// --- text --------------------------------------------------------------------------------------------------------------

[[noreturn]] void no_number(std::string_view text) {
  fail(ErrorCode::runtime_failure, "cannot convert the text \"{}\" to a number", text.substr(0, 64));
}

// from_chars knows "inf", "infinity" and "nan" in any case, but no plus sign.
template <class F>
F parse_float(std::string_view original) {
  std::string_view s = trimmed_text(original, " \t\r\n");
  if (s.starts_with('+') && !s.starts_with("+-")) s.remove_prefix(1);
  F value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (end != s.data() + s.size() || s.empty() || error == std::errc::invalid_argument) no_number(original);
  if (error == std::errc::result_out_of_range) {
    // Too large or too small: the exponent's sign tells which, as a mantissa long enough to decide it alone is not a number
    // that anyone writes.
    const std::size_t e = s.find_first_of("eE");
    const bool tiny = e != std::string_view::npos ? s.substr(e + 1).starts_with('-') : s.find('.') < 2;
    const F magnitude = tiny ? F(0) : std::numeric_limits<F>::infinity();
    return s.starts_with('-') ? -magnitude : magnitude;
  }
  return value;
}

template <class T>
T parse_number(std::string_view original, const ConvertOptions& options) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    return parse_float<T>(original);
  } else {
    std::string_view s = trimmed_text(original, " \t\r\n");
    if constexpr (std::is_same_v<T, bool>) {
      if (s == "True" || s == "true" || s == "TRUE") return true;
      if (s == "False" || s == "false" || s == "FALSE") return false;
    }
    if constexpr (std::is_integral_v<T>) {
      if (s.starts_with('+') && !s.starts_with("+-")) s.remove_prefix(1);
      std::int64_t whole = 0;
      const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), whole);
      if (error == std::errc() && end == s.data() + s.size()) return store_one<T>(whole, options);
      std::uint64_t large = 0;
      const auto [end2, error2] = std::from_chars(s.data(), s.data() + s.size(), large);
      if (error2 == std::errc() && end2 == s.data() + s.size()) return store_one<T>(large, options);
    }
    return store_one<T>(parse_float<double>(original), options);
  }
}

void parse(const Tensor& in, Tensor& out, const ConvertOptions& options) {
  const auto texts = in.values<std::string>();
  if (is_sub_byte(out.dtype())) {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const double v = parse_float<double>(texts[i]);
      store_packed(&v, out, static_cast<std::int64_t>(i), 1);
    }
    return;
  }
  dispatch(out.dtype(), Plain{}, "Cast", [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* to = static_cast<T*>(out.mutable_data());
    for (std::size_t i = 0; i < texts.size(); ++i) to[i] = parse_number<T>(texts[i], options);
  });
}

// The shortest text that reads back as the same number; "NaN", "INF" and "-INF" as the specification spells them.
template <class C>
std::string print(C v) {
  if constexpr (std::is_floating_point_v<C>) {
    if (std::isnan(v)) return "NaN";
    if (std::isinf(v)) return v < 0 ? "-INF" : "INF";
  }
  return fmt::format("{}", v);
}

template <class C>
void print_all(const Tensor& in, Tensor& out) {
  std::array<C, kChunk> buffer;
  const auto to = out.mutable_values<std::string>();
  for (std::int64_t at = 0; at < in.size(); at += kChunk) {
    const std::int64_t n = std::min(kChunk, in.size() - at);
    load<C>(in, at, n, buffer.data());
    for (std::int64_t i = 0; i < n; ++i) to[static_cast<std::size_t>(at + i)] = print(buffer[static_cast<std::size_t>(i)]);
  }
}

}  // namespace

void convert(const Tensor& in, Tensor& out, const ConvertOptions& options) {
  SDX_ASSERT(in.size() == out.size());
  if (((bit(in.dtype()) | bit(out.dtype())) & ~kConvertible) != 0) {
    fail(ErrorCode::not_implemented, "no conversion from {} to {}", name(in.dtype()), name(out.dtype()));
  }
  if (in.dtype() == out.dtype()) {
    if (in.dtype() == DataType::string) {
      std::ranges::copy(in.values<std::string>(), out.mutable_values<std::string>().begin());
    } else if (in.bytes() != 0) {
      std::memcpy(out.mutable_data(), in.data(), in.bytes());
    }
    return;
  }
  if (in.dtype() == DataType::string) return parse(in, out, options);
  const bool to_text = out.dtype() == DataType::string;
  switch (carrier_of(in.dtype())) {
    case Carrier::f32: return to_text ? print_all<float>(in, out) : convert_numbers<float>(in, out, options);
    case Carrier::f64: return to_text ? print_all<double>(in, out) : convert_numbers<double>(in, out, options);
    case Carrier::i32: return to_text ? print_all<std::int32_t>(in, out) : convert_numbers<std::int32_t>(in, out, options);
    case Carrier::i64: return to_text ? print_all<std::int64_t>(in, out) : convert_numbers<std::int64_t>(in, out, options);
    case Carrier::u64: return to_text ? print_all<std::uint64_t>(in, out) : convert_numbers<std::uint64_t>(in, out, options);
  }
}

Tensor converted(const Tensor& in, DataType to) {
  if (in.dtype() == to) return in;
  Tensor out(to, in.shape());
  convert(in, out);
  return out;
}

}  // namespace sdx::ops
