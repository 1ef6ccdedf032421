#include <sdx/array/random.hpp>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <sdx/array.hpp>
#include <sdx/array/memory.hpp>

namespace mx = sdx::array;
namespace random_ = sdx::array::random;
using mx::array;

namespace {

template <class T>
std::vector<T> list(const array& a) {
  const auto values = a.data<T>();
  return {values.begin(), values.end()};
}

std::string bools(const array& a) {
  std::string out;
  for (const bool b : a.data<bool>()) out += b ? '1' : '0';
  return out;
}

void near(const array& got, const std::vector<float>& expected) {
  const auto values = list<float>(got);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 2e-6 * (1 + std::abs(expected[i])));
}

}  // namespace

// What mlx 0.32.4 gives for the key of this seed.
TEST(ArrayRandom, NumbersOfMlx) {
  const array key = random_::key(std::uint64_t{7} << 32 | 123456789);
  EXPECT_EQ(list<std::uint32_t>(random_::split(key, 3)),
            (std::vector<std::uint32_t>{2268822950U, 645923086U, 3640797269U, 3223140746U, 780425725U, 358369260U}));
  EXPECT_EQ(list<float>(random_::uniform({5}, mx::Dtype::float32, key)),
            (std::vector<float>{0.5282515F, 0.15039068F, 0.16681209F, 0.75044596F, 0.18170702F}));
  EXPECT_EQ(list<float>(random_::uniform(array(-2.5F), array(7), {5}, mx::Dtype::float32, key)),
            (std::vector<float>{2.5183897F, -1.0712885F, -0.9152851F, 4.6292367F, -0.7737832F}));
  EXPECT_EQ(list<float>(mx::astype(random_::uniform({5}, mx::Dtype::float16, key), mx::Dtype::float32)),
            (std::vector<float>{0.5283203F, 0.15039062F, 0.16687012F, 0.7504883F, 0.1817627F}));
  const std::vector<float> expected{-0.3789007F, -0.3070408F,  0.58947575F,  -0.2418255F, -1.0951109F,
                                    1.6970873F,  -0.49024275F, -0.14868431F, 0.42186162F};
  const auto normal = list<float>(random_::normal({9}, mx::Dtype::float32, {}, {}, key));
  for (std::size_t i = 0; i < normal.size(); ++i) EXPECT_NEAR(normal[i], expected[i], 1e-6 * (1 + std::abs(expected[i])));
}

TEST(ArrayRandom, SplittingTheStateIsSplittingKeys) {
  random_::seed(5);
  const array first = random_::uniform({3});
  const array second = random_::uniform({3});
  const array keys = random_::split(random_::key(5));
  const auto words = list<std::uint32_t>(keys);
  const array drawn = array(sdx::Tensor::of<std::uint32_t>({2}, {words[2], words[3]}));
  EXPECT_EQ(list<float>(first), list<float>(random_::uniform({3}, mx::Dtype::float32, drawn)));
  EXPECT_NE(list<float>(first), list<float>(second));
}

TEST(ArrayRandom, LargeDrawsAreUniform) {
  const auto values = list<float>(random_::uniform(array(-1.0F), array(3.0F), {300'001}, mx::Dtype::float32, random_::key(1)));
  double total = 0;
  for (const float v : values) {
    ASSERT_GE(v, -1);
    ASSERT_LT(v, 3);
    total += v;
  }
  EXPECT_NEAR(total / static_cast<double>(values.size()), 1, 0.01);
}

TEST(ArrayRandom, LargeDrawsAreNormal) {
  const auto values = list<float>(random_::normal({300'000}, mx::Dtype::float32, {}, {}, random_::key(2)));
  double total = 0, squares = 0;
  for (const float v : values) {
    ASSERT_TRUE(std::isfinite(v));
    total += v, squares += double{v} * v;
  }
  const auto n = static_cast<double>(values.size());
  EXPECT_NEAR(total / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.01);
}

TEST(ArrayRandom, Doubles) {
  const auto values = list<double>(random_::uniform({1001}, mx::Dtype::float64, random_::key(3)));
  double total = 0;
  for (const double v : values) {
    ASSERT_TRUE(v >= 0 && v < 1);
    total += v;
  }
  EXPECT_NEAR(total / 1001, 0.5, 0.05);
  EXPECT_NE(static_cast<double>(static_cast<float>(values[0])), values[0]);
}

TEST(ArrayRandom, BatchesOfKeys) {
  const array keys = random_::split(random_::key(9), 3);
  const auto draw = [](const array& key) { return random_::normal({2, 2}, mx::Dtype::float32, {}, {}, key); };
  const array all = mx::vmap(mx::ArrayFunction(draw))(keys);
  EXPECT_EQ(all.shape(), (sdx::Shape{3, 2, 2}));
  const auto words = list<std::uint32_t>(keys);
  const array second = array(sdx::Tensor::of<std::uint32_t>({2}, {words[2], words[3]}));
  const auto one = list<float>(draw(second)), whole = list<float>(all);
  EXPECT_EQ(one, (std::vector<float>(whole.begin() + 4, whole.begin() + 8)));
}

TEST(ArrayRandom, CompiledFunctionsDrawAnew) {
  random_::seed(7);
  mx::CompileOptions options;
  options.inputs = options.outputs = random_::state();
  const auto f = mx::compile([](const std::vector<array>&) { return std::vector<array>{random_::uniform({2})}; }, options);
  const auto a = list<float>(f({})[0]), b = list<float>(f({})[0]);
  EXPECT_NE(a, b);
  random_::seed(7);
  EXPECT_EQ(list<float>(random_::uniform({2})), a);
  EXPECT_EQ(list<float>(random_::uniform({2})), b);
  EXPECT_EQ(f.traces(), 1U);
}

TEST(ArrayRandom, RefusesWhatIsNoKey) {
  EXPECT_THROW(random_::bits({2}, 4, array(1.0F)), sdx::Error);
  EXPECT_THROW(random_::bits({2}, 3), sdx::Error);
  EXPECT_THROW(random_::uniform({2}, mx::Dtype::int32), sdx::Error);
  EXPECT_THROW(random_::uniform(array({0.0F, 1.0F}), array(2.0F), {3}), sdx::Error);
}

// What mlx 0.32.4 gives for key(42).
TEST(ArrayRandom, DistributionsOfMlx) {
  const array key = random_::key(42);
  EXPECT_EQ(list<std::int32_t>(random_::randint(array(-5), array(1000), {6}, mx::Dtype::int32, key)),
            (std::vector<std::int32_t>{728, 868, 871, 204, 182, 547}));
  EXPECT_EQ(list<std::uint32_t>(random_::permutation(8, key)), (std::vector<std::uint32_t>{7, 6, 3, 2, 5, 1, 0, 4}));
  EXPECT_EQ(list<float>(random_::permutation(array({0.0F, 1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F, 7.0F}), 0, key)),
            (std::vector<float>{7, 6, 3, 2, 5, 1, 0, 4}));
  EXPECT_EQ(bools(random_::bernoulli(array(0.3F), sdx::Shape{12}, key)), "010011001011");
  const array logits({0.0F, 1.0F, 2.0F, 3.0F, 0.0F, 0.5F}, {2, 3});
  EXPECT_EQ(list<std::int64_t>(mx::astype(random_::categorical(logits, -1, random_::Samples{}, key), mx::Dtype::int64)),
            (std::vector<std::int64_t>{2, 0}));
  EXPECT_EQ(list<std::int64_t>(mx::astype(random_::categorical(logits, 0, random_::Samples{5}, key), mx::Dtype::int64)),
            (std::vector<std::int64_t>{1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(
      list<std::int64_t>(mx::astype(random_::categorical(logits, -1, random_::Samples{sdx::Shape{3, 2}}, key), mx::Dtype::int64)),
      (std::vector<std::int64_t>{2, 0, 1, 0, 2, 0}));
  near(random_::gumbel({5}, mx::Dtype::float32, key), {1.1553133F, 1.9647629F, -0.48698866F, -0.4506455F, -0.51799464F});
  near(random_::laplace({5}, mx::Dtype::float32, 1.0F, 2.0F, key), {-0.2310313F, -1.6817837F, 2.8685217F, 2.752355F, 2.9710212F});
  near(random_::truncated_normal(array(-0.5F), array(2.0F), sdx::Shape{5}, mx::Dtype::float32, key),
       {0.82945466F, 1.2253497F, -0.15122749F, -0.13133807F, -0.16788842F});
  near(random_::normal({5}, mx::Dtype::float32, array(1.0F), array(3.0F), key),
       {2.8367963F, 4.3677654F, -1.5632391F, -1.4381971F, -1.6712139F});
}

// All integers from the lower bound on, below 0 too, equally often; never the upper bound.
TEST(ArrayRandom, IntegersBelowZero) {
  constexpr int kDrawn = 200'000, kLow = -5, kHigh = 5;
  const array drawn = random_::randint(array(kLow), array(kHigh), {kDrawn}, mx::Dtype::int32, random_::key(3));
  std::vector<int> times(kHigh - kLow, 0);
  for (const std::int32_t v : drawn.data<std::int32_t>()) {
    ASSERT_TRUE(v >= kLow && v < kHigh) << v;
    ++times[static_cast<std::size_t>(v - kLow)];
  }
  for (std::size_t i = 0; i < times.size(); ++i) EXPECT_NEAR(times[i], kDrawn / 10, 700) << kLow + static_cast<int>(i);
  // What mlx 0.32.4 gives for key(3).
  const auto first = list<std::int32_t>(random_::randint(array(kLow), array(kHigh), {12}, mx::Dtype::int32, random_::key(3)));
  EXPECT_EQ(std::vector<std::int32_t>(first.begin(), first.begin() + 3), (std::vector<std::int32_t>{3, 0, 4}));
  EXPECT_EQ(std::vector<std::int32_t>(first.end() - 3, first.end()), (std::vector<std::int32_t>{0, -4, -1}));
}

TEST(ArrayRandom, IntegersThatFloatsDoNotTellApart) {
  const array drawn = random_::randint(array(16'777'217), array(16'777'219), {2000}, mx::Dtype::int32, random_::key(3));
  for (const std::int32_t v : drawn.data<std::int32_t>()) ASSERT_TRUE(v == 16'777'217 || v == 16'777'218) << v;
  const array bytes = random_::randint(array(-128), array(128), {20'000}, mx::Dtype::int8, random_::key(4));
  EXPECT_EQ(mx::min(bytes).item<int>(), -128);
  EXPECT_EQ(mx::max(bytes).item<int>(), 127);
  EXPECT_EQ(mx::max(random_::randint(array(7), array(5), {50}, mx::Dtype::int32, random_::key(3))).item<int>(), 7);
}

std::vector<std::uint32_t> samples(const array& logits, std::int64_t count, const array& key) {
  return list<std::uint32_t>(random_::categorical(logits, -1, random_::Samples{static_cast<int>(count)}, key));
}

// What mlx 0.32.4 gives for key(3): one distribution is sampled by its running sums, several by noise.
TEST(ArrayRandom, SamplesOfOneDistributionOfMlx) {
  const array logits({0.1F, 2.0F, -1.0F, 0.5F}, {4}), key = random_::key(3);
  const auto twelve = samples(logits, 12, key);
  EXPECT_EQ(std::vector<std::uint32_t>(twelve.begin(), twelve.begin() + 3), (std::vector<std::uint32_t>{3, 1, 3}));
  EXPECT_EQ(std::vector<std::uint32_t>(twelve.end() - 3, twelve.end()), (std::vector<std::uint32_t>{1, 0, 1}));
  EXPECT_EQ(list<std::uint32_t>(random_::categorical(logits, -1, random_::Samples{sdx::Shape{3, 2}}, key)),
            (std::vector<std::uint32_t>{1, 1, 1, 1, 1, 2}));
  EXPECT_EQ(random_::categorical(logits, -1, random_::Samples{}, key).item<int>(), 1);
  EXPECT_EQ(samples(mx::reshape(logits, {1, 4}), 12, key), twelve);
}

// 65,536 samples of 4096 choices: noise for all of them would take 1 GB.
TEST(ArrayRandom, SamplesTakeLittleMemory) {
  mx::reset_peak_memory();
  const std::size_t before = mx::get_active_memory();
  random_::categorical(mx::zeros({4096}), -1, random_::Samples{65'536}, random_::key(3)).eval();
  EXPECT_LT(mx::get_peak_memory() - before, std::size_t{8} << 20);
}

TEST(ArrayRandom, SamplesFallOnLikelyChoices) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::uint32_t v : samples(array({-inf, 1.0F, -inf, 1.0F, -inf}), 20'000, random_::key(5))) {
    ASSERT_TRUE(v == 1 || v == 3) << v;
  }
  for (const std::uint32_t v : samples(array({3.0F, inf, 0.0F, inf}), 1000, random_::key(5))) ASSERT_TRUE(v == 1 || v == 3) << v;
  for (const std::uint32_t v : samples(array({0.0F, nan, 0.0F}), 1000, random_::key(5))) ASSERT_LT(v, 3U);
  EXPECT_TRUE(samples(array({0.0F, 1.0F}), 0, random_::key(5)).empty());
}

TEST(ArrayRandom, MultivariateNormalOfMlx) {
  const array cov({2.0F, 0.5F, 0.5F, 1.0F}, {2, 2});
  near(random_::multivariate_normal(array({1.0F, -1.0F}), cov, {3}, mx::Dtype::float32, random_::key(42)),
       {2.092462F, 0.2262919F, 2.4195013F, -1.5552046F, -0.2186414F, -1.0639633F});
}

TEST(ArrayRandom, ComplexNormalOfMlx) {
  sdx::Tensor loc(mx::Dtype::complex64, {});
  static_cast<float*>(loc.mutable_data())[0] = 1;
  static_cast<float*>(loc.mutable_data())[1] = 2;
  const array drawn = random_::normal({3}, mx::Dtype::complex64, array(std::move(loc)), array(2.0F), random_::key(42));
  EXPECT_EQ(drawn.shape(), sdx::Shape{3});
  near(mx::view(drawn, mx::Dtype::float32), {1.865874F, 3.5875802F, 2.6084309F, 0.8506228F, -0.2592224F, 2.1785188F});
}

TEST(ArrayRandom, GradientsGoToBounds) {
  const array key = random_::key(3);
  const auto f = [&](const array& low) { return mx::sum(random_::uniform(low, array(2.0F), {4}, mx::Dtype::float32, key)); };
  const array unit = random_::uniform({4}, mx::Dtype::float32, key);
  float expected = 0;
  for (const float u : unit.data<float>()) expected += 1 - u;
  EXPECT_NEAR(mx::grad(mx::ArrayFunction(f))(array(1.0F)).item<float>(), expected, 1e-5);
}
