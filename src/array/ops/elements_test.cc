// Operations on elements at the values where they are special, against NumPy 2.4 and SciPy (floor_divide of infinities: the array
// API).

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <sdx/array.hpp>

namespace mx = sdx::array;
using mx::array;
using mx::Dtype;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

struct MapCase {
  const char* name;
  array (*of)(const array&, mx::StreamOrDevice);
  std::vector<double> expected;
};
struct PairCase {
  const char* name;
  array (*of)(const array&, const array&, mx::StreamOrDevice);
  std::vector<double> expected;  // of each element with each, row by row
};

const std::vector<double> kSpecial{0, -0.0, 1, -1, 0.5, -2.5, 1e-20, 100, kInf, -kInf, kNan};
const MapCase kMaps[] = {
    {"abs", mx::abs, {0, 0, 1, 1, 0.5, 2.5, 1e-20, 100, kInf, kInf, kNan}},
    {"negative", mx::negative, {-0.0, 0, -1, 1, -0.5, 2.5, -1e-20, -100, -kInf, kInf, kNan}},
    {"sign", mx::sign, {0, 0, 1, -1, 1, -1, 1, 1, 1, -1, kNan}},
    {"square", mx::square, {0, 0, 1, 1, 0.25, 6.25, 1e-40, 10000, kInf, kInf, kNan}},
    {"sqrt", mx::sqrt, {0, -0.0, 1, kNan, 0.7071067811865476, kNan, 1e-10, 10, kInf, kNan, kNan}},
    {"reciprocal", mx::reciprocal, {kInf, -kInf, 1, -1, 2, -0.4, 1e+20, 0.01, 0, -0.0, kNan}},
    {"exp",
     mx::exp,
     {1, 1, 2.718281828459045, 0.36787944117144233, 1.6487212707001282, 0.0820849986238988, 1, 2.6881171418161356e+43, kInf, 0,
      kNan}},
    {"expm1",
     mx::expm1,
     {0, -0.0, 1.7182818284590453, -0.6321205588285577, 0.6487212707001282, -0.9179150013761012, 1e-20, 2.6881171418161356e+43,
      kInf, -1, kNan}},
    {"log",
     mx::log,
     {-kInf, -kInf, 0, kNan, -0.6931471805599453, kNan, -46.051701859880914, 4.605170185988092, kInf, kNan, kNan}},
    {"log2", mx::log2, {-kInf, -kInf, 0, kNan, -1, kNan, -66.43856189774725, 6.643856189774724, kInf, kNan, kNan}},
    {"log10", mx::log10, {-kInf, -kInf, 0, kNan, -0.3010299956639812, kNan, -20, 2, kInf, kNan, kNan}},
    {"log1p",
     mx::log1p,
     {0, -0.0, 0.6931471805599453, -kInf, 0.4054651081081644, kNan, 1e-20, 4.61512051684126, kInf, kNan, kNan}},
    {"sin",
     mx::sin,
     {0, -0.0, 0.8414709848078965, -0.8414709848078965, 0.479425538604203, -0.5984721441039565, 1e-20, -0.5063656411097588, kNan,
      kNan, kNan}},
    {"cos",
     mx::cos,
     {1, 1, 0.5403023058681398, 0.5403023058681398, 0.8775825618903728, -0.8011436155469337, 1, 0.8623188722876839, kNan, kNan,
      kNan}},
    {"tan",
     mx::tan,
     {0, -0.0, 1.5574077246549023, -1.5574077246549023, 0.5463024898437905, 0.7470222972386603, 1e-20, -0.5872139151569291, kNan,
      kNan, kNan}},
    {"arcsin",
     mx::arcsin,
     {0, -0.0, 1.5707963267948966, -1.5707963267948966, 0.5235987755982989, kNan, 1e-20, kNan, kNan, kNan, kNan}},
    {"arccos",
     mx::arccos,
     {1.5707963267948966, 1.5707963267948966, 0, 3.141592653589793, 1.0471975511965976, kNan, 1.5707963267948966, kNan, kNan,
      kNan, kNan}},
    {"arctan",
     mx::arctan,
     {0, -0.0, 0.7853981633974483, -0.7853981633974483, 0.4636476090008061, -1.1902899496825317, 1e-20, 1.5607966601082315,
      1.5707963267948966, -1.5707963267948966, kNan}},
    {"sinh",
     mx::sinh,
     {0, -0.0, 1.1752011936438014, -1.1752011936438014, 0.5210953054937474, -6.0502044810397875, 1e-20, 1.3440585709080678e+43,
      kInf, -kInf, kNan}},
    {"cosh",
     mx::cosh,
     {1, 1, 1.5430806348152437, 1.5430806348152437, 1.1276259652063807, 6.132289479663686, 1, 1.3440585709080678e+43, kInf, kInf,
      kNan}},
    {"tanh",
     mx::tanh,
     {0, -0.0, 0.7615941559557649, -0.7615941559557649, 0.46211715726000974, -0.9866142981514303, 1e-20, 1, 1, -1, kNan}},
    {"arcsinh",
     mx::arcsinh,
     {0, -0.0, 0.881373587019543, -0.881373587019543, 0.48121182505960347, -1.6472311463710958, 1e-20, 5.298342365610589, kInf,
      -kInf, kNan}},
    {"arccosh", mx::arccosh, {kNan, kNan, 0, kNan, kNan, kNan, kNan, 5.298292365610485, kInf, kNan, kNan}},
    {"arctanh", mx::arctanh, {0, -0.0, kInf, -kInf, 0.5493061443340549, kNan, 1e-20, kNan, kNan, kNan, kNan}},
    {"floor", mx::floor, {0, -0.0, 1, -1, 0, -3, 0, 100, kInf, -kInf, kNan}},
    {"ceil", mx::ceil, {0, -0.0, 1, -1, 1, -2, 1, 100, kInf, -kInf, kNan}},
    {"trunc", mx::trunc, {0, -0.0, 1, -1, 0, -2, 0, 100, kInf, -kInf, kNan}},
    {"isnan", mx::isnan, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
    {"isinf", mx::isinf, {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0}},
    {"isfinite", mx::isfinite, {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0}},
    {"isposinf", mx::isposinf, {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0}},
    {"isneginf", mx::isneginf, {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}},
    {"logical_not", mx::logical_not, {1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {"degrees",
     mx::degrees,
     {0, -0.0, 57.29577951308232, -57.29577951308232, 28.64788975654116, -143.2394487827058, 5.729577951308232e-19,
      5729.5779513082325, kInf, -kInf, kNan}},
    {"erf",
     mx::erf,
     {0, -0.0, 0.8427007929497148, -0.8427007929497148, 0.5204998778130465, -0.999593047982555, 1.1283791670955125e-20, 1, 1, -1,
      kNan}},
    {"erfinv", mx::erfinv, {0, -0.0, kInf, -kInf, 0.4769362762044699, kNan, 8.86226925452758e-21, kNan, kNan, kNan, kNan}},
    {"sigmoid",
     mx::sigmoid,
     {0.5, 0.5, 0.7310585786300049, 0.2689414213699951, 0.6224593312018546, 0.07585818002124355, 0.5, 1, 1, 0, kNan}},
    {"rsqrt", mx::rsqrt, {kInf, -kInf, 1, kNan, 1.414213562373095, kNan, 10000000000, 0.1, 0, kNan, kNan}},
};
const std::vector<double> kPairs{0, -0.0, 1.5, -2, kInf, -kInf, kNan};
constexpr double kSum15 = 1.7014132779827524, kSum2 = 0.1269280110429725,
                 kSum15_2 = 1.5297504182726205;  // logaddexp of 0 and 1.5, 0 and -2, 1.5 and -2
constexpr double kPower = 1.8371173070873836;    // 1.5 to the power of 1.5
constexpr double kPi = 3.141592653589793, kPi2 = kPi / 2, kPi4 = kPi / 4, kLn2 = 0.6931471805599453;
const PairCase kPairMaps[] = {
    {"divide", mx::divide, {kNan, kNan,  0,    -0.0,  0,    -0.0,  kNan, kNan,  kNan, -0.0,  0,    -0.0,
                            0,    kNan,  kInf, -kInf, 1,    -0.75, 0,    -0.0,  kNan, -kInf, kInf, -1.3333333333333333,
                            1,    -0.0,  0,    kNan,  kInf, -kInf, kInf, -kInf, kNan, kNan,  kNan, -kInf,
                            kInf, -kInf, kInf, kNan,  kNan, kNan,  kNan, kNan,  kNan, kNan,  kNan, kNan,
                            kNan}},
    {"remainder", mx::remainder, {kNan, kNan, 0,    -0.0, 0,    -0.0, kNan,  kNan, kNan, 0,    -0.0, 0,    -0.0,
                                  kNan, kNan, kNan, 0,    -0.5, 1.5,  -kInf, kNan, kNan, kNan, 1,    -0.0, kInf,
                                  -2,   kNan, kNan, kNan, kNan, kNan, kNan,  kNan, kNan, kNan, kNan, kNan, kNan,
                                  kNan, kNan, kNan, kNan, kNan, kNan, kNan,  kNan, kNan, kNan}},
    {"floor_divide", mx::floor_divide, {kNan, kNan, 0,     -0.0,  0,    -0.0,  kNan, kNan, kNan,  -0.0,  0,    -0.0,  0,
                                        kNan, kInf, -kInf, 1,     -1,   0,     -1,   kNan, -kInf, kInf,  -2,   1,     -1,
                                        0,    kNan, kInf,  -kInf, kInf, -kInf, kNan, kNan, kNan,  -kInf, kInf, -kInf, kInf,
                                        kNan, kNan, kNan,  kNan,  kNan, kNan,  kNan, kNan, kNan,  kNan}},
    {"power", mx::power, {1,       1,    0, kInf, 0, kInf, kNan, 1,    1,    0, kInf, 0,    kInf, kNan, 1,   1,    kPower,
                          4.0 / 9, kInf, 0, kNan, 1, 1,    kNan, 0.25, kInf, 0, kNan, 1,    1,    kInf, 0,   kInf, 0,
                          kNan,    1,    1, kInf, 0, kInf, 0,    kNan, 1,    1, kNan, kNan, kNan, kNan, kNan}},
    {"maximum", mx::maximum, {0,    -0.0,  1.5,  0,    kInf, 0,    kNan, 0,    -0.0, 1.5,  -0.0, kInf, -0.0,
                              kNan, 1.5,   1.5,  1.5,  1.5,  kInf, 1.5,  kNan, 0,    -0.0, 1.5,  -2,   kInf,
                              -2,   kNan,  kInf, kInf, kInf, kInf, kInf, kInf, kNan, 0,    -0.0, 1.5,  -2,
                              kInf, -kInf, kNan, kNan, kNan, kNan, kNan, kNan, kNan, kNan}},
    {"minimum", mx::minimum, {0,     -0.0,  0,    -2,   0,    -kInf, kNan,  0,     -0.0, -0.0,  -2,    -0.0,  -kInf,
                              kNan,  0,     -0.0, 1.5,  -2,   1.5,   -kInf, kNan,  -2,   -2,    -2,    -2,    -2,
                              -kInf, kNan,  0,    -0.0, 1.5,  -2,    kInf,  -kInf, kNan, -kInf, -kInf, -kInf, -kInf,
                              -kInf, -kInf, kNan, kNan, kNan, kNan,  kNan,  kNan,  kNan, kNan}},
    {"arctan2", mx::arctan2, {0,         kPi,   0,     kPi,      0,         kPi,
                              kNan,      -0.0,  -kPi,  -0.0,     -kPi,      -0.0,
                              -kPi,      kNan,  kPi2,  kPi2,     kPi4,      2.498091544796509,
                              0,         kPi,   kNan,  -kPi2,    -kPi2,     -0.9272952180016122,
                              -3 * kPi4, -0.0,  -kPi,  kNan,     kPi2,      kPi2,
                              kPi2,      kPi2,  kPi4,  3 * kPi4, kNan,      -kPi2,
                              -kPi2,     -kPi2, -kPi2, -kPi4,    -3 * kPi4, kNan,
                              kNan,      kNan,  kNan,  kNan,     kNan,      kNan,
                              kNan}},
    {"logaddexp", mx::logaddexp, {kLn2,  kLn2,  kSum15, kSum2,    kInf,     0,      kNan,       kLn2,     kLn2, kSum15,
                                  kSum2, kInf,  0,      kNan,     kSum15,   kSum15, 1.5 + kLn2, kSum15_2, kInf, 1.5,
                                  kNan,  kSum2, kSum2,  kSum15_2, kLn2 - 2, kInf,   -2,         kNan,     kInf, kInf,
                                  kInf,  kInf,  kInf,   kInf,     kNan,     0,      0,          1.5,      -2,   kInf,
                                  -kInf, kNan,  kNan,   kNan,     kNan,     kNan,   kNan,       kNan,     kNan}},
    {"less", mx::less, {0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 0,
                        1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {"equal", mx::equal, {1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1,
                          0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}},
    {"not_equal", mx::not_equal, {0, 0, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0,
                                  1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1}},
};
const PairCase kIntegers[] = {
    {"add", mx::add, {0,    121,  127, -128, -127, -122, -1, 121,  -14, -8,  -7,  -6,   -1,   120,  127, -8, -2,
                      -1,   0,    5,   126,  -128, -7,   -1, 0,    1,   6,   127, -127, -6,   0,    1,   2,  7,
                      -128, -122, -1,  5,    6,    7,    12, -123, -1,  120, 126, 127,  -128, -123, -2}},
    {"subtract", mx::subtract, {0,    -121, -127, -128, 127,  122, 1, 121,  0,  -6,   -7,   -8,   -13, 122, 127, 6, 0,
                                -1,   -2,   -7,   -128, -128, 7,   1, 0,    -1, -6,   -127, -127, 8,   2,   1,   0, -5,
                                -126, -122, 13,   7,    6,    5,   0, -121, -1, -122, -128, 127,  126, 121, 0}},
    {"multiply", mx::multiply, {0,   -128, -128, 0,    -128, 0, -128, -128, 49,   7,    0,    -7,   -42, -121, -128, 7, 1,
                                0,   -1,   -6,   -127, 0,    0, 0,    0,    0,    0,    0,    -128, -7,  -1,   0,    1, 6,
                                127, 0,    -42,  -6,   0,    6, 36,   -6,   -128, -121, -127, 0,    127, -6,   1}},
    {"floor_divide", mx::floor_divide, {1, 18, -128, 0,  -128, -22, -2, 0, 1,  7,   0,    -7, -2,  -1, 0, 0, 1,
                                        0, -1, -1,   -1, 0,    0,   0,  0, 0,  0,   0,    -1, -1,  -1, 0, 1, 0,
                                        0, -1, -1,   -6, 0,    6,   1,  0, -1, -19, -127, 0,  127, 21, 1}},
    {"remainder", mx::remainder, {0, -2, 0, 0,    0,  4, 126, -7, 0, 0, 0,    0,  5, 120, -1, -1, 0, 0,  0,  5, 126, 0, 0, 0, 0,
                                  0, 0,  0, -127, -6, 0, 0,   0,  1, 1, -122, -1, 0, 0,   0,  0,  6, -1, -6, 0, 0,   0, 1, 0}},
    {"power", mx::power, {0, 0, 0, 1, -128, 0, 0, 0, 0, 0, 1, -7, -111, 73, 1, -1, -1, 1, -1, 1, -1, 0,   0, 0,  1,
                          0, 0, 0, 1, 1,    1, 1, 1, 1, 1, 0, 0,  0,    1,  6, 64, 0,  0, 0,  0, 1,  127, 1, 127}},
    {"maximum", mx::maximum, {-128, -7, -1, 0,   1, 6, 127, -7,  -7,  -1,  0,   1,   6,   127, -1, -1, -1,
                              0,    1,  6,  127, 0, 0, 0,   0,   1,   6,   127, 1,   1,   1,   1,  1,  6,
                              127,  6,  6,  6,   6, 6, 6,   127, 127, 127, 127, 127, 127, 127, 127}},
    {"left_shift", mx::left_shift, {0,  0,  0,   -128, 0, 0,  0,    0, 0, 0, -7, -14, 64, 0,   0, 0, 0,
                                    -1, -2, -64, 0,    0, 0,  0,    0, 0, 0, 0,  0,   0,  0,   1, 2, 64,
                                    0,  0,  0,   0,    6, 12, -128, 0, 0, 0, 0,  127, -2, -64, 0}},
    {"right_shift", mx::right_shift, {-1, -1, -1, -128, -64, -2, -1, -1, -1, -1, -7, -4,  -1, -1, -1, -1, -1,
                                      -1, -1, -1, -1,   0,   0,  0,  0,  0,  0,  0,  0,   0,  0,  1,  0,  0,
                                      0,  0,  0,  0,    6,   3,  0,  0,  0,  0,  0,  127, 63, 1,  0}},
    {"bitwise_xor", mx::bitwise_xor, {0,   121,  127, -128, -127, -122, -1, 121, 0,  6,    -7,   -8,   -1,  -122, 127, 6, 0,
                                      -1,  -2,   -7,  -128, -128, -7,   -1, 0,   1,  6,    127,  -127, -8,  -2,   1,   0, 7,
                                      126, -122, -1,  -7,   6,    7,    0,  121, -1, -122, -128, 127,  126, 121,  0}},
};

array of(const std::vector<double>& values, const sdx::Shape& shape, Dtype type) {
  return mx::astype(array(sdx::Tensor::of<double>(shape, std::span<const double>(values))), type);
}

std::vector<double> doubles(const array& a) {
  const array wide = mx::astype(a, Dtype::float64);
  const auto values = wide.data<double>();
  return {values.begin(), values.end()};
}

// In units of the type's precision.
double precision(Dtype type) {
  return type == Dtype::float16 ? 1e-3 : type == Dtype::bfloat16 ? 8e-3 : type == Dtype::float32 ? 5e-7 : 4e-16;
}

void expect_same(const std::vector<double>& got, const std::vector<double>& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << what << ", element " << i << ": " << got[i];
    } else if (std::isinf(expected[i]) || expected[i] == 0) {
      EXPECT_EQ(got[i], expected[i]) << what << ", element " << i;
    } else {
      EXPECT_NEAR(got[i], expected[i], tolerance * std::fabs(expected[i])) << what << ", element " << i;
    }
  }
}

void expect_same_zeros(const std::vector<double>& got, const std::vector<double>& expected, const std::string& what) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (expected[i] == 0) {
      EXPECT_EQ(std::signbit(got[i]), std::signbit(expected[i])) << what << ", element " << i;
    }
  }
}

// What the type makes of an expected number: float16 has none of 1e40.
std::vector<double> as_held(const std::vector<double>& values, Dtype type) {
  return doubles(of(values, {static_cast<std::int64_t>(values.size())}, type));
}

constexpr Dtype kFloats[] = {Dtype::float16, Dtype::bfloat16, Dtype::float32, Dtype::float64};

}  // namespace

TEST(ArrayElements, SpecialValues) {
  for (const Dtype type : kFloats) {
    // 1e-20 and 100 are 0 and infinite beyond the range of smaller types: what they hold is checked in float32 and float64.
    const bool whole = type == Dtype::float32 || type == Dtype::float64;
    for (const MapCase& c : kMaps) {
      std::vector<double> inputs = kSpecial, expected = c.expected;
      if (!whole) {
        inputs.erase(inputs.begin() + 6, inputs.begin() + 8);
        expected.erase(expected.begin() + 6, expected.begin() + 8);
      }
      const array result = c.of(of(inputs, {static_cast<std::int64_t>(inputs.size())}, type), {});
      const std::string what = std::string(c.name) + " of " + std::string(name(type));
      expect_same(doubles(result), result.dtype() == type ? as_held(expected, type) : expected, 4 * precision(type), what);
      expect_same_zeros(doubles(result), expected, what);
    }
  }
}

TEST(ArrayElements, SpecialPairs) {
  const auto n = static_cast<std::int64_t>(kPairs.size());
  for (const Dtype type : kFloats) {
    for (const PairCase& c : kPairMaps) {
      const array result = c.of(of(kPairs, {n, 1}, type), of(kPairs, {n}, type), {});
      expect_same(doubles(result), c.expected, 4 * precision(type), std::string(c.name) + " of " + std::string(name(type)));
    }
  }
}

TEST(ArrayElements, IntegersWrapAround) {
  const std::vector<double> values{-128, -7, -1, 0, 1, 6, 127};
  const auto n = static_cast<std::int64_t>(values.size());
  for (const PairCase& c : kIntegers) {
    const array result = c.of(of(values, {n, 1}, Dtype::int8), of(values, {n}, Dtype::int8), {});
    EXPECT_EQ(result.dtype(), Dtype::int8);
    EXPECT_EQ(doubles(result), c.expected) << c.name;
  }
}

TEST(ArrayElements, BroadcastOverAnyRank) {
  // Ten axes, of which operands lack every second: more than the engine's own kernels walk.
  const sdx::Shape left{2, 1, 2, 1, 2, 1, 2, 1, 2, 1}, right{1, 2, 1, 2, 1, 2, 1, 2, 1, 2};
  const array a = mx::reshape(mx::arange(0, 32, Dtype::float64), left), b = mx::reshape(mx::arange(0, 32, Dtype::float64), right);
  const array sum = mx::add(a, mx::multiply(b, array(100.0, Dtype::float64)));
  EXPECT_EQ(sum.shape(), sdx::Shape(10, 2));
  EXPECT_EQ(mx::sum(sum).item<double>(), 1024 * 15.5 * 101);
  // Element 1010101010 (binary): all of a's axes at 1, none of b's; the other way round 0101010101.
  EXPECT_EQ(sum.data<double>()[0b1010101010], 31);
  EXPECT_EQ(sum.data<double>()[0b0101010101], 3100);
}

TEST(ArrayElements, PromoteAsMlx) {
  EXPECT_EQ(mx::promote_types(Dtype::uint8, Dtype::int8), Dtype::int16);
  EXPECT_EQ(mx::promote_types(Dtype::uint64, Dtype::int8), Dtype::float32);
  EXPECT_EQ(mx::promote_types(Dtype::float16, Dtype::bfloat16), Dtype::float32);
  EXPECT_EQ(mx::promote_types(Dtype::float64, Dtype::complex64), Dtype::complex128);
  EXPECT_EQ(mx::divide(array(1), array(2)).dtype(), Dtype::float32);
  EXPECT_EQ((array(1.0, Dtype::float16) + 2.5).dtype(), Dtype::float16);
  EXPECT_EQ((array(1) + 2.5).dtype(), Dtype::float32);
  EXPECT_EQ((array(true) + 2).dtype(), Dtype::int32);
  EXPECT_TRUE(mx::issubdtype(Dtype::int8, mx::DtypeCategory::integer));
  EXPECT_FALSE(mx::issubdtype(Dtype::boolean, mx::DtypeCategory::number));
  EXPECT_FALSE(mx::can_cast(Dtype::int32, Dtype::int8));
  EXPECT_TRUE(mx::isdtype(Dtype::bfloat16, "real floating"));
  EXPECT_THROW(mx::isdtype(Dtype::int8, "float"), sdx::Error);
}

TEST(ArrayElements, RefuseWhatIsNotDefined) {
  const array z = mx::astype(array(1.0F), Dtype::complex64);
  EXPECT_THROW(mx::floor(z), sdx::Error);
  EXPECT_THROW(mx::remainder(z, z), sdx::Error);
  EXPECT_THROW(mx::negative(array(true)), sdx::Error);
  EXPECT_THROW(mx::bitwise_and(array(1.0F), array(2)), sdx::Error);
  EXPECT_THROW(mx::add(mx::zeros({2, 3}), mx::zeros({4})), sdx::Error);
  EXPECT_THROW(mx::view(mx::zeros({3}), Dtype::float64), sdx::Error);
  EXPECT_THROW(mx::clip(array(1), std::nullopt, std::nullopt), sdx::Error);
}

TEST(ArrayElements, ViewsAndSmallFloats) {
  const array x({1.0F, -2.0F}, {2});
  EXPECT_EQ(mx::view(x, Dtype::uint32).data<std::uint32_t>()[1], 0xC0000000U);
  EXPECT_EQ(mx::view(x, Dtype::uint8).shape(), sdx::Shape{8});
  const array small = mx::to_fp8(array({0.3F, 1000.0F, -1.5F}, {3}));
  const array back = mx::from_fp8(small, Dtype::float32);
  EXPECT_EQ(std::vector<float>(back.data<float>().begin(), back.data<float>().end()), (std::vector<float>{0.3125F, 448, -1.5F}));
}
