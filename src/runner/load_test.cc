#include "runner/load.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "runner/shapes.h"

namespace sdx {
namespace {

TEST(Load, RunsAsOftenAsAsked) {
  std::atomic<int> runs{0};
  EXPECT_EQ(generate_load({}, 7, 0, 0, [&] { ++runs; }).samples.size(), 7U);
  EXPECT_EQ(runs, 7);
  const Load several = generate_load({4, 0, Arrival::poisson}, 50, 0, 0, [&] { ++runs; });
  EXPECT_EQ(several.samples.size(), 50U);
  EXPECT_EQ(runs, 57);
  for (std::size_t i = 1; i < several.samples.size(); ++i)
    EXPECT_LE(several.samples[i - 1].start_ns, several.samples[i].start_ns);
}

TEST(Load, RunsAtLeastOnceInAnyDuration) {
  EXPECT_GE(generate_load({}, 0, 1, 0, [] {}).samples.size(), 1U);
}

TEST(Load, CountsLatencyFromTheIntendedStart) {
  // Runs of 5 ms asked for every millisecond: the last of 10 is to start after 9 ms and ends after 50 ms or later.
  const auto slow = [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
  const Load load = generate_load({1, 1000, Arrival::uniform}, 10, 0, 0, slow);
  ASSERT_EQ(load.samples.size(), 10U);
  EXPECT_EQ(load.samples[9].start_ns - load.samples[0].start_ns, 9'000'000);
  EXPECT_GE(load.samples[9].end_ns - load.samples[9].start_ns, 40'000'000);
}

TEST(Load, PassesErrorsOn) {
  const auto broken = [] { throw std::runtime_error("no"); };
  EXPECT_THROW(generate_load({2, 0, Arrival::poisson}, 10, 0, 0, broken), std::runtime_error);
}

ValueSpec spec(std::string name, DataType dtype, Shape shape, std::vector<std::string> symbols) {
  ValueSpec s;
  s.name = std::move(name);
  s.dtype = dtype;
  s.has_shape = true;
  s.shape = std::move(shape);
  s.symbols = std::move(symbols);
  return s;
}

TEST(Shapes, OpenExtentsGetWhatIsUsual) {
  EXPECT_EQ(concrete_shape(spec("image", DataType::float32, {-1, 3, -1, -1}, {"N", "", "", ""}), {}), (Shape{1, 3, 224, 224}));
  EXPECT_EQ(concrete_shape(spec("image", DataType::uint8, {-1, -1, -1, 3}, {"", "h", "w", ""}), {}), (Shape{1, 224, 224, 3}));
  EXPECT_EQ(concrete_shape(spec("ids", DataType::int64, {-1, -1}, {"batch", "sequence"}), {}), (Shape{1, 16}));
  EXPECT_EQ(concrete_shape(spec("ids", DataType::int64, {-1, -1}, {"", ""}), {}), (Shape{1, 16}));
  EXPECT_EQ(concrete_shape(spec("mask", DataType::int64, {-1, -1}, {"b", "past + new"}), {{"b", 2}, {"past", 3}, {"new", 4}}),
            (Shape{2, 7}));
  std::vector<ChosenExtent> chosen;
  concrete_shape(spec("x", DataType::float32, {-1, -1}, {"batch", "time"}), {}, &chosen);
  EXPECT_EQ(describe(chosen), "time = 16");
}

TEST(Shapes, BatchAxis) {
  const ValueSpec open = spec("a", DataType::float32, {-1, 4}, {"batch", ""});
  const ValueSpec fixed = spec("b", DataType::float32, {1, 4}, {"", ""});
  EXPECT_EQ(find_batch_axis({fixed, open}).inputs, (std::vector<std::string>{"a"}));
  EXPECT_EQ(find_batch_axis({fixed, open}).symbol, "batch");
  EXPECT_EQ(find_batch_axis({fixed}).fixed, 1);
  EXPECT_TRUE(find_batch_axis({}).inputs.empty());
}

TEST(Shapes, RowsRepeat) {
  const Tensor t = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  const Tensor r = repeat_rows(t, 3);
  EXPECT_EQ(r.shape(), (Shape{3, 2}));
  EXPECT_EQ(r.values<float>()[4], 1);
  EXPECT_EQ(repeat_rows(t, 1).size(), 2);
  EXPECT_THROW(repeat_rows(Tensor::scalar<float>(1), 2), Error);
}

}  // namespace
}  // namespace sdx
