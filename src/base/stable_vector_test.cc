#include "base/stable_vector.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace sdx {
namespace {

StableVector<std::string> counted(std::size_t n) {
  StableVector<std::string> v;
  for (std::size_t i = 0; i < n; ++i) v.push_back("number " + std::to_string(i) + ", longer than what a string holds inside");
  return v;
}

TEST(StableVector, ElementsInOrderOverPieces) {
  for (const std::size_t n : {0U, 1U, 7U, 8U, 9U, 23U, 24U, 25U, 56U, 1000U}) {
    const StableVector<std::string> v = counted(n);
    EXPECT_EQ(v.size(), n);
    EXPECT_EQ(v.empty(), n == 0);
    std::size_t i = 0;
    for (const std::string& s : v) {
      EXPECT_EQ(s, "number " + std::to_string(i) + ", longer than what a string holds inside");
      EXPECT_EQ(&s, &v[i]);
      EXPECT_EQ(&s, &v.at(i));
      ++i;
    }
    EXPECT_EQ(i, n);
    EXPECT_THROW(v.at(n), std::out_of_range);
    EXPECT_THROW(v.at(0xFFFFFFFF), std::out_of_range);
    if (n > 0) {
      EXPECT_EQ(&v.front(), &v[0]);
      EXPECT_EQ(&v.back(), &v[n - 1]);
    }
  }
}

TEST(StableVector, GrowingAndMovingKeepAddresses) {
  StableVector<std::string> v = counted(5);
  const std::string* third = &v[2];
  for (int i = 0; i < 5000; ++i) v.push_back(v[2]);
  EXPECT_EQ(third, &v[2]);
  StableVector<std::string> moved = std::move(v);
  EXPECT_EQ(third, &moved[2]);
  EXPECT_EQ(moved.size(), 5005U);
}

TEST(StableVector, GrowsWhileSomebodyWalksIt) {
  for (const std::size_t n : {1U, 7U, 8U, 9U, 24U, 30U}) {
    StableVector<std::string> v = counted(n);
    std::size_t seen = 0;
    for (const std::string& s : v) {
      v.push_back(s);
      v.push_back(s);
      ++seen;
    }
    EXPECT_EQ(seen, n);
    EXPECT_EQ(v.size(), 3 * n);
  }
}

TEST(StableVector, CopiesStandAlone) {
  StableVector<std::string> v = counted(10);
  StableVector<std::string> copy = v;
  copy[9] = "changed";
  const std::string* held = &copy[9];
  for (int i = 0; i < 100; ++i) copy.push_back("more");
  EXPECT_EQ(held, &copy[9]);
  EXPECT_EQ(v.size(), 10U);
  EXPECT_EQ(v[9], counted(10)[9]);
  v = copy;
  EXPECT_EQ(v.size(), 110U);
  EXPECT_EQ(v[9], "changed");
}

}  // namespace
}  // namespace sdx
