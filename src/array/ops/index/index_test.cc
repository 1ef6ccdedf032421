#include <functional>

#include <gtest/gtest.h>

#include <sdx/array.hpp>

namespace mx = sdx::array;
using sdx::Shape;
using Floats = std::vector<float>;

namespace {

mx::array numbers(const Shape& shape) {
  sdx::Tensor t(sdx::DataType::float32, shape);
  float next = 0;
  for (float& v : t.mutable_values<float>()) v = next++;
  return mx::array(t);
}

mx::array positions(Shape shape, std::initializer_list<std::int64_t> values) {
  return mx::array(sdx::Tensor::of<std::int64_t>(std::move(shape), values));
}

Floats values(const mx::array& a) {
  const auto data = a.data<float>();
  return {data.begin(), data.end()};
}

}  // namespace

TEST(ArrayIndex, NumbersSlicesAndNewAxes) {
  const auto a = numbers({3, 4});
  EXPECT_EQ(values(mx::index(a, {1})), (Floats{4, 5, 6, 7}));
  EXPECT_EQ(values(mx::index(a, {mx::Ellipsis{}, -1})), (Floats{3, 7, 11}));
  EXPECT_EQ(values(mx::index(a, {mx::Slice{{}, {}, -1}, 0})), (Floats{8, 4, 0}));
  EXPECT_EQ(mx::index(a, {mx::NewAxis{}, mx::Slice{1, {}, {}}, mx::NewAxis{}, mx::Slice{{}, {}, 2}}).shape(),
            (Shape{1, 2, 1, 2}));
  EXPECT_THROW(mx::index(a, {3}), sdx::Error);
  EXPECT_THROW(mx::index(a, {0, 0, 0}), sdx::Error);
  EXPECT_THROW(mx::index(a, {mx::Ellipsis{}, mx::Ellipsis{}}), sdx::Error);
}

// NumPy: axes of arrays come where these stand side by side, else first.
TEST(ArrayIndex, PlacesOfPositions) {
  const auto a = numbers({2, 3, 4, 5});
  const auto i = positions({7}, {0, 1, 0, 1, 0, 1, 0});
  const mx::Slice all;
  EXPECT_EQ(mx::index(a, {all, i}).shape(), (Shape{2, 7, 4, 5}));
  EXPECT_EQ(mx::index(a, {all, i, i}).shape(), (Shape{2, 7, 5}));
  EXPECT_EQ(mx::index(a, {i, all, i}).shape(), (Shape{7, 3, 5}));
  EXPECT_EQ(mx::index(a, {all, i, all, i}).shape(), (Shape{7, 2, 4}));
  EXPECT_EQ(mx::index(a, {all, i, i, mx::Ellipsis{}, i}).shape(), (Shape{7, 2}));
  EXPECT_EQ(mx::index(a, {all, 0, i}).shape(), (Shape{2, 7, 5}));
  EXPECT_EQ(mx::index(a, {0, all, i}).shape(), (Shape{7, 3, 5}));
  EXPECT_EQ(values(mx::index(numbers({3, 4}), {positions({2}, {0, -1}), positions({2}, {1, 2})})), (Floats{1, 10}));
}

TEST(ArrayIndex, Masks) {
  const auto a = numbers({2, 3});
  const mx::array mask({true, false, true, false, false, true}, {2, 3});
  EXPECT_EQ(values(mx::index(a, {mask})), (Floats{0, 2, 5}));
  EXPECT_EQ(values(mx::index_update(a, {mask}, mx::array({7.0F, 8.0F, 9.0F}))), (Floats{7, 1, 8, 3, 4, 9}));
  EXPECT_EQ(values(mx::index_update(a, {mask}, mx::array(-1.0F))), (Floats{-1, 1, -1, 3, 4, -1}));
  EXPECT_EQ(mx::index(a, {mx::array(true)}).shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(mx::index(a, {mx::array(false)}).shape(), (Shape{0, 2, 3}));
}

TEST(ArrayIndex, Updates) {
  const auto a = numbers({2, 3});
  EXPECT_EQ(values(mx::index_update(a, {mx::Slice{}, 1}, mx::array(9.0F))), (Floats{0, 9, 2, 3, 9, 5}));
  const auto twice = positions({3}, {0, 0, 1});
  EXPECT_EQ(values(mx::index_update(a, {twice}, mx::array(1.0F), mx::Update::add)), (Floats{2, 3, 4, 4, 5, 6}));
  EXPECT_EQ(values(mx::index_update(a, {mx::Slice{{}, {}, -1}}, numbers({2, 3}))), (Floats{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(values(mx::index_update(a, {mx::Slice{}, twice}, mx::array(2.0F), mx::Update::multiply)),
            (Floats{0, 2, 2, 12, 8, 5}));
  EXPECT_THROW(mx::index_update(a, {0}, numbers({2})), sdx::Error);
  EXPECT_THROW(mx::index(a, {positions({1}, {2})}).eval(), sdx::Error);
}

TEST(ArrayIndex, AlongAnAxis) {
  const auto a = numbers({2, 3});
  const auto i = positions({2, 1}, {2, 0});
  EXPECT_EQ(values(mx::take_along_axis(a, i, 1)), (Floats{2, 3}));
  EXPECT_EQ(values(mx::put_along_axis(a, i, mx::array(9.0F), 1)), (Floats{0, 1, 9, 9, 4, 5}));
  EXPECT_EQ(values(mx::slice(a, positions({1}, {1}), {1}, {2, 2})), (Floats{1, 2, 4, 5}));
  EXPECT_EQ(values(mx::slice_update(a, mx::array({8.0F, 9.0F}, {2, 1}), positions({1}, {2}), {1})), (Floats{0, 1, 8, 3, 4, 9}));
}

namespace {

// The gradient of the values that `write` puts into `a`, whose elements count 1, 10, 100, ... in the result.
Floats gradient_of_values(const std::function<mx::array(const mx::array&)>& write, const mx::array& v) {
  const auto loss = [&](const mx::array& x) {
    const mx::array out = write(x);
    const mx::array powers =
        mx::power(mx::array(10.0F), mx::astype(mx::arange(static_cast<double>(out.size())), mx::Dtype::float32));
    return mx::sum(mx::multiply(mx::reshape(out, {-1}), powers));
  };
  return values(mx::grad(mx::ArrayFunction(loss))(v));
}

}  // namespace

// The last of several values for one place is the one that stays: the others have no influence.
TEST(ArrayIndex, GradientsOfValuesForOnePlace) {
  const mx::array a = numbers({3}), three({1.0F, 2.0F, 3.0F});
  const auto same = positions({3}, {1, -2, 1});
  const auto set = [&](const mx::array& v) { return mx::index_update(a, {same}, v); };
  EXPECT_EQ(values(set(three)), (Floats{0, 3, 2}));
  EXPECT_EQ(gradient_of_values(set, three), (Floats{0, 0, 10}));
  EXPECT_EQ(gradient_of_values([&](const mx::array& v) { return mx::index_update(a, {same}, v); }, mx::array(2.0F)),
            (Floats{10}));
  EXPECT_EQ(gradient_of_values([&](const mx::array& v) { return mx::put_along_axis(a, same, v, 0); }, three), (Floats{0, 0, 10}));
  const auto some = positions({3}, {2, 0, 2});
  EXPECT_EQ(gradient_of_values([&](const mx::array& v) { return mx::index_update(a, {some}, v); }, three), (Floats{0, 1, 100}));
  // Rows, and pairs of positions.
  const mx::array rows = numbers({2, 2}), six = numbers({3, 2});
  const auto first = positions({3}, {0, 1, 0}), second = positions({3}, {1, 0, 1});
  EXPECT_EQ(gradient_of_values([&](const mx::array& v) { return mx::index_update(rows, {first}, v); }, six),
            (Floats{0, 0, 100, 1000, 1, 10}));
  EXPECT_EQ(gradient_of_values(
                [&](const mx::array& v) {
                  return mx::index_update(rows, {mx::Slice{}, first}, v);
                },
                numbers({2, 3})),
            (Floats{0, 10, 1, 0, 1000, 100}));
  EXPECT_EQ(gradient_of_values(
                [&](const mx::array& v) {
                  return mx::index_update(rows, {first, second}, v);
                },
                three),
            (Floats{0, 100, 10}));
  // Blocks that overlap in part.
  EXPECT_EQ(gradient_of_values(
                [&](const mx::array& v) {
                  return mx::scatter(a, {positions({2}, {0, 1})}, v, {0});
                },
                numbers({2, 2})),
            (Floats{1, 0, 10, 100}));
}

// Each value's factor is the product of all others in its place, one of which may be 0.
TEST(ArrayIndex, GradientsOfFactorsForOnePlace) {
  const mx::array a({1.0F, 2.0F, 3.0F});
  const auto at = [&](std::initializer_list<std::int64_t> places, const mx::array& v) {
    const auto i = positions({static_cast<std::int64_t>(places.size())}, places);
    return gradient_of_values([&](const mx::array& x) { return mx::index_update(a, {i}, x, mx::Update::multiply); }, v);
  };
  EXPECT_EQ(at({0, 1, 1}, mx::array({5.0F, 3.0F, 4.0F})), (Floats{1, 80, 60}));
  EXPECT_EQ(at({0, 1, 1}, mx::array({0.0F, 0.0F, 4.0F})), (Floats{1, 80, 0}));
  EXPECT_EQ(at({1, 1, 1}, mx::array({0.0F, 0.0F, 4.0F})), (Floats{0, 0, 0}));
}
