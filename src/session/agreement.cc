#include "session/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/types.h"

namespace sdx::session {
namespace {

// Reduced precision (float16, TensorFloat-32, bfloat16 on accelerators) stays below it on usual models; a wrong result does not.
constexpr double kTolerance = 0.01;

double number_at(const Tensor& t, std::int64_t i) {
  switch (t.dtype()) {
    case DataType::float32: return static_cast<const float*>(t.data())[i];
    case DataType::float64: return static_cast<const double*>(t.data())[i];
    case DataType::float16: return half_to_float(static_cast<const std::uint16_t*>(t.data())[i]);
    default: {  // bfloat16: the upper half of a float32
      const std::uint32_t bits = std::uint32_t{static_cast<const std::uint16_t*>(t.data())[i]} << 16;
      float x = 0;
      std::memcpy(&x, &bits, 4);
      return x;
    }
  }
}

std::string float_disagreement(const Tensor& a, const Tensor& b) {
  double largest = 0, difference = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double x = number_at(a, i), y = number_at(b, i);
    if (std::isnan(x) != std::isnan(y)) return std::isnan(y) ? "has NaN" : "has no NaN";
    if (std::isnan(x) || x == y) continue;
    if (std::isinf(x) || std::isinf(y)) return "has other infinities";
    largest = std::max(largest, std::abs(x));
    difference = std::max(difference, std::abs(x - y));
  }
  if (difference <= kTolerance * std::max(largest, 1e-6)) return "";
  return fmt::format("by {:.3g}, the largest magnitude is {:.3g}", difference, largest);
}

bool is_float(DataType t) {
  return t == DataType::float32 || t == DataType::float64 || t == DataType::float16 || t == DataType::bfloat16;
}

}  // namespace

std::string disagreement(const Value& reference, const Value& got, bool values_too) {
  if (reference.type_string() != got.type_string()) {
    return fmt::format("is {}, cpu says {}", got.type_string(), reference.type_string());
  }
  if (!values_too || !reference.is_tensor()) return "";
  const Tensor& a = reference.tensor();
  const Tensor& b = got.tensor();
  std::string why;
  if (is_float(a.dtype())) {
    why = float_disagreement(a, b);
  } else if (a.dtype() == DataType::string) {
    const auto x = a.values<std::string>(), y = b.values<std::string>();
    if (!std::equal(x.begin(), x.end(), y.begin())) why = "in a text";
  } else if (a.bytes() != 0 && std::memcmp(a.data(), b.data(), a.bytes()) != 0) {
    why = "in a number";
  }
  return why.empty() ? "" : "differs from cpu: " + why;
}

}  // namespace sdx::session
