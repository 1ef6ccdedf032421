#include "kernels/cpu/movement/gather.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "base/thread_pool.h"

namespace sdx::cpu {
namespace {

using List = std::vector<std::int64_t>;

// Overlapping windows of `width`, which begin `step` apart.
List windows(std::int64_t extent, std::int64_t width, std::int64_t step) {
  List list;
  for (std::int64_t first = 0; first + width <= extent; first += step) {
    for (std::int64_t i = 0; i < width; ++i) list.push_back(first + i);
  }
  return list;
}

List random_indices(std::int64_t extent, std::size_t picks) {
  std::mt19937 random(7);
  std::uniform_int_distribution<std::int64_t> any(-extent, extent - 1);
  List list(picks);
  for (std::int64_t& i : list) i = any(random);
  return list;
}

List all_of(std::int64_t extent) {
  List list(static_cast<std::size_t>(extent));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

template <class Index>
void check(std::int64_t outer, std::int64_t extent, std::int64_t run, const List& list) {
  SCOPED_TRACE(::testing::Message() << outer << " x " << extent << " x " << run << " bytes, " << list.size() << " indices of "
                                    << sizeof(Index) << " bytes");
  // Nothing is aligned.
  std::vector<unsigned char> data(static_cast<std::size_t>(outer * extent * run + 1));
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 2654435761U >> 13);
  std::vector<unsigned char> indices(list.size() * sizeof(Index) + 1);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto v = static_cast<Index>(list[i]);
    std::memcpy(indices.data() + 1 + i * sizeof(Index), &v, sizeof v);
  }
  const auto picks = static_cast<std::int64_t>(list.size());
  const GatherArgs g{.outer = outer,
                     .extent = extent,
                     .picks = picks,
                     .run = run,
                     .data = data.data() + 1,
                     .indices = indices.data() + 1,
                     .wide = sizeof(Index) == 8};
  EXPECT_EQ(index_out_of_range(g), std::nullopt);
  std::vector<unsigned char> y(static_cast<std::size_t>(outer * picks * run) + 1, 77);
  gather(g, y.data());
  EXPECT_EQ(y.back(), 77);
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < picks; ++i) {
      const std::int64_t at = list[static_cast<std::size_t>(i)];
      const unsigned char* const from = data.data() + 1 + (o * extent + (at < 0 ? at + extent : at)) * run;
      const unsigned char* const to = y.data() + (o * picks + i) * run;
      ASSERT_TRUE(std::equal(from, from + run, to)) << "slice " << i << " of " << o;
    }
  }
}

void check_all(std::int64_t outer, std::int64_t extent, const List& list) {
  for (const std::int64_t run : {1, 2, 3, 4, 8, 16, 24, 200}) {
    check<std::int64_t>(outer, extent, run, list);
    check<std::int32_t>(outer, extent, run, list);
  }
}

TEST(KernelsGather, SlicesOfAnySizeInAnyOrder) {
  ThreadPool pool(3);
  const PoolScope scope(pool);
  for (const std::int64_t outer : {1, 5, 300}) {
    check_all(outer, 41, random_indices(41, 200));
    check_all(outer, 41, windows(41, 17, 8));
    check_all(outer, 41, windows(41, 2, 1));
    check_all(outer, 41, all_of(41));
    check_all(outer, 41, all_of(40));
    check_all(outer, 41, {3});
    check_all(outer, 41, {-1});
    check_all(outer, 1, {0});
    check_all(outer, 1, {0, 0, -1});
    check_all(outer, 41, {-2, -1, 0, 1, 2});  // the end and the beginning do not follow each other
  }
}

TEST(KernelsGather, NothingToCopy) {
  check<std::int64_t>(3, 5, 0, {1, 2});
  check<std::int64_t>(3, 5, 4, {});
  check<std::int64_t>(0, 5, 4, {1});
}

TEST(KernelsGather, IndicesOutOfRangeAreFound) {
  const std::int64_t wide[] = {0, -3, 2, 3, 9};
  GatherArgs g{.extent = 3, .picks = 5, .run = 4, .indices = wide};
  EXPECT_EQ(index_out_of_range(g), 3);
  g.picks = 3;
  EXPECT_EQ(index_out_of_range(g), std::nullopt);
  const std::int32_t narrow[] = {0, -4};
  EXPECT_EQ(index_out_of_range({.extent = 3, .picks = 2, .run = 4, .indices = narrow, .wide = false}), -4);
}

}  // namespace
}  // namespace sdx::cpu
