#include "inspect/facts.h"

#include <gtest/gtest.h>

namespace sdx::inspect {
namespace {

TEST(Facts, CountsOperations) {
  Graph g;
  const ValueId x = g.add_input("x", Type::tensor(DataType::float32, {1, 3, 8, 8}));
  const ValueId w = g.add_constant("w", Tensor(DataType::float32, {16, 3, 3, 3}));
  const ValueId y = g.add_value("y", Type::tensor(DataType::float32, {1, 16, 6, 6}));
  const ValueId unknown = g.add_value("z");
  Node conv;
  conv.op_type = "Conv";
  conv.inputs = {x, w};
  conv.outputs = {y};
  EXPECT_EQ(node_flops(g, conv), 2LL * 16 * 6 * 6 * 27);
  Node attention;
  attention.op_type = "Attention";
  attention.inputs = {g.add_input("q", Type::tensor(DataType::float32, {1, 5, 8})),
                      g.add_input("k", Type::tensor(DataType::float32, {1, 2, 7, 4})),
                      g.add_input("v", Type::tensor(DataType::float32, {1, 2, 7, 4})), kNoValue,
                      g.add_input("past", Type::tensor(DataType::float32, {1, 2, 3, 4}))};
  attention.outputs = {g.add_value("attended", Type::tensor(DataType::float32, {1, 5, 8}))};
  EXPECT_EQ(node_flops(g, attention), 2 * 10 * (5 * 8 + 5 * 8));
  Node relu;
  relu.op_type = "Relu";
  relu.inputs = {y};
  relu.outputs = {y};
  EXPECT_EQ(node_flops(g, relu), 16 * 6 * 6);
  relu.op_type = "Reshape";
  EXPECT_EQ(node_flops(g, relu), 0);
  relu.op_type = "Relu";
  relu.outputs = {unknown};
  EXPECT_EQ(node_flops(g, relu), -1);
}

}  // namespace
}  // namespace sdx::inspect
