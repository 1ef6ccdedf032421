#include "session/graphs/recompute.h"

#include <gtest/gtest.h>

#include <array>

#include "ops/infer.h"
#include "passes/expand_gradients.h"
#include "passes/pass.h"
#include "support/graph_text.h"

namespace sdx::session {
namespace {

struct TrainingGraph {
  Graph graph;
  ValueId forward = 0;

  explicit TrainingGraph(const std::string& text) : graph(testing::parse_model(text).graph) {
    ops::infer_in_place(graph);
    forward = static_cast<ValueId>(graph.values().size());
    const std::array<ValueId, 1> xs{*graph.find("x")};
    graph.add_output(append_gradients(graph, *graph.find("l"), xs)[0]);
  }
  std::size_t count(const std::string& op, bool again) const {
    std::size_t n = 0;
    for (const Node& node : graph.nodes())
      n += !node.removed && node.op_type == op && node.name.starts_with(kAgain) == again ? 1U : 0U;
    return n;
  }
  std::vector<bool> named(const char* name) const {
    std::vector<bool> wanted(forward, false);
    wanted[*graph.find(name)] = true;
    return wanted;
  }
};

constexpr const char* kChain =
    "input x: float32[4,4]\na = MatMul(x, x)\nb = Softplus(a)\nc = Tanh(b)\nd = MatMul(c, c)\nl = ReduceSum(d) "
    "{keepdims=0}\noutput l\n";

TEST(Recompute, NamedValuesAndWhatTheyAreMadeOf) {
  TrainingGraph j(kChain);
  recompute(j.graph, j.forward, j.named("c"), false);
  EXPECT_EQ(j.count("Tanh", true), 1U);
  EXPECT_EQ(j.count("Softplus", true), 0U);
  j.graph.verify();
}

// b and c need a alone, which the gradient of Softplus keeps anyway.
TEST(Recompute, ByItselfWhatIsCheapAndWhoseInputsAreThere) {
  TrainingGraph j(kChain);
  recompute(j.graph, j.forward, {}, true);
  EXPECT_EQ(j.count("Tanh", true), 1U);
  EXPECT_EQ(j.count("MatMul", true), 0U);
  const ValueId c = *j.graph.find("c");
  const auto users = j.graph.uses();
  for (const NodeId user : users[c]) EXPECT_EQ(j.graph.node(user).outputs[0], *j.graph.find("d"));
}

TEST(Recompute, NeverWhatIsRandom) {
  TrainingGraph j(
      "input x: float32[4,4]\nconstant r: float32[] 0.5\nconstant on: bool[] 1\na, m = Dropout(x, r, on)\nd = MatMul(a, a)\n"
      "l = ReduceSum(d) {keepdims=0}\noutput l\n");
  const std::size_t before = j.graph.nodes().size();
  recompute(j.graph, j.forward, j.named("a"), true);
  EXPECT_EQ(j.count("Dropout", true), 0U);
  EXPECT_EQ(j.graph.nodes().size(), before);
}

TEST(Recompute, PassesDoNotShareItAgain) {
  TrainingGraph j(kChain);
  recompute(j.graph, j.forward, j.named("c"), false);
  ops::infer_in_place(j.graph);
  run_pass(j.graph, find_pass("share-common"));
  EXPECT_EQ(j.count("Tanh", true), 1U);
  EXPECT_EQ(j.count("Tanh", false), 1U);
}

}  // namespace
}  // namespace sdx::session
