// Elementwise operations that are computed in one pass give what each of them gives alone.

#include <sdx/array.hpp>

#include <cstring>
#include <random>

#include <gtest/gtest.h>

namespace {

namespace mx = sdx::array;

mx::array numbers(sdx::Shape shape, unsigned seed) {
  sdx::Tensor t(sdx::DataType::float32, std::move(shape));
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> draw(-2.0F, 2.0F);
  for (float& v : t.mutable_values<float>()) v = draw(random);
  return mx::array(t);
}

// The same trace twice: as it is, and evaluated after every operation.
mx::array trace(const mx::array& x, const mx::array& row, const mx::array& column, bool each) {
  const auto then = [&](mx::array a) {
    if (each) a.eval();
    return a;
  };
  mx::array a = then(mx::multiply(x, row));
  a = then(mx::add(a, column));
  const mx::array s = then(mx::sum(a, std::vector<int>{-1}, true));
  mx::array b = then(mx::add(a, s));
  b = then(mx::multiply(b, mx::array(0.25F)));
  const mx::array whole = then(mx::astype(b, mx::Dtype::int32));
  mx::array c = then(mx::add(whole, mx::array(3)));
  return then(mx::add(then(mx::multiply(c, b)), a));
}

TEST(ArrayChain, EqualsItsOperations) {
  for (const sdx::Shape& shape : {sdx::Shape{1, 1}, {5, 3}, {1000, 3}, {37, 640}, {3, 5001}}) {
    const mx::array x = numbers(shape, 1), row = numbers({shape[1]}, 2), column = numbers({shape[0], 1}, 3);
    const mx::array at_once = trace(x, row, column, false), each = trace(x, row, column, true);
    const auto a = at_once.data<float>(), b = each.data<float>();
    ASSERT_EQ(a.size(), b.size());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size_bytes()), 0) << sdx::to_string(shape);
  }
}

// Sums that follow, of rows and of everything, and one whose operand is needed as well.
TEST(ArrayChain, SumsEqualThoseOfTheirOperands) {
  for (const sdx::Shape& shape : {sdx::Shape{1, 2}, {5, 3}, {1000, 30}, {37, 640}, {3, 5001}, {2, 20'000}, {1, 100'003}}) {
    for (const auto& axes : {std::optional<std::vector<int>>{}, std::optional<std::vector<int>>{{-1}}}) {
      const mx::array x = numbers(shape, 1), y = numbers({shape[1]}, 2);
      const mx::array a = mx::multiply(mx::add(x, y), x), total = mx::sum(a, axes), whole = mx::add(a, y);
      mx::eval(std::vector<mx::array>{whole, total});
      const mx::array again = mx::multiply(mx::add(x, y), x);
      again.eval();
      const mx::array expected = mx::sum(again, axes);
      const auto e = expected.data<float>(), t = total.data<float>();
      ASSERT_EQ(e.size(), t.size());
      EXPECT_EQ(std::memcmp(e.data(), t.data(), e.size_bytes()), 0) << sdx::to_string(shape);
      const auto w = whole.data<float>();
      const mx::array again_whole = mx::add(again, y);
      EXPECT_EQ(std::memcmp(w.data(), again_whole.data<float>().data(), w.size_bytes()), 0);
    }
  }
}

// More operations and inputs than one step may have, and results in between that are kept.
TEST(ArrayChain, LongOnesAreCut) {
  std::vector<mx::array> leaves, kept;
  for (unsigned i = 0; i < 150; ++i) leaves.push_back(numbers({777}, i));
  mx::array sum = leaves[0];
  std::vector<float> expected(leaves[0].data<float>().begin(), leaves[0].data<float>().end());
  for (std::size_t i = 1; i < leaves.size(); ++i) {
    sum = mx::add(sum, leaves[i]);
    if (i % 3 == 0) kept.push_back(sum);
  }
  sum.eval();
  std::size_t next = 0;
  for (std::size_t i = 1; i < leaves.size(); ++i) {
    for (std::size_t k = 0; k < expected.size(); ++k) expected[k] += leaves[i].data<float>()[k];
    if (i % 3 != 0) continue;
    EXPECT_TRUE(kept[next].is_evaluated());
    ASSERT_EQ(std::memcmp(kept[next++].data<float>().data(), expected.data(), expected.size() * 4), 0) << i;
  }
  EXPECT_EQ(std::memcmp(sum.data<float>().data(), expected.data(), expected.size() * 4), 0);
}

}  // namespace
