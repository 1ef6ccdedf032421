#include "plan/program.h"

#include <gtest/gtest.h>

#include "ops/infer.h"
#include "providers/table.h"
#include "support/graph_text.h"

namespace sdx::session {
namespace {

// A graph that does not say what its sequence holds: what it is given decides.
TEST(Program, SequencesOfOtherElementsGetAPlanOfTheirOwn) {
  Graph graph = testing::parse_model(R"(
    input s: sequence(float32)
    constant zero: int64[] 0
    constant two: int64[1] 2
    x = SequenceAt(s, zero)
    y = Reshape(x, two)
    output y
  )")
                    .graph;
  ValueInfo& input = graph.value(graph.inputs()[0]);
  input.declared = input.type = Type::sequence({});
  ops::infer_in_place(graph, {});
  const Provider* cpu[] = {find_provider("cpu")};
  const plan::Program program(std::move(graph), cpu, 4);
  const auto run = [&](const Tensor& t) {
    plan::RunEnv env;
    return program.run({Value(Sequence{t.dtype(), {t}})}, env).at(0).tensor();
  };
  EXPECT_EQ(run(Tensor::of<float>({1, 2}, {0, 1.5F})).values<float>()[1], 1.5F);
  EXPECT_EQ(run(Tensor::of<std::int64_t>({1, 2}, {0, 4})).values<std::int64_t>()[1], 4);
  EXPECT_EQ(run(Tensor::of<float>({1, 2}, {0, 2.5F})).values<float>()[1], 2.5F);
}

}  // namespace
}  // namespace sdx::session
