// Pow: ai.onnx 1 (legacy broadcast), 7, 12 (exponents of another type, integer bases), 13, 15. The result has the base's type.

#include <cmath>

#include "ops/math/broadcast.h"
#include "ops/math/convert.h"
#include "ops/math/elementwise.h"
#include "ops/math/legacy_broadcast.h"
#include "ops/math/signatures.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

using BaseTypes = TypeList<float, double, Float16, BFloat16, std::int32_t, std::int64_t>;

void infer_pow(InferContext& c) { infer_binary(c, c.dtype(0)); }

// Overflow wraps around. A negative exponent gives the truncated fraction; zero to a negative power saturates like the
// conversion of an infinity does.
template <class T>
T integer_power(T base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return std::numeric_limits<T>::max();
    if (base == 1) return 1;
    if (base == T(-1)) return exponent % 2 == 0 ? T(1) : T(-1);
    return 0;
  }
  std::uint64_t result = 1;
  auto factor = static_cast<std::uint64_t>(base);
  for (auto e = static_cast<std::uint64_t>(exponent); e != 0; e >>= 1) {
    if ((e & 1) != 0) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}

// Exponents arrive as float, double or int64, whichever loses nothing.
template <class T, class E>
void power(const Tensor& base, const Tensor& exponent, Tensor& out) {
  if constexpr (std::is_same_v<T, float> && std::is_same_v<E, float>) {
    // Squaring is by far the most common use (layer and RMS normalisation).
    if (exponent.size() == 1 && exponent.values<float>()[0] == 2.0F && base.shape() == out.shape()) {
      return map_elements<T>(base, out, [](float x) { return x * x; });
    }
  }
  broadcast_binary<T, E, T>(base, exponent, out, [](T x, E e) {
    if constexpr (std::is_integral_v<T> && std::is_integral_v<E>) {
      return integer_power(x, e);
    } else if constexpr (is_reduced_float_v<T> || (std::is_same_v<T, float> && std::is_same_v<E, float>)) {
      return static_cast<T>(static_cast<float>(std::pow(static_cast<float>(x), e)));
    } else {
      return saturating_cast<T>(std::pow(static_cast<double>(x), static_cast<double>(e)));
    }
  });
}

void run_pow(OpContext& c) {
  const Tensor& base = c.input(0);
  const Tensor raw = legacy_operand(c);
  if (!is_integer(raw.dtype()) && !is_floating(raw.dtype())) c.fail("exponents must be numbers, received {}", raw.type_string());
  DataType carrier = DataType::int64;
  if (is_floating(raw.dtype())) carrier = raw.dtype() == DataType::float64 ? DataType::float64 : DataType::float32;
  const Tensor exponent = converted(raw, carrier);
  Tensor& out = c.output(0, base.dtype(), broadcast_shapes(base.shape(), exponent.shape()));
  dispatch(base.dtype(), BaseTypes{}, "Pow", [&](auto tag) {
    using T = typename decltype(tag)::type;
    switch (carrier) {
      case DataType::int64: return power<T, std::int64_t>(base, exponent, out);
      case DataType::float64: return power<T, double>(base, exponent, out);
      default: return power<T, float>(base, exponent, out);
    }
  });
}

}  // namespace

void register_power(OpTable& t) {
  const TypeSet bases = types::floats | types::indices;
  t.add(OpDef("Pow", 1)
            .in("X", "T", bases)
            .in("Y", "", types::numeric)
            .out("Z", "T", bases)
            .attrs<LegacyBroadcastAttrs>()
            .infer_with(infer_pow)
            .run_with(run_pow));
}

}  // namespace sdx::ops
