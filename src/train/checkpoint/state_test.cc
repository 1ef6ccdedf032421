#include <gtest/gtest.h>

#include <sdx/train/checkpoint.hpp>

#include "support/errors.h"
#include "tensor/element.h"

namespace sdx::train {
namespace {

CheckpointState state_of(std::initializer_list<float> weight, float bias) {
  CheckpointState s;
  s.parameters.push_back({"weight", Tensor::of<float>({static_cast<std::int64_t>(weight.size())}, weight), true});
  s.parameters.push_back({"mean", Tensor::of<float>({1}, {bias}), false});
  return s;
}

TEST(CheckpointState, BuffersHoldWhatIsTrained) {
  CheckpointState s = state_of({1, 2, 3}, 9);
  EXPECT_EQ(s.size(), 3);
  EXPECT_EQ(s.size(false), 4);
  const Tensor all = s.to_buffer(false);
  EXPECT_EQ(all.values<float>()[3], 9);
  s.from_buffer(Tensor::of<float>({3}, {4, 5, 6}));
  EXPECT_EQ(s.at("weight").value.values<float>()[2], 6);
  EXPECT_EQ(s.at("mean").value.values<float>()[0], 9);
  EXPECT_THROW(s.from_buffer(Tensor::of<float>({2}, {4, 5})), Error);
}

TEST(CheckpointState, DifferencesAndSumsUndoEachOther) {
  const CheckpointState a = state_of({1, 2, 3}, 4), b = state_of({3, 5, 7}, 5);
  const CheckpointState back = sum(a, difference(b, a));
  EXPECT_EQ(back.at("weight").value.values<float>()[2], 7);
  EXPECT_EQ(back.at("mean").value.values<float>()[0], 5);
  EXPECT_THROW(difference(a, state_of({1, 2}, 0)), Error);
}

TEST(CheckpointState, SumsKeepWhatTheBaseHas) {
  CheckpointState base = state_of({1}, 0);
  base.optimizers["group0"].moments["weight"]["momentum0"] = Tensor::of<float>({1}, {5});
  base.properties["epoch"] = std::int64_t{3};
  base.parameters.push_back({"count", Tensor::of<std::int64_t>({1}, {7}), false});
  const CheckpointState made = sum(base, base, 0.5);
  EXPECT_EQ(made.at("weight").value.values<float>()[0], 1.5F);
  EXPECT_EQ(made.at("count").value.values<std::int64_t>()[0], 7);
  EXPECT_EQ(made.properties, base.properties);
  const Tensor& moment = made.optimizers.at("group0").moments.at("weight").at("momentum0");
  EXPECT_EQ(moment.values<float>()[0], 5);
  EXPECT_NE(moment.data(), base.optimizers["group0"].moments["weight"]["momentum0"].data());
}

TEST(CheckpointState, ArithmeticTakesAllFloatingPointTypes) {
  for (const DataType type : {DataType::float64, DataType::float16, DataType::bfloat16}) {
    CheckpointState a, b;
    for (CheckpointState* s : {&a, &b}) s->parameters.push_back({"p", Tensor(type, {1}), true});
    set_element(a.parameters[0].value, 0, 3);
    set_element(b.parameters[0].value, 0, 1);
    EXPECT_EQ(element_as_double(difference(a, b).at("p").value, 0), 2);
    const CheckpointState both[] = {a, b};
    EXPECT_EQ(element_as_double(average(both).at("p").value, 0), 2);
  }
}

TEST(CheckpointState, AveragesByWeight) {
  const CheckpointState all[] = {state_of({0, 8}, 0), state_of({4, 0}, 4)};
  const double weights[] = {1, 3};
  EXPECT_EQ(average(all, weights).at("weight").value.values<float>()[0], 3);
  EXPECT_EQ(average(all).at("weight").value.values<float>()[1], 4);
  const double none[] = {0, 0};
  EXPECT_THROW(average(all, none), Error);
}

TEST(CheckpointState, WeightsOfAnyFiniteMagnitudeCount) {
  const CheckpointState all[] = {state_of({0, 8}, 0), state_of({4, 0}, 4)};
  for (const double unit : {std::numeric_limits<double>::denorm_min(), 1e-308, 1e307, 4e307}) {
    const double weights[] = {unit, 3 * unit};
    EXPECT_EQ(average(all, weights).at("weight").value.values<float>()[0], 3) << unit;
  }
  const double largest[] = {std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
  EXPECT_EQ(average(all, largest).at("weight").value.values<float>()[0], 2);
}

TEST(CheckpointState, RefusesWeightsAndFactorsThatAreNotFinite) {
  const CheckpointState all[] = {state_of({0, 8}, 0), state_of({4, 0}, 4)};
  for (const double bad : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    const double weights[] = {1, bad};
    EXPECT_THROW(average(all, weights), Error) << bad;
    EXPECT_THROW(sum(all[0], all[1], bad), Error) << bad;
  }
}

TEST(CheckpointState, WithoutAWeightNothingOfACheckpointCounts) {
  const CheckpointState all[] = {state_of({1, 8}, 0), state_of({std::numeric_limits<float>::infinity(), 0}, 4)};
  const double weights[] = {1, 0};
  EXPECT_EQ(average(all, weights).at("weight").value.values<float>()[0], 1);
}

TEST(CheckpointState, ClonesShareNothing) {
  CheckpointState a = state_of({1}, 0);
  CheckpointState b = a.clone();
  b.at("weight").value.mutable_values<float>()[0] = 7;
  EXPECT_EQ(a.at("weight").value.values<float>()[0], 1);
}

TEST(CheckpointState, MissingNamesAreErrorsWithTheNearest) {
  const CheckpointState a = state_of({1}, 0);
  testing::expect_error([&] { (void)a.at("wieght"); }, {"did you mean 'weight'"});
}

}  // namespace
}  // namespace sdx::train
