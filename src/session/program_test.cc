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

std::unique_ptr<plan::Program> program_of(const char* text) {
  Graph graph = testing::parse_model(text).graph;
  ops::infer_in_place(graph, {});
  const Provider* cpu[] = {find_provider("cpu")};
  return std::make_unique<plan::Program>(std::move(graph), cpu, 4);
}

Value sequence_of(std::size_t items) {
  return Sequence{DataType::float32, std::vector<Value>(items, Value(Tensor::of<float>({1}, {1})))};
}

std::vector<Value> run_with(const plan::Program& program, std::vector<Value> inputs) {
  plan::RunEnv env;
  return program.run(std::move(inputs), env);
}

// The places of the sequence before and after: the same if it was changed, different if it was copied.
struct Travel {
  const void *from, *to;
  std::size_t items;
};

Travel travel(const plan::Program& program, std::vector<Value> others) {
  std::vector<Value> inputs;
  inputs.push_back(sequence_of(3));
  const void* const from = &inputs[0].sequence();
  for (Value& v : others) inputs.push_back(std::move(v));
  const std::vector<Value> results = run_with(program, std::move(inputs));
  return {from, &results.at(0).sequence(), results[0].sequence().items.size()};
}

const Tensor kTurns = Tensor::scalar<std::int64_t>(100);

TEST(Program, SequencesThatNobodyElseHoldsAreChangedInPlace) {
  const auto program = program_of(R"(
    input s: sequence(float32)
    input t: float32[1]
    constant zero: int64[] 0
    a = SequenceInsert(s, t)
    b = SequenceInsert(a, t, zero)
    same = Identity(b)
    c = SequenceInsert(same, t)
    d = SequenceErase(c, zero)
    output d
  )");
  const Travel t = travel(*program, {Tensor::of<float>({1}, {2})});
  EXPECT_EQ(t.from, t.to);
  EXPECT_EQ(t.items, 5);
}

constexpr const char* kLoop = R"(
  input s: sequence(float32)
  input m: int64[]
  input x: float32[1]
  r = Loop(m, _, s)
    body {
      input i: int64[]
      input go: bool[]
      input state: sequence(float32)
      on = Identity(go)
      kept = Identity(state)
      next = If(go)
        then_branch {
          longer = SequenceInsert(kept, x)
          output longer
        }
        else_branch {
          output kept
        }
      output on
      output next
    }
  output r
)";

TEST(Program, ALoopAndItsBranchesAppendInPlace) {
  const Travel t = travel(*program_of(kLoop), {kTurns, Tensor::of<float>({1}, {2})});
  EXPECT_EQ(t.from, t.to);
  EXPECT_EQ(t.items, 103);
}

TEST(Program, SequencesThatOthersHoldStayAsTheyAre) {
  const auto loop = program_of(kLoop);
  const Value held = sequence_of(3);
  const std::vector<Value> results = run_with(*loop, {held, kTurns, Tensor::of<float>({1}, {2})});
  EXPECT_EQ(held.sequence().items.size(), 3);
  EXPECT_EQ(results.at(0).sequence().items.size(), 103);

  const auto reads_later = program_of(R"(
    input s: sequence(float32)
    input t: float32[1]
    a = SequenceInsert(s, t)
    b = SequenceErase(s)
    n = SequenceLength(s)
    output a
    output b
    output n
  )");
  std::vector<Value> inputs;
  inputs.push_back(sequence_of(3));
  inputs.emplace_back(Tensor::of<float>({1}, {2}));
  const std::vector<Value> read = run_with(*reads_later, std::move(inputs));
  EXPECT_EQ(read.at(0).sequence().items.size(), 4);
  EXPECT_EQ(read.at(1).sequence().items.size(), 2);
  EXPECT_EQ(read.at(2).tensor().values<std::int64_t>()[0], 3);
}

TEST(Program, OneSequenceAsTwoStatesAndInTheBody) {
  const auto program = program_of(R"(
    input s: sequence(float32)
    input m: int64[]
    input x: float32[1]
    p, q, lengths = Loop(m, _, s, s)
      body {
        input i: int64[]
        input go: bool[]
        input one: sequence(float32)
        input other: sequence(float32)
        on = Identity(go)
        longer = SequenceInsert(one, x)
        shorter = SequenceErase(other)
        n = SequenceLength(s)
        output on
        output longer
        output shorter
        output n
      }
    output p
    output q
    output lengths
  )");
  std::vector<Value> inputs;
  inputs.push_back(sequence_of(3));
  inputs.emplace_back(Tensor::scalar<std::int64_t>(2));
  inputs.emplace_back(Tensor::of<float>({1}, {2}));
  const std::vector<Value> results = run_with(*program, std::move(inputs));
  EXPECT_EQ(results.at(0).sequence().items.size(), 5);
  EXPECT_EQ(results.at(1).sequence().items.size(), 1);
  EXPECT_EQ(results.at(2).tensor().values<std::int64_t>()[1], 3);
}

}  // namespace
}  // namespace sdx::session
