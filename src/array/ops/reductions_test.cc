// Creation, reductions and sorting: shapes, types, edges.

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <sdx/array.hpp>

namespace mx = sdx::array;
using mx::array;
using mx::Dtype;

namespace {

template <class T>
std::vector<T> list(const array& a) {
  const auto values = a.data<T>();
  return {values.begin(), values.end()};
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST(ArrayCreation, RangesAndDiagonals) {
  EXPECT_EQ(list<std::int32_t>(mx::arange(2, 9, 3)), (std::vector<std::int32_t>{2, 5, 8}));
  EXPECT_EQ(list<float>(mx::arange(1.0, 0.0, -0.25, Dtype::float32)), (std::vector<float>{1, 0.75F, 0.5F, 0.25F}));
  EXPECT_EQ(mx::arange(3, 1).size(), 0);
  EXPECT_THROW(mx::arange(0, 1, 0), sdx::Error);
  EXPECT_THROW(mx::arange(0.0, std::numeric_limits<double>::infinity()), sdx::Error);
  EXPECT_EQ(list<float>(mx::linspace(0, 1, 5)), (std::vector<float>{0, 0.25F, 0.5F, 0.75F, 1}));
  EXPECT_EQ(list<float>(mx::linspace(0, 1, 4, Dtype::float32, false)), (std::vector<float>{0, 0.25F, 0.5F, 0.75F}));
  EXPECT_EQ(list<std::int32_t>(mx::eye(2, 3, 1, Dtype::int32)), (std::vector<std::int32_t>{0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(list<std::int32_t>(mx::tri(2, 3, 0, Dtype::int32)), (std::vector<std::int32_t>{1, 0, 0, 1, 1, 0}));
  EXPECT_EQ(list<float>(mx::triu(array({1.0F, 2.0F, 3.0F, 4.0F}, {2, 2}), 1)), (std::vector<float>{0, 2, 0, 0}));
  const auto grid = mx::meshgrid({mx::arange(3), mx::arange(2)});
  EXPECT_EQ(grid[0].shape(), (sdx::Shape{2, 3}));
  EXPECT_EQ(list<std::int32_t>(grid[1]), (std::vector<std::int32_t>{0, 0, 0, 1, 1, 1}));
}

TEST(ArrayCreation, Windows) {
  const std::vector<float> hanning = list<float>(mx::hanning(5)), hamming = list<float>(mx::hamming(5));
  const std::vector<float> blackman = list<float>(mx::blackman(5)), bartlett = list<float>(mx::bartlett(5));
  const float expected[4][5] = {
      {0, 0.5F, 1, 0.5F, 0}, {0.08F, 0.54F, 1, 0.54F, 0.08F}, {0, 0.34F, 1, 0.34F, 0}, {0, 0.5F, 1, 0.5F, 0}};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(hanning[i], expected[0][i], 1e-7);
    EXPECT_NEAR(hamming[i], expected[1][i], 1e-7);
    EXPECT_NEAR(blackman[i], expected[2][i], 1e-7);
    EXPECT_NEAR(bartlett[i], expected[3][i], 1e-7);
  }
  EXPECT_EQ(mx::hanning(0).size(), 0);
  EXPECT_EQ(list<float>(mx::hamming(1)), std::vector<float>{1});
}

TEST(ArrayCreation, LimitsOfTypes) {
  EXPECT_EQ(mx::finfo(Dtype::float16).max, 65504);
  EXPECT_EQ(mx::finfo(Dtype::complex64).dtype, Dtype::float32);
  EXPECT_EQ(mx::iinfo(Dtype::int8).min, -128);
  EXPECT_EQ(mx::iinfo(Dtype::uint64).max, std::numeric_limits<std::uint64_t>::max());
  EXPECT_THROW(mx::iinfo(Dtype::float32), sdx::Error);
}

TEST(ArrayReductions, TypesOfSums) {
  EXPECT_EQ(mx::sum(mx::zeros({2}, Dtype::int8)).dtype(), Dtype::int32);
  EXPECT_EQ(mx::sum(mx::zeros({2}, Dtype::uint16)).dtype(), Dtype::uint32);
  EXPECT_EQ(mx::sum(mx::zeros({2}, Dtype::int64)).dtype(), Dtype::int64);
  EXPECT_EQ(mx::prod(mx::zeros({2}, Dtype::boolean)).dtype(), Dtype::int32);
  EXPECT_EQ(mx::cumsum(mx::ones({3}, Dtype::boolean)).dtype(), Dtype::int32);
  EXPECT_EQ(mx::mean(mx::arange(4)).item<float>(), 1.5F);
  EXPECT_EQ(mx::sum(mx::full({300}, array(1, Dtype::uint8))).item<int>(), 300);
}

TEST(ArrayReductions, EmptyAndSeveralAxes) {
  EXPECT_EQ(mx::sum(mx::zeros({0, 3}), 0).shape(), sdx::Shape{3});
  EXPECT_EQ(mx::sum(mx::zeros({0})).item<float>(), 0);
  EXPECT_EQ(mx::prod(mx::zeros({0}, Dtype::float64)).item<double>(), 1);
  EXPECT_TRUE(mx::all(mx::zeros({0})).item<bool>());
  EXPECT_THROW(mx::max(mx::zeros({0, 3}), 0), sdx::Error);
  EXPECT_EQ(mx::max(mx::zeros({0, 3}), 1).size(), 0);
  const array x = mx::reshape(mx::arange(24), {2, 3, 4});
  EXPECT_EQ(list<std::int32_t>(mx::sum(x, std::vector<int>{0, -1})), (std::vector<std::int32_t>{60, 92, 124}));
  EXPECT_EQ(mx::max(x, std::vector<int>{0, 2}, true).shape(), (sdx::Shape{1, 3, 1}));
  EXPECT_THROW(mx::sum(x, std::vector<int>{0, -3}), sdx::Error);
}

TEST(ArrayReductions, PlacesOfExtremes) {
  const array x({3.0F, kNan, 7.0F, 1.0F, 7.0F, 1.0F}, {2, 3});
  EXPECT_EQ(mx::argmax(x).item<int>(), 1);
  EXPECT_EQ(list<std::uint32_t>(mx::argmin(x, 1)), (std::vector<std::uint32_t>{1, 0}));
  EXPECT_EQ(list<std::uint32_t>(mx::argmax(x, 1, true)), (std::vector<std::uint32_t>{1, 1}));
  EXPECT_TRUE(std::isnan(mx::max(x).item<float>()));
  EXPECT_TRUE(std::isnan(mx::median(x).item<float>()));
}

// Sums of many numbers stay exact to the last digits, however the work is split.
TEST(ArrayReductions, LongSums) {
  const array halves = mx::full({300'000}, array(0.1, Dtype::float16));
  EXPECT_NEAR(mx::mean(halves).item<double>(), 0.09998, 1e-5);
  const array wide = mx::full({3'000'000}, array(0.1, Dtype::float64));
  EXPECT_NEAR(mx::sum(wide).item<double>(), 300'000, 1e-7);
  EXPECT_NEAR(mx::sum(mx::reshape(wide, {1000, 3000}), 0).data<double>()[7], 100, 1e-12);
}

TEST(ArrayReductions, SumsOfExponents) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(mx::logsumexp(array({-inf, -inf}, {2})).item<float>(), -inf);
  EXPECT_EQ(mx::logsumexp(array({inf, 1.0F}, {2})).item<float>(), inf);
  EXPECT_NEAR(mx::logsumexp(array({1000.0F, 1000.0F}, {2})).item<float>(), 1000.6931, 1e-3);
  const array soft = mx::softmax(array({1.0F, 1001.0F, -2.0F, -2.0F}, {2, 2}), -1);
  EXPECT_EQ(list<float>(soft), (std::vector<float>{0, 1, 0.5F, 0.5F}));
}

TEST(ArraySorting, NanComesLastAndEqualOnesKeepTheirOrder) {
  const array x({2.0F, kNan, -1.0F, 2.0F, -std::numeric_limits<float>::infinity()}, {5});
  EXPECT_EQ(list<std::uint32_t>(mx::argsort(x)), (std::vector<std::uint32_t>{4, 2, 0, 3, 1}));
  EXPECT_TRUE(std::isnan(mx::sort(x).data<float>()[4]));
  EXPECT_EQ(list<std::uint32_t>(mx::searchsorted(array({1.0F, 2.0F, 2.0F}, {3}), array({2.0F, 0.0F, kNan}, {3}), "right")),
            (std::vector<std::uint32_t>{3, 0, 3}));
}

TEST(ArraySorting, LongRowsOfAllWidths) {
  for (const Dtype type :
       {Dtype::int8, Dtype::uint16, Dtype::int32, Dtype::float16, Dtype::float32, Dtype::float64, Dtype::int64}) {
    const array x = mx::astype(mx::sin(mx::arange(0, 200'000, Dtype::float64)) * 100, type);
    const array sorted = mx::sort(x), places = mx::argsort(x);
    const array first = mx::slice(sorted, {0}, {199'999}), next = mx::slice(sorted, {1}, {200'000});
    EXPECT_TRUE(mx::all(mx::less_equal(first, next)).item<bool>()) << name(type);
    EXPECT_TRUE(mx::array_equal(mx::take(x, places), sorted).item<bool>()) << name(type);
    EXPECT_TRUE(mx::array_equal(mx::sort(places), mx::arange(0, 200'000, Dtype::uint32)).item<bool>()) << name(type);
  }
}

TEST(ArraySorting, Partitions) {
  const array x({5.0F, 1.0F, 4.0F, 2.0F, 3.0F}, {5});
  EXPECT_EQ(mx::partition(x, 2).data<float>()[2], 3);
  EXPECT_EQ(mx::argpartition(x, -1).data<std::uint32_t>()[4], 0U);
  EXPECT_EQ(list<float>(mx::sort(mx::topk(x, 2))), (std::vector<float>{4, 5}));
  EXPECT_THROW(mx::topk(x, 6), sdx::Error);
  EXPECT_THROW(mx::partition(x, 5), sdx::Error);
}
