#include <gtest/gtest.h>

#include "base/error.h"
#include "inputs/random_input.h"
#include "inputs/shapes.h"
#include "tensor/element.h"

namespace sdx::inputs {
namespace {

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

TEST(RandomInput, IsRepeatable) {
  const Tensor a = random_tensor(DataType::float32, {100}, 1);
  const Tensor b = random_tensor(DataType::float32, {100}, 1);
  const Tensor c = random_tensor(DataType::float32, {100}, 2);
  EXPECT_EQ(to_floats(a), to_floats(b));
  EXPECT_NE(to_floats(a), to_floats(c));
  for (const float v : to_floats(a)) EXPECT_TRUE(v >= 0 && v <= 1);
  for (const std::int64_t v : to_ints(random_tensor(DataType::int64, {100}, 3))) EXPECT_TRUE(v >= 0 && v < 10);
  EXPECT_EQ(random_tensor(DataType::string, {2}, 0).values<std::string>()[0].size(), 1U);
}

TEST(RandomInput, FillsOpenExtents) {
  ValueSpec spec;
  spec.has_shape = true;
  spec.shape = {-1, 3, -1};
  spec.symbols = {"batch", "", ""};
  EXPECT_EQ(concrete_shape(spec, {{"batch", 4}}), (Shape{4, 3, 1}));
  spec.has_shape = false;
  EXPECT_EQ(concrete_shape(spec, {}), (Shape{1}));
}

}  // namespace
}  // namespace sdx::inputs
