// Derivatives of operations against finite differences in float64, of first and second order, backwards and forwards; and batches
// against one element after the other.

#include <cmath>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>

#include <sdx/array.hpp>

namespace mx = sdx::array;
using mx::array;
using mx::Dtype;
using Arrays = std::vector<array>;
using Function = std::function<array(const Arrays&)>;

namespace {

struct Case {
  const char* name;
  Function of;
  std::vector<std::vector<double>> inputs;
  std::vector<sdx::Shape> shapes;
};

array of_values(const std::vector<double>& values, const sdx::Shape& shape) {
  return array(sdx::Tensor::of<double>(shape, std::span<const double>(values)));
}

Arrays arrays_of(const std::vector<std::vector<double>>& inputs, const std::vector<sdx::Shape>& shapes) {
  Arrays out;
  for (std::size_t i = 0; i < inputs.size(); ++i) out.push_back(of_values(inputs[i], shapes[i]));
  return out;
}

// Weights of 0.3 to 1.7 that tell elements apart.
array weights_like(const array& a, double phase) {
  std::vector<double> values(static_cast<std::size_t>(a.size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1 + 0.7 * std::sin(phase + 1.3 * static_cast<double>(i));
  return of_values(values, a.shape());
}

std::vector<double> numbers(const array& a) {
  const auto values = a.data<double>();
  return {values.begin(), values.end()};
}

// The slope of `of`, a number, along each element of each input.
std::vector<std::vector<double>> slopes(const std::function<double(const Arrays&)>& of, const Case& c) {
  std::vector<std::vector<double>> out;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    out.emplace_back();
    for (std::size_t k = 0; k < c.inputs[i].size(); ++k) {
      const double h = 1e-5 * std::max(1.0, std::fabs(c.inputs[i][k]));
      std::vector<std::vector<double>> at = c.inputs;
      at[i][k] += h;
      const double above = of(arrays_of(at, c.shapes));
      at[i][k] -= 2 * h;
      out.back().push_back((above - of(arrays_of(at, c.shapes))) / (2 * h));
    }
  }
  return out;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& wanted, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (std::size_t k = 0; k < got.size(); ++k) {
    EXPECT_NEAR(got[k], wanted[k], 2e-5 * std::max(1.0, std::fabs(wanted[k]))) << what << ", element " << k;
  }
}

void check_first(const Case& c) {
  const Arrays x = arrays_of(c.inputs, c.shapes);
  const array weights = weights_like(c.of(x), 0.4);
  const auto loss = [&](const Arrays& a) { return mx::sum(mx::multiply(c.of(a), weights)); };
  const auto expected = slopes([&](const Arrays& a) { return loss(a).item<double>(); }, c);
  std::vector<int> all(x.size());
  std::iota(all.begin(), all.end(), 0);
  const Arrays gradients = mx::grad([&](const Arrays& a) { return Arrays{loss(a)}; }, all)(x);
  double forward = 0;
  Arrays tangents;
  for (std::size_t i = 0; i < x.size(); ++i) {
    expect_near(numbers(gradients[i]), expected[i], std::string(c.name) + ", gradient of input " + std::to_string(i));
    tangents.push_back(weights_like(x[i], 2.0 + static_cast<double>(i)));
    const std::vector<double> t = numbers(tangents[i]);
    forward += std::inner_product(t.begin(), t.end(), expected[i].begin(), 0.0);
  }
  const auto along = mx::jvp([&](const Arrays& a) { return Arrays{loss(a)}; }, x, tangents).second;
  expect_near(numbers(along[0]), {forward}, std::string(c.name) + ", forwards");
}

// The gradient of the gradient's product with a direction.
void check_second(const Case& c) {
  const Arrays x = arrays_of(c.inputs, c.shapes);
  const array weights = weights_like(c.of(x), 1.1);
  std::vector<int> all(x.size());
  std::iota(all.begin(), all.end(), 0);
  const auto first = mx::grad([&](const Arrays& a) { return Arrays{mx::sum(mx::multiply(c.of(a), weights))}; }, all);
  const auto along = [&](const Arrays& a) {
    const Arrays g = first(a);
    array total(0.0, Dtype::float64);
    for (std::size_t i = 0; i < g.size(); ++i) total = total + mx::sum(mx::multiply(g[i], weights_like(g[i], 3.0)));
    return total;
  };
  const auto expected = slopes([&](const Arrays& a) { return along(a).item<double>(); }, c);
  const Arrays second = mx::grad([&](const Arrays& a) { return Arrays{along(a)}; }, all)(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    expect_near(numbers(second[i]), expected[i], std::string(c.name) + ", second derivative, input " + std::to_string(i));
  }
}

// Two elements of a batch along the last axis of every input.
void check_batch(const Case& c) {
  const Arrays x = arrays_of(c.inputs, c.shapes);
  Arrays other, both;
  std::vector<std::optional<int>> axes;
  for (const array& a : x) {
    other.push_back(a * 0.75);
    both.push_back(mx::stack({a, other.back()}, -1));
    axes.push_back(-1);
  }
  const array result = mx::vmap([&](const Arrays& a) { return Arrays{c.of(a)}; }, axes)(both)[0];
  const array expected = mx::stack({c.of(x), c.of(other)}, 0);
  ASSERT_EQ(result.shape(), expected.shape()) << c.name;
  expect_near(numbers(result), numbers(expected), std::string(c.name) + ", batch");
}

Case one(const char* name, array (*of)(const array&, mx::StreamOrDevice), std::vector<double> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return {name, [of](const Arrays& a) { return of(a[0], {}); }, {std::move(values)}, {{count}}};
}

// The second operand is a row for each row of the first: gradients are summed over what was broadcast.
Case two(const char* name, array (*of)(const array&, const array&, mx::StreamOrDevice), std::vector<double> a,
         std::vector<double> b) {
  return {name, [of](const Arrays& x) { return of(x[0], x[1], {}); }, {std::move(a), std::move(b)}, {{2, 3}, {3}}};
}

const std::vector<double> kAny{-2.1, -0.6, 0.2, 0.9, 1.7}, kPositive{0.2, 0.7, 1.3, 2.9}, kInside{-0.8, -0.3, 0.25, 0.7};
const std::vector<double> kSix{0.4, -1.2, 2.3, 1.1, -0.7, 0.8}, kThree{0.9, 1.4, -0.6};
const std::vector<double> kSixPositive{0.4, 1.2, 2.3, 1.1, 0.7, 0.8}, kThreePositive{0.9, 1.4, 0.6};

std::vector<Case> functions() {
  return {one("negative", mx::negative, kAny),
          one("abs", mx::abs, kAny),
          one("sign", mx::sign, kAny),
          one("square", mx::square, kAny),
          one("sqrt", mx::sqrt, kPositive),
          one("rsqrt", mx::rsqrt, kPositive),
          one("reciprocal", mx::reciprocal, kAny),
          one("exp", mx::exp, kAny),
          one("expm1", mx::expm1, kAny),
          one("log", mx::log, kPositive),
          one("log2", mx::log2, kPositive),
          one("log10", mx::log10, kPositive),
          one("log1p", mx::log1p, kPositive),
          one("sigmoid", mx::sigmoid, kAny),
          one("erf", mx::erf, kAny),
          one("erfinv", mx::erfinv, kInside),
          one("sin", mx::sin, kAny),
          one("cos", mx::cos, kAny),
          one("tan", mx::tan, kInside),
          one("arcsin", mx::arcsin, kInside),
          one("arccos", mx::arccos, kInside),
          one("arctan", mx::arctan, kAny),
          one("sinh", mx::sinh, kAny),
          one("cosh", mx::cosh, kAny),
          one("tanh", mx::tanh, kAny),
          one("arcsinh", mx::arcsinh, kAny),
          one("arccosh", mx::arccosh, {1.5, 1.9, 3}),
          one("arctanh", mx::arctanh, kInside),
          one("degrees", mx::degrees, kAny),
          one("radians", mx::radians, kAny),
          one("floor", mx::floor, kAny),
          one("ceil", mx::ceil, kAny),
          one("trunc", mx::trunc, kAny),
          two("add", mx::add, kSix, kThree),
          two("subtract", mx::subtract, kSix, kThree),
          two("multiply", mx::multiply, kSix, kThree),
          two("divide", mx::divide, kSix, kThree),
          two("remainder", mx::remainder, kSix, kThree),
          two("floor_divide", mx::floor_divide, kSix, kThree),
          two("power", mx::power, kSixPositive, kThree),
          two("maximum", mx::maximum, kSix, kThree),
          two("minimum", mx::minimum, kSix, kThree),
          two("arctan2", mx::arctan2, kSix, kThree),
          two("logaddexp", mx::logaddexp, kSix, kThree)};
}

Case grid(const char* name, Function of) { return {name, std::move(of), {kSix}, {{2, 3}}}; }

std::vector<Case> along_axes() {
  const auto wide = [](const array& a) { return mx::astype(a, Dtype::float64); };
  return {
      grid("sum", [](const Arrays& a) { return mx::sum(a[0], 0); }),
      grid("sum of all", [](const Arrays& a) { return mx::sum(a[0]); }),
      grid("mean", [](const Arrays& a) { return mx::mean(a[0], -1, true); }),
      grid("max", [](const Arrays& a) { return mx::max(a[0], 1); }),
      grid("min of all", [](const Arrays& a) { return mx::min(a[0]); }),
      grid("prod", [](const Arrays& a) { return mx::prod(a[0], 0); }),
      grid("prod of all", [](const Arrays& a) { return mx::prod(a[0]); }),
      grid("var", [](const Arrays& a) { return mx::var(a[0], 1, false, 1); }),
      grid("std", [](const Arrays& a) { return mx::std(a[0], 1); }),
      grid("median", [](const Arrays& a) { return mx::median(a[0], 1); }),
      grid("median of all", [](const Arrays& a) { return mx::median(a[0]); }),
      grid("logsumexp", [](const Arrays& a) { return mx::logsumexp(a[0], 1); }),
      grid("softmax", [](const Arrays& a) { return mx::softmax(a[0], -1); }),
      grid("softmax over both", [](const Arrays& a) { return mx::softmax(a[0]); }),
      grid("cumsum", [](const Arrays& a) { return mx::cumsum(a[0], 1); }),
      grid("cumsum back", [](const Arrays& a) { return mx::cumsum(a[0], 1, true, false); }),
      grid("cumprod", [](const Arrays& a) { return mx::cumprod(a[0], 1); }),
      grid("cumprod back", [](const Arrays& a) { return mx::cumprod(a[0], 1, true, false); }),
      grid("cummax", [](const Arrays& a) { return mx::cummax(a[0], 1); }),
      grid("cummin", [](const Arrays& a) { return mx::cummin(a[0], 0, true); }),
      grid("cummax of those before",
           [](const Arrays& a) {
             const array x = mx::cummax(a[0], 1, false, false);
             return mx::where(mx::isfinite(x), x, mx::zeros_like(x));
           }),
      grid("logcumsumexp", [](const Arrays& a) { return mx::logcumsumexp(a[0], 1); }),
      grid("sort", [](const Arrays& a) { return mx::sort(a[0], 1); }),
      grid("sort of all", [](const Arrays& a) { return mx::sort(a[0], std::nullopt); }),
      grid("partition", [](const Arrays& a) { return mx::partition(a[0], 1, 1); }),
      grid("topk", [](const Arrays& a) { return mx::topk(a[0], 1, 1); }),
      grid("where", [](const Arrays& a) { return mx::where(mx::greater(a[0], array(0.5)), mx::square(a[0]), a[0]); }),
      grid("clip", [](const Arrays& a) { return mx::clip(a[0], array(-1.0, Dtype::float64), array(1.0, Dtype::float64)); }),
      grid("tril", [](const Arrays& a) { return mx::tril(a[0]); }),
      grid("triu", [](const Arrays& a) { return mx::triu(a[0], 1); }),
      grid("round", [](const Arrays& a) { return mx::round(a[0], 1); }),
      grid("argmax", [wide](const Arrays& a) { return wide(mx::argmax(a[0], 1)); }),
      grid("divmod", [](const Arrays& a) { return mx::divmod(a[0], array(0.45, Dtype::float64)).second; }),
      {"prod with zeros", [](const Arrays& a) { return mx::prod(a[0], 1); }, {{1.5, 0, 2, 0, 3, 0}}, {{2, 3}}},
  };
}

const Case kCumprodWithZeros{
    "cumprod with zeros", [](const Arrays& a) { return mx::cumprod(a[0], 1); }, {{1.5, 0, 2, 0, 3, 0.5, 2, 4}}, {{2, 4}}};

void check(const std::vector<Case>& cases, void (*one_case)(const Case&)) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    one_case(c);
  }
}

}  // namespace

TEST(ArrayDerivatives, OfElements) { check(functions(), check_first); }
TEST(ArrayDerivatives, OfElementsTwice) { check(functions(), check_second); }
TEST(ArrayDerivatives, AlongAxes) { check(along_axes(), check_first); }
TEST(ArrayDerivatives, OfRunningProductsWithZeros) { check_first(kCumprodWithZeros); }
TEST(ArrayDerivatives, AlongAxesTwice) { check(along_axes(), check_second); }
TEST(ArrayBatches, OfElements) { check(functions(), check_batch); }
TEST(ArrayBatches, AlongAxes) { check(along_axes(), check_batch); }

TEST(ArrayDerivatives, OfComplexNumbers) {
  // The loss |f(z)|² of functions with branch cuts, by its real and imaginary part.
  using Complex = array (*)(const array&, mx::StreamOrDevice);
  const std::pair<const char*, Complex> functions[] = {
      {"exp", mx::exp},         {"log", mx::log},         {"sqrt", mx::sqrt},
      {"sin", mx::sin},         {"cos", mx::cos},         {"tan", mx::tan},
      {"arcsin", mx::arcsin},   {"arccos", mx::arccos},   {"arctan", mx::arctan},
      {"sinh", mx::sinh},       {"cosh", mx::cosh},       {"tanh", mx::tanh},
      {"square", mx::square},   {"arccosh", mx::arccosh}, {"arctanh", mx::arctanh},
      {"arcsinh", mx::arcsinh}, {"sign", mx::sign},       {"reciprocal", mx::reciprocal},
      {"rsqrt", mx::rsqrt},     {"expm1", mx::expm1},     {"log1p", mx::log1p}};
  for (const auto& [name, f] : functions) {
    const auto value = [f = f](double re, double im) {
      sdx::Tensor z(Dtype::complex128, {});
      static_cast<double*>(z.mutable_data())[0] = re;
      static_cast<double*>(z.mutable_data())[1] = im;
      const array w = f(array(z), {});
      return std::pair<array, array>(array(z), mx::real(w, {}) * 0.6 + mx::square(mx::imag(w)));
    };
    const double re = 0.6, im = -0.35, h = 1e-6;
    const array z = value(re, im).first;
    const array g = mx::grad([f = f](const array& a) {
      const array w = f(a, {});
      return mx::real(w) * 0.6 + mx::square(mx::imag(w));
    })(z);
    const auto at = [&](double x, double y) { return value(x, y).second.item<double>(); };
    EXPECT_NEAR(mx::real(g).item<double>(), (at(re + h, im) - at(re - h, im)) / (2 * h), 1e-5) << name;
    EXPECT_NEAR(mx::imag(g).item<double>(), (at(re, im + h) - at(re, im - h)) / (2 * h), 1e-5) << name;
  }
}
