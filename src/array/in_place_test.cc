// Parts of arrays that are replaced where the array lies; long traces of several threads.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include <sdx/array.hpp>

namespace {

namespace mx = sdx::array;

constexpr std::int64_t kRows = 1 << 10, kColumns = 1 << 8;  // 1 MiB of floats

// Whose memory belongs to nobody else.
mx::array made(float value) {
  mx::array a = mx::add(mx::full({kRows, kColumns}, mx::array(value)), mx::array(0.0F));
  a.eval();
  return a;
}

class ArrayInPlace : public ::testing::Test {
 protected:
  void SetUp() override {
    if (mx::get_backend() != "cpu") GTEST_SKIP() << "other backends have memory of their own";
  }
};

using Ints = std::vector<std::int64_t>;

std::vector<mx::Index> row(std::int64_t i) { return {i}; }

TEST_F(ArrayInPlace, RegularParts) {
  mx::array a = made(1);
  const void* place = a.tensor().data();
  for (int i = 0; i < 4; ++i) {
    a = mx::index_update(a, row(i), mx::array(static_cast<float>(i)));
    a.eval();
    EXPECT_EQ(a.tensor().data(), place);
  }
  a = mx::slice_update(a, mx::reshape(mx::arange(4), {2, 2}), {10, 1}, {20, 5}, {5, 2}, mx::Update::add);
  a.eval();
  EXPECT_EQ(a.tensor().data(), place);
  a = mx::slice_update(a, mx::full({1, 3}, mx::array(8.0F)), mx::array({20}, {1}), {0});
  a.eval();
  EXPECT_EQ(a.tensor().data(), place);
  const auto at = [&](std::int64_t r, std::int64_t c) { return a.data<float>()[static_cast<std::size_t>(r * kColumns + c)]; };
  EXPECT_EQ(at(0, 5), 0);
  EXPECT_EQ(at(3, 255), 3);
  EXPECT_EQ(at(4, 0), 1);
  EXPECT_EQ(at(15, 3), 4);
  EXPECT_EQ(at(20, 2), 8);
  EXPECT_EQ(at(1023, 255), 1);
}

TEST_F(ArrayInPlace, Positions) {
  mx::array a = made(1);
  const void* place = a.tensor().data();
  a = mx::index_update(a, {mx::array({3, 5, 3}, {3})}, mx::array(1.0F), mx::Update::add);
  a.eval();
  EXPECT_EQ(a.tensor().data(), place);
  EXPECT_EQ(a.data<float>()[3 * kColumns], 3);
  EXPECT_EQ(a.data<float>()[5 * kColumns + 7], 2);
  a = mx::put_along_axis(a, mx::zeros({kRows, 1}, sdx::DataType::int32), mx::array(7.0F), 1);
  a.eval();
  EXPECT_EQ(a.tensor().data(), place);
  EXPECT_EQ(a.data<float>()[3 * kColumns], 7);
  EXPECT_EQ(a.data<float>()[3 * kColumns + 1], 3);
}

TEST_F(ArrayInPlace, SeveralInOneTrace) {
  mx::array a = made(1);
  const void* place = a.tensor().data();
  for (int i = 0; i < 10; ++i) a = mx::index_update(a, row(i), mx::array(2.0F), mx::Update::add);
  a = mx::add(a, mx::array(1.0F));
  EXPECT_EQ(a.data<float>()[9 * kColumns], 4);
  EXPECT_EQ(a.data<float>()[10 * kColumns], 2);
  EXPECT_EQ(a.tensor().data(), place);
}

TEST_F(ArrayInPlace, WhatIsReadAfterwardsIsCopied) {
  mx::array a = made(1);
  const mx::array before = a;
  a = mx::index_update(a, row(0), mx::array(5.0F));
  EXPECT_EQ(a.data<float>()[0], 5);
  EXPECT_EQ(before.data<float>()[0], 1);
  // Read by another operation of the same trace.
  mx::array b = made(1);
  mx::array changed = mx::index_update(b, row(0), mx::array(5.0F)), sum = mx::sum(b);
  b = mx::array(0.0F);
  mx::eval(std::vector<mx::array>{changed, sum});
  EXPECT_EQ(sum.item<float>(), kRows * kColumns);
  EXPECT_EQ(changed.data<float>()[1], 5);
  // Rows that come from the array itself, in another order.
  mx::array c = mx::add(mx::reshape(mx::arange(double{kRows * kColumns}), {kRows, kColumns}), mx::array(0.0F));
  c.eval();
  c = mx::index_update(c, {mx::Slice{1, std::nullopt, std::nullopt}}, mx::index(c, {mx::Slice{0, kRows - 1, std::nullopt}}));
  for (const std::int64_t i : {std::int64_t{1}, std::int64_t{2}, kRows - 1}) {
    EXPECT_EQ(c.data<float>()[static_cast<std::size_t>(i * kColumns)], static_cast<float>((i - 1) * kColumns));
  }
  // All of it, seen in another shape.
  mx::array d = mx::add(mx::reshape(mx::arange(double{kRows * kColumns}), {kRows, kColumns}), mx::array(0.0F));
  d.eval();
  d = mx::slice_update(d, mx::reshape(mx::reshape(d, {kColumns, kRows}), {kRows, kColumns}), {0, 0}, {kRows, kColumns}, {},
                       mx::Update::add);
  EXPECT_EQ(d.data<float>()[77], 154);
}

// Each thread finds parts that the other one has computed, or computes.
TEST(ArrayThreads, LongTracesOfSeveralThreads) {
  constexpr int kLength = 10'000;
  std::vector<mx::array> links{mx::array({1.0F, 2.0F})};
  for (int i = 0; i < kLength; ++i) links.push_back(mx::add(links.back(), mx::array(1.0F)));
  const mx::array whole = links.back(), most = links[kLength - 100];
  links.clear();
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      mx::array own = mx::array(static_cast<float>(t));
      for (int i = 0; i < kLength; ++i) own = mx::add(own, t % 2 == 0 ? mx::array(1.0F) : mx::array(2.0F));
      const mx::array shared = t < 2 ? whole : most;
      right += shared.data<float>()[1] == static_cast<float>(t < 2 ? kLength + 2 : kLength - 98) ? 1 : 0;
      right += own.item<float>() == static_cast<float>(t + (t % 2 == 0 ? 1 : 2) * kLength) ? 1 : 0;
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 8);
}

}  // namespace
