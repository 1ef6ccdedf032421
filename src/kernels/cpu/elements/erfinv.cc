#include "kernels/cpu/elements/erfinv.h"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>

namespace sdx::cpu {
namespace {

// Within 6e-7 relative of the result.
double first_guess(double x) {
  double w = -std::log((1 - x) * (1 + x));
  if (w < 5) {
    w -= 2.5;
    double p = 2.81022636e-08;
    for (const double c : {3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
                           0.246640727, 1.50140941}) {
      p = c + p * w;
    }
    return p * x;
  }
  w = std::sqrt(w) - 3;
  double p = -0.000200214257;
  for (const double c :
       {0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682}) {
    p = c + p * w;
  }
  return p * x;
}

}  // namespace

double inverse_erf(double x) {
  const double size = std::fabs(x);
  if (!(size < 1)) return size == 1 ? std::copysign(std::numeric_limits<double>::infinity(), x) : std::nan("");
  if (x == 0) return x;
  double y = first_guess(size);
  // Near 1 the difference of erfc keeps the digits that the difference of erf would lose.
  for (int step = 0; step < 2; ++step) {
    const double error = size < 0.5 ? std::erf(y) - size : (1 - size) - std::erfc(y);
    const double slope = 2 * std::numbers::inv_sqrtpi * std::exp(-y * y);
    if (slope == 0) break;
    const double newton = error / slope;
    y -= newton / (1 + y * newton);
  }
  return std::copysign(y, x);
}

// One step in double precision is enough, and float32 has no rounding to lose in between.
float inverse_erf(float x) { return static_cast<float>(inverse_erf(static_cast<double>(x))); }

}  // namespace sdx::cpu
