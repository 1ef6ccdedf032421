// Creation, reductions and sorting: shapes, types, edges.

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <sdx/array.hpp>
#include <sdx/array/linalg.hpp>

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

// As NumPy: an axis without elements has no largest one, but other axes may be empty.
TEST(ArrayReductions, EmptyPlacesAndSumsOfExponents) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const auto& place : {mx::argmax, mx::argmin}) {
    EXPECT_EQ(place(mx::zeros({0, 3}), 1, false, {}).shape(), sdx::Shape{0});
    EXPECT_EQ(place(mx::zeros({2, 0}), 0, true, {}).shape(), (sdx::Shape{1, 0}));
    EXPECT_THROW(place(mx::zeros({0, 3}), 0, false, {}), sdx::Error);
    EXPECT_THROW(place(mx::zeros({0}), std::nullopt, false, {}), sdx::Error);
  }
  EXPECT_EQ(mx::logsumexp(mx::zeros({0})).item<float>(), -inf);
  EXPECT_EQ(list<float>(mx::logsumexp(mx::zeros({0, 2}), 0)), (std::vector<float>{-inf, -inf}));
  EXPECT_EQ(mx::logsumexp(mx::zeros({0, 2}), 1, true).shape(), (sdx::Shape{0, 1}));
  EXPECT_EQ(mx::logsumexp(mx::zeros({0}, Dtype::float16)).dtype(), Dtype::float16);
}

// 16-bit floats count to 65,504 or 256 alone: what is counted or summed on the way is in float32.
TEST(ArrayReductions, HalvesBeyondTheirRange) {
  for (const Dtype half : {Dtype::float16, Dtype::bfloat16}) {
    const auto of = [&](double v, sdx::Shape shape) { return mx::full(shape, array(v, half)); };
    const double near = half == Dtype::float16 ? 1e-3 : 1e-2;
    const auto gradient = [&](array (*f)(const array&, const mx::Axes&, bool, mx::StreamOrDevice), const array& x) {
      return mx::astype(mx::grad(mx::ArrayFunction([&](const array& a) { return mx::sum(f(a, {}, false, {})); }))(x),
                        Dtype::float64);
    };
    EXPECT_NEAR(mx::logsumexp(of(0, {151'936})).item<double>(), 11.931, 11.931 * near);
    EXPECT_NEAR(mx::sum(gradient(mx::logsumexp, of(0, {151'936}))).item<double>(), 1, 0.02);
    EXPECT_NEAR(mx::sum(gradient(mx::mean, of(1, {151'936}))).item<double>(), 1, 0.02);
    EXPECT_NEAR(mx::sum(gradient(mx::max, of(1, {151'936}))).item<double>(), 1, 0.02);
    EXPECT_NEAR(mx::sum(gradient(mx::min, of(1, {600}))).item<double>(), 1, 0.02);
    // What the first axes leave is beyond float16, the result is not.
    EXPECT_NEAR(mx::mean(mx::mean(of(300, {2, 3, 1000}), std::vector<int>{0, 2})).item<double>(), 300, 300 * near);
    const array apart = mx::concatenate({of(300, {1, 1, 1000}), of(-296, {1, 1, 1000})}, 0);
    EXPECT_NEAR(mx::sum(apart, std::vector<int>{0, 2}).item<double>(), 4000, 4000 * near);
    const array wide = mx::concatenate({of(1000, {50}), of(-1000, {50})}, 0);
    EXPECT_NEAR(mx::std(wide).item<double>(), 1000, 1000 * near);
    EXPECT_NEAR(mx::linalg::norm(wide).item<double>(), 10'000, 10'000 * near);
    EXPECT_NEAR(mx::linalg::norm(mx::reshape(wide, {10, 10}), "fro").item<double>(), 10'000, 10'000 * near);
    EXPECT_NEAR(mx::linalg::norm(wide, 3.0).item<double>(), 4641.6, 4641.6 * near);
  }
}

// 5000 ones in one place: 2048 is the largest float16 to which 1 can be added, 256 the largest bfloat16.
TEST(ArrayReductions, HalvesAddedInOnePlace) {
  for (const Dtype half : {Dtype::float16, Dtype::bfloat16}) {
    const double near = half == Dtype::float16 ? 2 : 16;
    const array ones = mx::ones({5000}, half), places = mx::zeros({5000}, Dtype::int32);
    const array x = mx::zeros({3}, half);
    EXPECT_NEAR(mx::sum(mx::index_update(x, {places}, ones, mx::Update::add)).item<double>(), 5000, near);
    EXPECT_NEAR(mx::sum(mx::scatter_add_axis(x, places, ones, 0)).item<double>(), 5000, near);
    const auto check = [&](const char* what, const mx::ArrayFunction& f) {
      EXPECT_NEAR(mx::astype(mx::grad(mx::ArrayFunction([&](const array& a) { return mx::sum(f(a)); }))(x), Dtype::float32)
                      .data<float>()[0],
                  5000, near)
          << what;
    };
    check("take", [&](const array& a) { return mx::take(a, places, 0); });
    check("take_along_axis", [&](const array& a) { return mx::take_along_axis(a, places, 0); });
    check("as_strided", [&](const array& a) { return mx::as_strided(a, sdx::Shape{5000}, sdx::Shape{0}, 0); });
    check("broadcast_to", [&](const array& a) { return mx::broadcast_to(mx::slice(a, {0}, {1}), {5000}); });
    // Two places in turn, one of them negative: each keeps its own sum.
    const array turns = mx::remainder(mx::arange(5000), array(2)) * 2 - 1;
    const array both = mx::astype(mx::index_update(x, {turns}, ones, mx::Update::add), Dtype::float32);
    EXPECT_NEAR(both.data<float>()[1], 2500, near);
    EXPECT_NEAR(both.data<float>()[2], 2500, near);
  }
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

// Which of the smaller ones comes first is open, but the same wherever it is asked for: gradients go by the places.
TEST(ArraySorting, PartitionsHaveOneOrder) {
  const Dtype types[] = {Dtype::float32, Dtype::float64, Dtype::int8, Dtype::float16, Dtype::complex64};
  for (const Dtype type : types) {
    for (const int count : {5, 40, 1000}) {
      const array drawn = mx::random::randint(array(0), array(count / 4 + 2), {3, count}, Dtype::int32, mx::random::key(7));
      const array x = mx::astype(drawn, type), weights = mx::astype(mx::arange(count), type);
      for (const int kth : {0, count / 3, count - 1}) {
        const array found = mx::partition(x, kth), places = mx::argpartition(x, kth);
        EXPECT_TRUE(mx::array_equal(found, mx::take_along_axis(x, places, -1)).item<bool>()) << name(type) << count;
        if (type == Dtype::int8 || type == Dtype::complex64) continue;
        const array top = mx::topk(x, count - kth);
        const array k = mx::slice(weights, {kth}, {count});
        const array g = mx::grad(mx::ArrayFunction([&](const array& a) { return mx::sum(mx::topk(a, count - kth) * k); }))(x);
        // Every weight is where the element is that it was multiplied with.
        EXPECT_TRUE(mx::allclose(mx::sum(g * x, -1), mx::sum(top * k, -1), 1e-3).item<bool>()) << name(type) << count << kth;
      }
    }
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
