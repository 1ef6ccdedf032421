// Forward derivatives beside differences, and batches beside one element after the other, for operations of all areas.

#include <cmath>

#include <gtest/gtest.h>

#include <sdx/array.hpp>

namespace mx = sdx::array;
using mx::array;
using mx::Dtype;

namespace {

struct Case {
  const char* name;
  array (*fun)(const array& x);  // x: [3, 4], float64, from 0.5 to 1.5
};

array constant(const sdx::Shape& shape, std::uint32_t seed) {
  sdx::Tensor t(Dtype::float64, shape);
  for (double& v : t.mutable_values<double>()) {
    seed = seed * 1664525 + 1013904223;
    v = 0.5 + static_cast<double>(seed >> 8) / (1 << 24);
  }
  return array(std::move(t));
}

const Case kCases[] = {
    {"exp", [](const array& x) { return mx::exp(x); }},
    {"sin cos", [](const array& x) { return mx::multiply(mx::sin(x), mx::cos(x)); }},
    {"divide", [](const array& x) { return mx::divide(x, mx::add(constant({4}, 1), mx::square(x))); }},
    {"power",
     [](const array& x) {
       return mx::power(x, constant({3, 4}, 2));
     }},
    {"log sqrt tanh", [](const array& x) { return mx::log(mx::sqrt(mx::tanh(x))); }},
    {"maximum",
     [](const array& x) {
       return mx::maximum(x, constant({3, 4}, 3));
     }},
    {"where", [](const array& x) { return mx::where(mx::greater(x, array(1.0, Dtype::float64)), mx::square(x), x); }},
    {"sum of an axis", [](const array& x) { return mx::sum(mx::square(x), 0); }},
    {"product", [](const array& x) { return mx::prod(x, -1, true); }},
    {"max", [](const array& x) { return mx::max(x, 1); }},
    {"variance", [](const array& x) { return mx::var(x, 0); }},
    {"softmax", [](const array& x) { return mx::softmax(x, -1); }},
    {"logsumexp", [](const array& x) { return mx::logsumexp(x); }},
    {"cumsum", [](const array& x) { return mx::cumsum(mx::square(x), 1); }},
    {"sort", [](const array& x) { return mx::multiply(mx::sort(x, 0), constant({4}, 4)); }},
    {"matmul",
     [](const array& x) {
       return mx::matmul(x, mx::matmul(constant({4, 4}, 5), mx::swapaxes(x, 0, 1)));
     }},
    {"transpose",
     [](const array& x) {
       return mx::multiply(mx::transpose(x), constant({4, 3}, 6));
     }},
    {"reshape",
     [](const array& x) {
       return mx::square(mx::reshape(x, {2, 6}));
     }},
    {"concatenate",
     [](const array& x) {
       return mx::concatenate({x, mx::square(x)}, 1);
     }},
    {"stack and unstack", [](const array& x) { return mx::stack(mx::unstack(mx::square(x), 1), 0); }},
    {"slice",
     [](const array& x) {
       return mx::square(mx::slice(x, sdx::Shape{0, 1}, sdx::Shape{3, 4}, sdx::Shape{2, 1}));
     }},
    {"take",
     [](const array& x) {
       return mx::square(mx::take(x, array({2, 0, 2}, {3}), 0));
     }},
    {"pad", [](const array& x) { return mx::square(mx::pad(x, 1)); }},
    {"broadcast",
     [](const array& x) {
       return mx::square(mx::broadcast_to(x, {2, 3, 4}));
     }},
    {"float32 in between", [](const array& x) { return mx::astype(mx::astype(x, Dtype::float32), Dtype::float64); }},
    {"fourier", [](const array& x) { return mx::square(mx::abs(mx::fft::rfft(x, 5, 0))); }},
    {"inverse",
     [](const array& x) { return mx::linalg::inv(mx::add(mx::matmul(x, mx::transpose(x)), mx::eye(3, {}, 0, Dtype::float64))); }},
    {"checkpoint",
     [](const array& x) {
       return mx::checkpoint([](const std::vector<array>& a) { return std::vector{mx::exp(a[0])}; })({x})[0];
     }},
    {"compiled",
     [](const array& x) {
       return mx::compile([](const std::vector<array>& a) { return std::vector{mx::exp(mx::sum(a[0], 1))}; })({x})[0];
     }},
};

std::vector<double> list(const array& a) {
  const auto values = a.data<double>();
  return {values.begin(), values.end()};
}

class Table : public ::testing::TestWithParam<Case> {};

}  // namespace

TEST_P(Table, ForwardDerivativesAreDifferences) {
  const array x = constant({3, 4}, 11), direction = constant({3, 4}, 12);
  const bool rounded = std::string_view(GetParam().name).starts_with("float32");
  const double h = rounded ? 1e-2 : 1e-6, tolerance = rounded ? 1e-4 : 1e-6;
  const array step = mx::multiply(direction, array(h, Dtype::float64));
  const auto after = list(GetParam().fun(mx::add(x, step))), before = list(GetParam().fun(mx::subtract(x, step)));
  const auto tangent = list(mx::jvp(mx::ArrayFunction(GetParam().fun), x, direction).second);
  ASSERT_EQ(tangent.size(), after.size());
  for (std::size_t i = 0; i < after.size(); ++i) {
    const double difference = (after[i] - before[i]) / (2 * h);
    EXPECT_NEAR(tangent[i], difference, tolerance * (1 + std::abs(difference))) << i;
  }
}

TEST_P(Table, BatchesAreOneAfterTheOther) {
  const array batch = constant({3, 5, 4}, 13);
  const array all = mx::vmap(mx::ArrayFunction(GetParam().fun), 1, 0)(batch);
  std::vector<array> each;
  for (int i = 0; i < 5; ++i) each.push_back(GetParam().fun(mx::take(batch, i, 1)));
  const array expected = mx::stack(each);
  ASSERT_EQ(all.shape(), expected.shape());
  const auto a = list(all), b = list(expected);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12 * (1 + std::abs(b[i]))) << i;
}

TEST_P(Table, GradientsOfBatches) {
  const array batch = constant({2, 3, 4}, 14);
  const auto loss = [](const array& x) { return mx::sum(mx::square(GetParam().fun(x))); };
  const auto all = list(mx::vmap(mx::grad(mx::ArrayFunction(loss)))(batch));
  std::vector<double> expected;
  for (int i = 0; i < 2; ++i) {
    for (const double v : list(mx::grad(mx::ArrayFunction(loss))(mx::take(batch, i, 0)))) expected.push_back(v);
  }
  ASSERT_EQ(all.size(), expected.size());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(all[i], expected[i], 1e-10 * (1 + std::abs(expected[i]))) << i;
}

INSTANTIATE_TEST_SUITE_P(ArrayTransforms, Table, ::testing::ValuesIn(kCases), [](const auto& info) {
  std::string name;
  for (const char* c = info.param.name; *c != '\0'; ++c) name += *c == ' ' ? '_' : *c;
  return name;
});
