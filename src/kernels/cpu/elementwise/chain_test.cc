#include "kernels/cpu/elementwise/chain.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "kernels/cpu/elementwise/broadcast_rows.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using Kind = ChainStep::Kind;

std::vector<float> numbers(std::int64_t n, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::uniform_real_distribution<float> draw(-4.0F, 4.0F);
  std::vector<float> out(static_cast<std::size_t>(n));
  for (float& v : out) v = draw(random);
  return out;
}

ChainStep binary(Binary op, int a, int b) {
  ChainStep s;
  s.kind = Kind::binary;
  s.binary = op;
  s.operands = 2;
  s.operand[0] = a;
  s.operand[1] = b;
  return s;
}

ChainStep unary(Unary op, int a) {
  ChainStep s;
  s.spec.op = op;
  s.operand[0] = a;
  return s;
}

// y = x < 0 ? exp(x) : (x + b) * x, with b of another shape: as a chain, and by the functions one after the other.
void compare(const Shape& shape, const Shape& b_shape) {
  SCOPED_TRACE(to_string(shape) + " with " + to_string(b_shape));
  const std::int64_t n = element_count(shape);
  const std::vector<float> x = numbers(n, 1), b = numbers(element_count(b_shape), 2);
  const float zero = 0;
  Chain chain;
  chain.input_bytes = {4, 4, 4};
  ChainStep less;
  less.kind = Kind::pair;
  less.pair = BinaryFn::less;
  less.elem = DataType::float32;
  less.operands = 2;
  less.operand[1] = 2;
  less.bytes = 1;
  ChainStep select;
  select.kind = Kind::select;
  select.operands = 3;
  select.operand[0] = 3;
  select.operand[1] = 4;
  select.operand[2] = 6;
  chain.steps = {less, unary(Unary::exp, 0), binary(Binary::add, 0, 1), binary(Binary::mul, 5, 0), select};
  chain.outputs = {2, 4};
  std::vector<float> sum(x.size()), y(x.size());
  const std::vector<Shape> shapes = {shape, b_shape, {}};
  const void* in[] = {x.data(), b.data(), &zero};
  void* out[] = {sum.data(), y.data()};
  ChainPlan(chain, shapes, shape).run(in, out);

  std::int64_t ones[8], steps[8], run = 1;
  for (std::size_t i = shape.size(), pad = shape.size() - b_shape.size(); i-- > 0;) {
    const std::int64_t extent = i < pad ? 1 : b_shape[i - pad];
    steps[i] = extent == 1 ? 0 : run;
    run *= extent;
  }
  run = 1;
  for (std::size_t i = shape.size(); i-- > 0; run *= shape[i]) ones[i] = shape[i] == 1 ? 0 : run;
  std::vector<float> added(x.size()), product(x.size()), power(x.size()), expected(x.size());
  binary_broadcast_f32(Binary::add, x.data(), b.data(), added.data(), static_cast<int>(shape.size()), shape.data(), ones, steps);
  binary_f32(Binary::mul, added.data(), x.data(), product.data(), n);
  unary_f32({Unary::exp}, x.data(), power.data(), n);
  for (std::size_t i = 0; i < x.size(); ++i) expected[i] = x[i] < 0 ? power[i] : product[i];
  EXPECT_EQ(std::memcmp(sum.data(), added.data(), added.size() * 4), 0);
  EXPECT_EQ(std::memcmp(y.data(), expected.data(), expected.size() * 4), 0);
}

TEST(Chain, GivesWhatItsFunctionsGive) {
  test::for_each_isa([] {
    for (const std::int64_t n : {1, 7, 64, 511, 4096, 5000, 100'003}) {
      compare({n}, {n});
      compare({n}, {1});
      compare({n}, {});
    }
  });
}

TEST(Chain, Broadcasts) {
  compare({1000, 3}, {3});
  compare({1000, 3}, {1000, 1});
  compare({50, 640}, {640});
  compare({50, 640}, {50, 1});
  compare({3, 5000}, {5000});
  compare({3, 5000}, {3, 1});
  compare({4, 3, 5, 7}, {3, 1, 7});
  compare({4, 3, 5, 7}, {4, 1, 5, 1});
  compare({7, 1, 9, 11}, {9, 1});
  compare({2, 3, 1024}, {2, 1, 1024});
}

// p - rate * g written over p, which is read again afterwards.
TEST(Chain, ResultsMayLieInAnInput) {
  for (const std::int64_t n : {5, 4096, 70'001}) {
    std::vector<float> p = numbers(n, 3);
    const std::vector<float> g = numbers(n, 4), before = p;
    const float rate = 0.25F;
    Chain chain;
    chain.input_bytes = {4, 4, 4};
    chain.steps = {binary(Binary::mul, 1, 2), binary(Binary::sub, 0, 3), binary(Binary::add, 0, 4)};
    chain.outputs = {1, 2};
    std::vector<float> last(p.size());
    const std::vector<Shape> shapes = {{n}, {n}, {}};
    const void* in[] = {p.data(), g.data(), &rate};
    void* out[] = {p.data(), last.data()};
    ChainPlan(chain, shapes, {n}).run(in, out);
    for (std::size_t i = 0; i < p.size(); ++i) {
      ASSERT_EQ(p[i], before[i] - g[i] * rate);
      ASSERT_EQ(last[i], before[i] + p[i]);
    }
  }
}

// Rows of any length, short and long, with functions that depend on where vectors begin.
TEST(Chain, FoldsRows) {
  for (const auto& [rows, row] : {std::pair<std::int64_t, std::int64_t>{1, 2},
                                  {7, 3},
                                  {100, 64},
                                  {9, 1000},
                                  {5, 8191},
                                  {3, 12'800},
                                  {1, 200'001},
                                  {2, 70'400}}) {
    for (const Reduce op : {Reduce::sum, Reduce::mean, Reduce::max, Reduce::min, Reduce::sum_square, Reduce::sum_abs}) {
      SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(row) + ", " + std::to_string(static_cast<int>(op)));
      std::vector<float> x = numbers(rows * row, 5);
      for (std::size_t i = 100; i < x.size(); i += 1009) x[i] = -95;  // exp takes a different path
      Chain chain;
      chain.input_bytes = {4, 4};
      chain.steps = {unary(Unary::exp, 0), binary(Binary::sub, 2, 1)};
      if (!can_fold(chain.steps, rows * row, row)) {
        EXPECT_EQ(row, 8191);  // odd, and too long for enough rows to fill vectors
        continue;
      }
      chain.folds = {{op, 1}};
      chain.row = row;
      const float half = 0.5F;
      std::vector<float> y(static_cast<std::size_t>(rows)), expected(y.size()), each(x.size());
      const std::vector<Shape> shapes = {{rows, row}, {}};
      const void* in[] = {x.data(), &half};
      void* out[] = {y.data()};
      ChainPlan(chain, shapes, {rows, row}).run(in, out);
      unary_f32({Unary::exp}, x.data(), each.data(), rows * row);
      binary_scalar_right_f32(Binary::sub, each.data(), half, each.data(), rows * row);
      reduce_f32(op, each.data(), expected.data(), rows, row, 1);
      EXPECT_EQ(std::memcmp(y.data(), expected.data(), y.size() * 4), 0);
    }
  }
}

TEST(Chain, CastsAndIntegers) {
  const std::int64_t n = 10'000;
  std::vector<std::int64_t> x(n);
  for (std::int64_t i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = i - 5000;
  Chain chain;
  chain.input_bytes = {8};
  ChainStep square;
  square.kind = Kind::pair;
  square.pair = BinaryFn::multiply;
  square.elem = DataType::int64;
  square.operands = 2;
  square.bytes = 8;
  ChainStep cast;
  cast.kind = Kind::cast;
  cast.from = DataType::int64;
  cast.to = DataType::float32;
  cast.operand[0] = 1;
  chain.steps = {square, cast, unary(Unary::sqrt, 2)};
  chain.outputs = {2};
  std::vector<float> y(static_cast<std::size_t>(n));
  const std::vector<Shape> shapes = {{n}};
  const void* in[] = {x.data()};
  void* out[] = {y.data()};
  ChainPlan(chain, shapes, {n}).run(in, out);
  for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(y[static_cast<std::size_t>(i)], static_cast<float>(std::abs(i - 5000)));
}

}  // namespace
}  // namespace sdx::cpu
