#include "providers/cpu/late_packed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/system/process.h"
#include "cache/pack_store.h"
#include "support/errors.h"

namespace sdx::cpu {
namespace {

class LatePackedTest : public ::testing::Test {
 protected:
  LatePackedTest() {
    Node node;
    node.op_type = "Identity";
    node.inputs = {graph.add_input("x", Type::tensor(DataType::float32, {Dim(2)}))};
    node.outputs = {graph.add_value("y", Type::tensor(DataType::float32, {Dim(2)}))};
    id = graph.add_node(node);
  }
  LatePacked pack(float factor) {
    LowerContext c(graph, id, packs);
    return {c, {&weights}, weights.bytes(), cache::PackKey("times", factor), [this, factor](float* to) {
              if (++fills == failing) throw std::runtime_error("no");
              std::transform(weights.values<float>().begin(), weights.values<float>().end(), to,
                             [&](float v) { return v * factor; });
            }};
  }
  Graph graph;
  NodeId id;
  cache::PackStore* packs = nullptr;
  Tensor weights = Tensor::of<float>({2}, {1, 2});
  int fills = 0, failing = 0;
};

TEST_F(LatePackedTest, FillsAtTheFirstUseForAllThatShare) {
  cache::PackStore store;
  packs = &store;
  const LatePacked a = pack(2), same = pack(2), other = pack(3);
  EXPECT_EQ(fills, 0);
  EXPECT_EQ(same.data()[1], 4);
  EXPECT_EQ(a.data(), same.data());
  EXPECT_EQ(fills, 1);
  EXPECT_EQ(other.data()[0], 3);
  EXPECT_EQ(pack(2).data(), a.data());  // found filled
  EXPECT_EQ(fills, 2);
}

TEST_F(LatePackedTest, GivesItsSourceToTheFirstUse) {
  cache::PackStore store;
  packs = &store;
  const LatePacked a = pack(2), same = pack(2), other = pack(3);
  EXPECT_EQ(a.first_source().data(), weights.data());
  EXPECT_EQ(a.first_source().data(), nullptr);
  EXPECT_EQ(same.first_source().data(), nullptr);
  EXPECT_EQ(fills, 0);
  other.data();
  EXPECT_EQ(other.first_source().data(), nullptr);
}

TEST_F(LatePackedTest, MatricesArePackedByTheSecondRun) {
  cache::PackStore store;
  packs = &store;
  const Tensor w = Tensor::of<float>({256, 512}, std::vector<float>(256 * 512, 1.0F));
  LowerContext c(graph, id, packs);
  const auto is_packed = [](const LateMatrix& m) {
    GemmArgs g;
    bool called = false;
    m.multiply(g, [&] {
      called = true;
      EXPECT_NE(g.packed_b == nullptr, g.b == nullptr);
      EXPECT_EQ(g.like_packed, g.b != nullptr);
    });
    EXPECT_TRUE(called);
    return g.packed_b != nullptr;
  };
  const LateMatrix m(c, w, 256, 512, false);
  EXPECT_FALSE(is_packed(m));
  EXPECT_TRUE(is_packed(m));
  EXPECT_TRUE(is_packed(m));
  EXPECT_TRUE(is_packed(LateMatrix(c, w, 512, 256, true, 2.0F)));  // the file does not have it scaled
  const Tensor small = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_TRUE(is_packed(LateMatrix(c, small, 2, 2, false)));
}

TEST_F(LatePackedTest, TriesAgainWhatFailed) {
  failing = 1;
  const LatePacked a = pack(2);
  EXPECT_THROW(a.data(), std::runtime_error);
  EXPECT_EQ(a.data()[1], 4);
}

TEST_F(LatePackedTest, ReadsNoFileThatWasWrittenTo) {
  const std::string path = ::testing::TempDir() + "sdx-late-packed-" + std::to_string(process_id());
  const auto write = [&](float second) {
    const float values[2] = {1, second};
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(values), sizeof(values));
  };
  write(2);
  {
    const auto file = MappedFile::open(path, 0);
    weights = Tensor::view(file->bytes().data(), DataType::float32, {2}, file);
    const LatePacked early = pack(2), late = pack(3);
    EXPECT_EQ(early.data()[1], 4);
    std::filesystem::resize_file(path, 0);  // reading what was mapped would kill the process
    testing::error_of(ErrorCode::io, [&] { late.data(); });
    EXPECT_EQ(early.data()[1], 4);
    EXPECT_EQ(fills, 1);
    weights = Tensor();
  }
  std::filesystem::remove(path);
}

TEST_F(LatePackedTest, FillsAtOnceWhereTheCompilationIsRecorded) {
  cache::PackStore store(nullptr, true);
  packs = &store;
  const LatePacked a = pack(2);
  EXPECT_EQ(fills, 1);
  ASSERT_EQ(store.made().size(), 1U);
  EXPECT_EQ(static_cast<const float*>(store.made()[0].data.get())[1], 4);
  EXPECT_EQ(a.data(), store.made()[0].data.get());
  EXPECT_EQ(fills, 1);
}

}  // namespace
}  // namespace sdx::cpu
