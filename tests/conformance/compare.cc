#include "conformance/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tensor/element.h"
#include "tensor/print.h"
#include "tensor/types.h"

namespace sdx::testing {
namespace {

Tolerance for_type(DataType type, Tolerance t) {
  if (type == DataType::float16) return {std::max(t.rtol, 0x1p-9), std::max(t.atol, 1e-6)};
  if (type == DataType::bfloat16) return {std::max(t.rtol, 0x1p-6), std::max(t.atol, 1e-6)};
  return t;
}

bool close(double a, double b, const Tolerance& t) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::abs(a - b) <= t.atol + t.rtol * std::abs(b);
}

template <class T>
bool complex_close(const Tensor& a, const Tensor& b, std::int64_t i, const Tolerance& t) {
  const auto* x = static_cast<const T*>(a.data()) + 2 * i;
  const auto* y = static_cast<const T*>(b.data()) + 2 * i;
  // numpy compares the modulus of the difference with that of the expected number
  const double size = std::hypot(static_cast<double>(y[0]), static_cast<double>(y[1]));
  const double off =
      std::hypot(static_cast<double>(x[0]) - static_cast<double>(y[0]), static_cast<double>(x[1]) - static_cast<double>(y[1]));
  return off <= t.atol + t.rtol * size;
}

bool element_close(const Tensor& a, const Tensor& b, std::int64_t i, const Tolerance& t) {
  switch (a.dtype()) {
    case DataType::string:
      return a.values<std::string>()[static_cast<std::size_t>(i)] == b.values<std::string>()[static_cast<std::size_t>(i)];
    case DataType::complex64: return complex_close<float>(a, b, i, t);
    case DataType::complex128: return complex_close<double>(a, b, i, t);
    case DataType::float32:
    case DataType::float64:
    case DataType::float16:
    case DataType::bfloat16: return close(element_as_double(a, i), element_as_double(b, i), t);
    default: break;
  }
  if (is_floating(a.dtype())) return close(element_as_double(a, i), element_as_double(b, i), {0, 0});
  return element_as_int(a, i) == element_as_int(b, i);
}

// Where sums cancel, what is left is rounding noise in proportion to the terms: the inverse DFT's expected answers hold 1.9e-7
// where zero is exact. Four units in the last place of the largest element.
double cancellation(const Tensor& expected) {
  if (expected.dtype() != DataType::float32) return 0;
  double largest = 0;
  for (const float f : expected.values<float>()) {
    if (std::isfinite(f)) largest = std::max(largest, static_cast<double>(std::abs(f)));
  }
  return largest * 4 * std::numeric_limits<float>::epsilon();
}

std::string tensor_difference(const Tensor& raw_a, const Tensor& raw_b, Tolerance t) {
  if (raw_a.dtype() != raw_b.dtype() || raw_a.shape() != raw_b.shape()) {
    return fmt::format("received {}, expected {}", raw_a.type_string(), raw_b.type_string());
  }
  const Tensor a = raw_a.aligned();
  const Tensor b = raw_b.aligned();
  t = for_type(a.dtype(), t);
  t.atol += cancellation(b);
  std::int64_t bad = 0;
  std::string first;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    if (element_close(a, b, i, t)) continue;
    if (bad++ == 0) first = fmt::format("element {} is {}, expected {}", i, print_element(a, i), print_element(b, i));
  }
  return bad == 0 ? "" : fmt::format("{} of {} elements of {} differ; {}", bad, a.size(), a.type_string(), first);
}

std::string map_difference(const Map& a, const Map& b, const Tolerance& t) {
  if (a.keys.dtype() != b.keys.dtype() || a.keys.size() != b.keys.size() || a.values.dtype() != b.values.dtype()) {
    return fmt::format("received a map of {} to {}, expected {} to {}", a.keys.type_string(), a.values.type_string(),
                       b.keys.type_string(), b.values.type_string());
  }
  for (std::int64_t i = 0; i < b.keys.size(); ++i) {
    std::int64_t j = 0;
    while (j < a.keys.size() && print_element(a.keys, j) != print_element(b.keys, i)) ++j;
    const std::string key = print_element(b.keys, i);
    if (j == a.keys.size()) return "key " + key + " is missing";
    const auto value = [](const Tensor& x, std::int64_t k) {
      if (x.dtype() == DataType::string) return Tensor::scalar<std::string>(x.values<std::string>()[static_cast<std::size_t>(k)]);
      Tensor one(x.dtype(), {});
      const std::size_t size = byte_size(x.dtype(), 1);
      std::memcpy(one.mutable_data(), static_cast<const char*>(x.data()) + static_cast<std::size_t>(k) * size, size);
      return one;
    };
    const std::string d = tensor_difference(value(a.values, j), value(b.values, i), t);
    if (!d.empty()) return "at key " + key + ": " + d;
  }
  return "";
}

}  // namespace

std::string difference(const Value& actual, const Value& expected, const Tolerance& tolerance) {
  if (actual.is_tensor() && expected.is_tensor()) return tensor_difference(actual.tensor(), expected.tensor(), tolerance);
  if (actual.is_map() && expected.is_map()) return map_difference(actual.map(), expected.map(), tolerance);
  if (actual.is_sequence() && expected.is_sequence()) {
    const auto& a = actual.sequence().items;
    const auto& b = expected.sequence().items;
    if (a.size() != b.size()) return fmt::format("received a sequence of {}, expected {}", a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      const std::string d = difference(a[i], b[i], tolerance);
      if (!d.empty()) return fmt::format("at sequence position {}: {}", i, d);
    }
    return "";
  }
  if (actual.empty() && expected.empty()) return "";
  return fmt::format("received {}, expected {}", actual.type_string(), expected.type_string());
}

}  // namespace sdx::testing
