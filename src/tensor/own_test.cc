#include "tensor/own.h"

#include <gtest/gtest.h>

namespace sdx {
namespace {

using Floats = std::vector<float>;

const Tensor& item(const Value& sequence, std::size_t i) { return sequence.sequence().items.at(i).tensor(); }

TEST(Own, ViewsWithinSequencesAndMapsAreCopied) {
  Floats memory{1, 2};
  const Tensor view = Tensor::view(memory.data(), DataType::float32, {2});
  const Tensor own = Tensor::of<float>({2}, {3, 4});
  const Map map{Tensor::of<std::int64_t>({2}, {0, 1}), view};
  const Value copy = owned(Sequence{DataType::float32, {view, own}});
  const Value maps = owned(Sequence{DataType::undefined, {Value(map)}});
  EXPECT_FALSE(owns_memory(Value(view)));
  EXPECT_FALSE(owns_memory(Value(map)));
  EXPECT_TRUE(owns_memory(Value(own)));
  EXPECT_TRUE(owns_memory(copy));
  EXPECT_TRUE(owns_memory(maps));
  memory.assign({7, 7});
  EXPECT_EQ(item(copy, 0).values<float>()[1], 2);
  EXPECT_EQ(item(copy, 1).data(), own.data());
  EXPECT_EQ(copy.sequence().element_type, DataType::float32);
  EXPECT_EQ(maps.sequence().items[0].map().values.values<float>()[1], 2);
  EXPECT_EQ(maps.sequence().items[0].map().keys.data(), map.keys.data());
}

TEST(Own, WhatHasAnOwnerStaysAsItIs) {
  const Value sequence(Sequence{DataType::float32, {Tensor::of<float>({1}, {3})}});
  EXPECT_EQ(&owned(sequence).sequence(), &sequence.sequence());
  EXPECT_TRUE(owned(Value()).empty());
  EXPECT_FALSE(owned(Value(Tensor())).tensor().defined());
}

TEST(Own, ResultsShareNothingWithInputsOrEachOther) {
  const Value given(Sequence{DataType::float32, {Tensor::of<float>({1}, {3})}});
  const Tensor both = Tensor::of<float>({1}, {5});
  std::vector<Value> results{given, Value(Sequence{DataType::float32, {both}}), Value(both)};
  results.push_back(results[1]);
  unshare(results, {given});
  EXPECT_NE(item(results[0], 0).data(), item(given, 0).data());
  EXPECT_EQ(item(results[0], 0).values<float>()[0], 3);
  EXPECT_NE(item(results[1], 0).data(), both.data());
  EXPECT_NE(item(results[1], 0).data(), item(results[3], 0).data());
  EXPECT_NE(results[2].tensor().data(), both.data());
  EXPECT_EQ(item(results[3], 0).values<float>()[0], 5);
}

TEST(Own, ResultsOfTheirOwnAreNotCopied) {
  std::vector<Value> results{Value(Sequence{DataType::float32, {Tensor::of<float>({1}, {3})}}),
                             Value(Tensor::of<float>({1}, {4}))};
  const void* in_sequence = item(results[0], 0).data();
  const void* alone = results[1].tensor().data();
  unshare(results, {});
  EXPECT_EQ(item(results[0], 0).data(), in_sequence);
  EXPECT_EQ(results[1].tensor().data(), alone);
}

// One map in two sequences.
TEST(Own, ContainersWithinContainersCount) {
  const Map map{Tensor::of<std::int64_t>({1}, {0}), Tensor::of<float>({1}, {3})};
  std::vector<Value> results;
  {
    const Value shared{Map{map}};
    results = {Value(Sequence{DataType::undefined, {shared}}), Value(Sequence{DataType::undefined, {shared}})};
  }
  unshare(results, {});
  EXPECT_NE(results[0].sequence().items[0].map().values.data(), results[1].sequence().items[0].map().values.data());
}

}  // namespace
}  // namespace sdx
