#include <gtest/gtest.h>

#include <sdx/array.hpp>

namespace mx = sdx::array;
using sdx::Shape;

namespace {

mx::array numbers(Shape shape, sdx::DataType type = sdx::DataType::float32) {
  std::int64_t count = sdx::element_count(shape);
  sdx::Tensor t(sdx::DataType::float32, {count});
  for (std::int64_t i = 0; i < count; ++i) t.mutable_values<float>()[static_cast<std::size_t>(i)] = static_cast<float>(i);
  return mx::astype(mx::reshape(mx::array(t), shape), type);
}

std::vector<float> values(const mx::array& a) {
  const mx::array f = mx::astype(a, sdx::DataType::float32);
  const auto data = f.data<float>();
  return {data.begin(), data.end()};
}

using Floats = std::vector<float>;

}  // namespace

TEST(ArrayShape, Transposes) {
  const auto a = numbers({2, 3});
  EXPECT_EQ(values(mx::transpose(a)), (Floats{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(mx::moveaxis(numbers({2, 3, 4}), 0, -1).shape(), (Shape{3, 4, 2}));
  EXPECT_EQ(mx::swapaxes(numbers({2, 3, 4}), 0, 2).shape(), (Shape{4, 3, 2}));
  EXPECT_THROW(mx::transpose(a, std::vector<int>{0, 0}), sdx::Error);
}

TEST(ArrayShape, JoinsAndSplits) {
  const auto a = numbers({2, 3});
  EXPECT_EQ(values(mx::concatenate({a, a}, 1)), (Floats{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  EXPECT_EQ(mx::stack({a, a, a}, -1).shape(), (Shape{2, 3, 3}));
  const auto parts = mx::split(a, Shape{1}, 1);
  EXPECT_EQ(values(parts[0]), (Floats{0, 3}));
  EXPECT_EQ(values(parts[1]), (Floats{1, 2, 4, 5}));
  EXPECT_EQ(mx::split(numbers({6}), 3).size(), 3U);
  EXPECT_EQ(values(mx::unstack(a)[1]), (Floats{3, 4, 5}));
  EXPECT_EQ(values(mx::split(numbers({4}), Shape{3, 1})[1]), (Floats{}));
  EXPECT_THROW(mx::split(a, 2, 1), sdx::Error);
}

TEST(ArrayShape, Slices) {
  const auto a = numbers({2, 3});
  EXPECT_EQ(values(mx::slice(a, Shape{0, 1}, Shape{2, 3})), (Floats{1, 2, 4, 5}));
  EXPECT_EQ(values(mx::flip(a, std::vector<int>{1})), (Floats{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(values(mx::roll(numbers({5}), Shape{2})), (Floats{3, 4, 0, 1, 2}));
  EXPECT_EQ(values(mx::slice_update(a, mx::array(9.0F), Shape{0, 0}, Shape{2, 3}, Shape{1, 2})), (Floats{9, 1, 9, 9, 4, 9}));
  EXPECT_EQ(values(mx::take(a, 1, 1)), (Floats{1, 4}));
  EXPECT_EQ(values(mx::take(a, mx::array({2, 0}, {2}), 1)), (Floats{2, 0, 5, 3}));
}

TEST(ArrayShape, PadsAndDiagonals) {
  EXPECT_EQ(values(mx::pad(numbers({2}), {{1, 2}})), (Floats{0, 0, 1, 0, 0}));
  EXPECT_EQ(values(mx::pad(numbers({3}), {{2, 2}}, "reflect")), (Floats{2, 1, 0, 1, 2, 1, 0}));
  EXPECT_EQ(values(mx::pad(numbers({3}), {{2, 2}}, "edge")), (Floats{0, 0, 0, 1, 2, 2, 2}));
  EXPECT_EQ(values(mx::diagonal(numbers({3, 3}), 1)), (Floats{1, 5}));
  EXPECT_EQ(values(mx::diag(numbers({2}), 1)), (Floats{0, 0, 0, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(values(mx::diag(numbers({2}), -1)), (Floats{0, 0, 0, 0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(mx::trace(numbers({3, 3})).item<float>(), 12);
  EXPECT_EQ(values(mx::as_strided(numbers({4}), Shape{3, 2}, Shape{1, 1})), (Floats{0, 1, 1, 2, 2, 3}));
  EXPECT_THROW(mx::as_strided(numbers({4}), Shape{3, 2}, Shape{1, 2}), sdx::Error);
  EXPECT_EQ(values(mx::tile(numbers({2}), {2, 2})), (Floats{0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(values(mx::repeat(numbers({2}), 2)), (Floats{0, 0, 1, 1}));
}

TEST(ArrayMatrix, ProductsOfAllTypes) {
  using T = sdx::DataType;
  for (const T type : {T::float32, T::float64, T::float16, T::bfloat16, T::int8, T::uint8, T::int32, T::int64}) {
    const auto a = numbers({2, 3}, type), b = numbers({3, 2}, type);
    EXPECT_EQ(values(mx::matmul(a, b)), (Floats{10, 13, 28, 40}));
    EXPECT_EQ(values(mx::matmul(mx::transpose(b), mx::transpose(a))), (Floats{10, 28, 13, 40}));
    EXPECT_EQ(values(mx::matmul(numbers({2, 1, 2, 3}, type), numbers({2, 3, 2}, type))).size(), 16U);
    EXPECT_EQ(values(mx::matmul(numbers({3}, type), numbers({3}, type))), (Floats{5}));
  }
}

TEST(ArrayShape, BatchesOfNothing) {
  const mx::ArrayFunction f = [](const mx::array& x) { return mx::as_strided(x, Shape{2, 2}, Shape{1, 1}, 0); };
  EXPECT_EQ(values(mx::vmap(f, 0, 0)(numbers({2, 3}))), (Floats{0, 1, 1, 2, 3, 4, 4, 5}));
  const mx::array none = mx::vmap(f, 0, 0)(numbers({0, 3}));
  EXPECT_EQ(none.shape(), (Shape{0, 2, 2}));
  none.eval();
}

TEST(ArrayShape, ExtentsBeyondAnyMemoryAreRefused) {
  const auto wide = mx::broadcast_to(numbers({1}), Shape{std::int64_t{1} << 40});
  const auto none = mx::reshape(mx::zeros({0}), Shape{0, std::int64_t{1} << 58});
  EXPECT_THROW(mx::repeat(wide, 1 << 30), sdx::Error);
  EXPECT_THROW(mx::repeat(none, 1 << 10, 1), sdx::Error);
  EXPECT_THROW(mx::tile(wide, {1 << 30}), sdx::Error);
  EXPECT_THROW(mx::kron(wide, wide), sdx::Error);
  EXPECT_THROW(mx::kron(none, none), sdx::Error);
  EXPECT_THROW(mx::concatenate(std::vector<mx::array>(40, none), 1), sdx::Error);
  EXPECT_THROW(mx::unstack(wide), sdx::Error);
  EXPECT_EQ(values(mx::roll(numbers({3}), Shape{INT64_MAX, INT64_MAX}, std::vector<int>{0, 0})),
            values(mx::roll(numbers({3}), Shape{2 * (INT64_MAX % 3)})));
  EXPECT_EQ(values(mx::roll(numbers({3}), Shape{INT64_MAX, INT64_MAX})),
            values(mx::roll(numbers({3}), Shape{INT64_MAX % 3 * 2})));
  EXPECT_EQ(values(mx::slice(numbers({3}), Shape{2}, Shape{-4}, Shape{INT64_MIN})), (Floats{2}));
}

TEST(ArrayShape, SplitsIntoManyParts) {
  constexpr int kParts = 5000;
  const auto flat = mx::arange(kParts);
  const auto parts = mx::split(flat, kParts);
  mx::eval(parts);
  const auto later = mx::split(mx::add(flat, flat), kParts);  // of what is not computed yet
  for (const int i : {0, 1, 77, kParts - 1}) {
    EXPECT_EQ(parts[static_cast<std::size_t>(i)].item<int>(), i);
    EXPECT_EQ(later[static_cast<std::size_t>(i)].item<int>(), 2 * i);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(parts[static_cast<std::size_t>(i)].tensor().data()) % 64, 0U);
  }
  // Along an inner axis, of different extents, some of none.
  sdx::Shape at;
  for (std::int64_t i = 1; i < 600; ++i) at.push_back(i / 2 * 2);
  const auto wide = mx::reshape(mx::arange(2 * 600 * 3), {2, 600, 3});
  const auto some = mx::split(wide, at, 1);
  EXPECT_EQ(some[4].shape(), (Shape{2, 0, 3}));
  EXPECT_EQ(values(some[5]), (Floats{12, 13, 14, 15, 16, 17, 1812, 1813, 1814, 1815, 1816, 1817}));
  EXPECT_EQ(mx::sum(mx::concatenate(some, 1)).item<int>(), mx::sum(wide).item<int>());
  EXPECT_EQ(mx::add(parts[9], parts[10]).item<int>(), 19);
}
