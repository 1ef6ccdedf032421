#include "ops/quant/ggml.h"

#include <gtest/gtest.h>

#include "support/ggml_blocks.h"
#include "support/single_op.h"

namespace sdx::ops {
namespace {

struct Rows {
  Tensor bytes;
  std::vector<double> values;
};

Rows rows_of(const GgmlFormat& f, std::int64_t rows, std::int64_t k) {
  test::GgmlBlocks blocks(3);
  Rows r{Tensor(DataType::uint8, {rows, f.row_bytes(k)}), {}};
  auto* to = static_cast<char*>(r.bytes.mutable_data());
  for (std::int64_t i = 0; i < rows * (k / f.block); ++i, to += f.bytes) {
    const test::GgmlBlock b = blocks.make(f);
    std::memcpy(to, b.bytes.data(), b.bytes.size());
    r.values.insert(r.values.end(), b.values.begin(), b.values.end());
  }
  return r;
}

TEST(GgmlOps, ProductsAndRowsOfATable) {
  for (const GgmlType type : test::kGgmlTypes) {
    const GgmlFormat& f = *find_ggml(static_cast<std::uint32_t>(type));
    const std::int64_t k = f.block == 1 ? 5 : f.block;
    const Rows w = rows_of(f, 3, k);
    Tensor a(DataType::float32, {2, 1, k});
    for (std::int64_t i = 0; i < 2 * k; ++i)
      a.mutable_values<float>()[static_cast<std::size_t>(i)] = static_cast<float>(i % 7) - 3.0F;
    const Tensor bias = Tensor::of<float>({3}, {1, 2, 3});
    const auto op = [&](const char* name) { return SingleOp(name, 1, "sdx").with("type", std::string(f.name)).with("K", k); };
    const Tensor y = op("GgmlMatMul").checked({a, w.bytes, bias})[0];
    ASSERT_EQ(y.shape(), (Shape{2, 1, 3}));
    for (std::int64_t i = 0; i < 2; ++i) {
      for (std::int64_t j = 0; j < 3; ++j) {
        double sum = static_cast<double>(j + 1);
        for (std::int64_t t = 0; t < k; ++t) {
          sum += static_cast<double>(a.values<float>()[static_cast<std::size_t>(i * k + t)]) *
                 w.values[static_cast<std::size_t>(j * k + t)];
        }
        EXPECT_NEAR(static_cast<double>(y.values<float>()[static_cast<std::size_t>(i * 3 + j)]), sum, 1e-4 * (std::abs(sum) + 10))
            << f.name;
      }
    }
    const Tensor g = op("GgmlGather").checked({w.bytes, Tensor::of<std::int64_t>({1, 2}, {2, -3})})[0];
    ASSERT_EQ(g.shape(), (Shape{1, 2, k}));
    for (std::int64_t t = 0; t < 2 * k; ++t) {
      const double expected = w.values[static_cast<std::size_t>(t < k ? 2 * k + t : t - k)];
      EXPECT_NEAR(static_cast<double>(g.values<float>()[static_cast<std::size_t>(t)]), expected, 1e-4) << f.name;
    }
  }
}

TEST(GgmlOps, RefusesWhatDoesNotFit) {
  const Rows w = rows_of(*find_ggml("q4_0"), 2, 32);
  const Tensor a(DataType::float32, {1, 32});
  EXPECT_THROW(SingleOp("GgmlMatMul", 1, "sdx").with("type", std::string("iq9")).with("K", std::int64_t{32}).run({a, w.bytes}),
               Error);
  EXPECT_THROW(SingleOp("GgmlMatMul", 1, "sdx").with("type", std::string("q4_0")).with("K", std::int64_t{33}).run({a, w.bytes}),
               Error);
  EXPECT_THROW(SingleOp("GgmlMatMul", 1, "sdx").with("type", std::string("q4_0")).with("K", std::int64_t{64}).run({a, w.bytes}),
               Error);
  EXPECT_THROW(SingleOp("GgmlMatMul", 1, "sdx").with("type", std::string("q4_1")).with("K", std::int64_t{32}).run({a, w.bytes}),
               Error);
  EXPECT_THROW(SingleOp("GgmlGather", 1, "sdx")
                   .with("type", std::string("q4_0"))
                   .with("K", std::int64_t{32})
                   .run({w.bytes, Tensor::of<std::int64_t>({1}, {2})}),
               Error);
}

}  // namespace
}  // namespace sdx::ops
