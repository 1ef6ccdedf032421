#include "plan/expected_shapes.h"

#include <gtest/gtest.h>

namespace sdx::plan {
namespace {

Type floats(SymShape shape) { return Type::tensor(DataType::float32, std::move(shape)); }

// A node that reads [n, 4] and [2*n, ?], and a value of unknown rank, and gives [n, 2*n].
class ExpectedShapesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Dim n = Dim::symbol("n");
    const std::vector<ValueId> first{graph_.add_input("first", floats({Dim(1), Dim(2), Dim(3)}))};
    const std::vector<ValueId> in{graph_.add_input("a", floats({n, Dim(4)})), kNoValue,
                                  graph_.add_input("b", floats({n * 2, Dim::unknown()})),
                                  graph_.add_input("c", Type::tensor(DataType::float32))};
    const std::vector<ValueId> out{graph_.add_input("y", floats({n, n * 2}))};
    expected_.add(graph_, first, {});
    expected_.add(graph_, in, out);
  }
  bool hold(const Type& a, const Type& b, const Type& y) const {
    const Type c = floats({Dim(9)});
    const Type* const in[] = {&a, nullptr, &b, &c};
    const Type* const out[] = {&y};
    return expected_.hold(1, in, out);
  }

  Graph graph_;
  ExpectedShapes expected_;
};

TEST_F(ExpectedShapesTest, HoldForOneSizeOfEachSymbol) {
  EXPECT_TRUE(hold(floats({3, 4}), floats({6, 1}), floats({3, 6})));
  EXPECT_TRUE(hold(floats({0, 4}), floats({0, 7}), floats({0, 0})));
}

TEST_F(ExpectedShapesTest, DoNotHoldForOtherExtentsAndRanks) {
  EXPECT_FALSE(hold(floats({3, 5}), floats({6, 1}), floats({3, 6})));
  EXPECT_FALSE(hold(floats({3, 4}), floats({6, 1}), floats({1, 6})));
  EXPECT_FALSE(hold(floats({3, 4}), floats({6, 1}), floats({3, 7})));
  EXPECT_FALSE(hold(floats({3, 4}), floats({6}), floats({3, 6})));
  EXPECT_FALSE(hold(floats({3, 4, 1}), floats({6, 1}), floats({3, 6})));
}

TEST_F(ExpectedShapesTest, DoNotCompareWhatIsNotFixedYet) {
  EXPECT_TRUE(hold(Type{}, floats({6, 1}), floats({3, 6})));
  EXPECT_TRUE(hold(floats({3, Dim::unknown()}), Type::tensor(DataType::float32), floats({3, 6})));
  EXPECT_TRUE(hold(Type::sequence(floats({5})), floats({6, 1}), floats({3, 6})));
}

}  // namespace
}  // namespace sdx::plan
