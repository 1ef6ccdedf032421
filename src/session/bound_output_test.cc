// RunOptions::bound: results in the caller's memory.

#include <gtest/gtest.h>

#include <cstring>

#include "support/session.h"

namespace sdx {
namespace {

using testing::elements;
using testing::error_of;
using testing::expect_parts;
using testing::floats;

constexpr const char* kModel = R"(
  opset 17
  opset com.microsoft 1
  input x: float32[n,2]
  y = Add(x, x)
  shape = Constant() {value=int64[1](-1)}
  flat = Reshape(x, shape)
  z = Mul(y, x)
  output y: float32[n,2]
  output flat: float32[m]
  output z: float32[n,2]
)";

TEST(BoundOutput, IsWrittenWhereTheCallerSays) {
  const Session session = testing::open(kModel);
  Tensor y(DataType::float32, {2, 2}), flat(DataType::float32, {4});
  RunOptions options;
  options.bound = {{"y", y}, {"flat", flat}};
  const NamedValues out = session.run({{"x", floats({2, 2}, {1, 2, 3, 4})}}, options);
  EXPECT_EQ(out.tensor("y").data(), y.data());
  EXPECT_EQ(out.tensor("flat").data(), flat.data());
  EXPECT_EQ(elements(y), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(elements(flat), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(elements(out.tensor("z")), (std::vector<float>{2, 8, 18, 32}));
  // Memory without an owner as well, and also where another output alone is asked for.
  std::vector<float> memory(4, 0.0F);
  options.bound = {{"y", Tensor::view_mutable(memory.data(), DataType::float32, {2, 2})}};
  options.outputs = {"z"};
  EXPECT_EQ(session.run({{"x", floats({2, 2}, {1, 1, 1, 5})}}, options).size(), 1U);
  EXPECT_EQ(memory, (std::vector<float>{2, 2, 2, 10}));
}

TEST(BoundOutput, WhatDoesNotFitIsRefused) {
  const Session session = testing::open(kModel);
  const auto run = [&](const std::string& name, const Tensor& t) {
    RunOptions options;
    options.bound = {{name, t}};
    session.run({{"x", floats({2, 2}, {1, 2, 3, 4})}}, options);
  };
  const Tensor fits(DataType::float32, {2, 2});
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { run("why", fits); }), {"no output 'why'"});
  expect_parts(error_of(ErrorCode::invalid_argument,
                        [&] {
                          run("y", Tensor(DataType::float32, {2, 3}));
                        }),
               {"'y'", "float32[2,2]", "float32[2,3]"});
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { run("flat", Tensor(DataType::float64, {4})); }),
               {"'flat'", "float64"});
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { run("y", Tensor()); }), {"writable"});
  expect_parts(error_of(ErrorCode::invalid_argument,
                        [&] {
                          run("y", Tensor::view(fits.data(), DataType::float32, {2, 2}));
                        }),
               {"read-only"});
}

// Two tokens, then one more, in a cache with room for four: in place and with a cache that is copied.
constexpr const char* kAttention = R"(
  opset 17
  opset com.microsoft 1
  input q: float32[1,s,8]
  input k: float32[1,s,4]
  input v: float32[1,s,4]
  input past_k: float32[1,1,p,4]
  input past_v: float32[1,1,p,4]
  input lengths: int32[1]
  input mask: int64[1,t]
  one = Constant() {value=int64[1](1)}
  zero = Constant() {value=int64(1)}
  shape = Shape(mask)
  total64 = Gather(shape, zero)
  total = Cast(total64) {to=6}
  y, present_k, present_v = com.microsoft.GroupQueryAttention(q, k, v, past_k, past_v, lengths, total) {num_heads=2, kv_num_heads=1}
  output y: float32[1,s,8]
  output present_k: float32[1,1,c,4]
  output present_v: float32[1,1,c,4]
)";

Tensor ramp(Shape shape, float start) {
  Tensor t(DataType::float32, std::move(shape));
  for (std::int64_t i = 0; i < t.size(); ++i)
    t.mutable_values<float>()[static_cast<std::size_t>(i)] = start + 0.1F * static_cast<float>(i % 7);
  return t;
}

TEST(BoundOutput, ACacheGrowsInPlace) {
  const Session session = testing::open(kAttention);
  Tensor keys(DataType::float32, {1, 1, 4, 4}), values(DataType::float32, {1, 1, 4, 4});
  std::memset(keys.mutable_data(), 0, keys.bytes());
  std::memset(values.mutable_data(), 0, values.bytes());
  Tensor copied_keys = keys.clone(), copied_values = values.clone();
  std::int32_t done = 0;
  for (const std::int64_t length : {2, 1, 1}) {
    done += static_cast<std::int32_t>(length);
    const float at = static_cast<float>(done);
    NamedValues in{{"q", ramp({1, length, 8}, at)},
                   {"k", ramp({1, length, 4}, -at)},
                   {"v", ramp({1, length, 4}, 2 * at)},
                   {"lengths", Tensor::of<std::int32_t>({1}, {done - 1})},
                   {"mask", Tensor(DataType::int64, {1, 4})}};
    NamedValues copied = in;
    in.add("past_k", keys), in.add("past_v", values);
    copied.add("past_k", copied_keys), copied.add("past_v", copied_values);
    RunOptions options;
    options.bound = {{"present_k", keys}, {"present_v", values}};
    const NamedValues out = session.run(in, options), expected = session.run(copied);
    copied_keys = expected.tensor("present_k"), copied_values = expected.tensor("present_v");
    EXPECT_EQ(out.tensor("present_k").data(), keys.data());
    EXPECT_EQ(elements(out.tensor("y")), elements(expected.tensor("y")));
    EXPECT_EQ(elements(keys), elements(copied_keys));
    EXPECT_EQ(elements(values), elements(copied_values));
  }
}

}  // namespace
}  // namespace sdx
