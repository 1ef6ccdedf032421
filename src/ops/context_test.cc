#include "ops/context.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

namespace sdx::ops {
namespace {

TEST(NodeMemo, MakesOnceAndAnewForAnotherType) {
  NodeMemo memo;
  int made = 0;
  const auto number = [&] { return ++made; };
  EXPECT_EQ(*memo.get<int>(number), 1);
  EXPECT_EQ(*memo.get<int>(number), 1);
  EXPECT_EQ(*memo.get<std::string>([] { return std::string("a"); }), "a");
  EXPECT_EQ(*memo.get<int>(number), 2);
}

TEST(NodeMemo, WhatFailedIsTriedAgain) {
  NodeMemo memo;
  EXPECT_THROW(memo.get<int>([]() -> int { throw Error(ErrorCode::invalid_model, "no"); }), Error);
  EXPECT_EQ(*memo.get<int>([] { return 7; }), 7);
}

TEST(NodeMemo, ThreadsShareOne) {
  NodeMemo memo;
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { EXPECT_EQ(*memo.get<int>([&] { return ++made; }), 1); });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(made, 1);
}

}  // namespace
}  // namespace sdx::ops
