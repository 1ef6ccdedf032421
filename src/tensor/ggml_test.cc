#include "tensor/ggml.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/ggml_blocks.h"

namespace sdx {
namespace {

TEST(Ggml, ValuesAreThoseThatWerePacked) {
  for (const GgmlType type : test::kGgmlTypes) {
    const GgmlFormat& f = *find_ggml(static_cast<std::uint32_t>(type));
    test::GgmlBlocks blocks(7);
    for (int round = 0; round < 50; ++round) {
      const test::GgmlBlock b = blocks.make(f);
      std::vector<float> out(static_cast<std::size_t>(f.block) + 1, 123.0F);
      const std::string shifted = "x" + b.bytes;  // at an odd address
      ggml_dequantize(f, shifted.data() + 1, 1, out.data());
      for (std::size_t i = 0; i < b.values.size(); ++i) {
        // At most three roundings to float32, of numbers of this size.
        ASSERT_NEAR(static_cast<double>(out[i]), b.values[i], 3e-7 * (std::abs(b.values[i]) + 8.0)) << f.name << " " << i;
      }
      ASSERT_EQ(out.back(), 123.0F) << f.name;
    }
  }
}

TEST(Ggml, NamesAndSizes) {
  for (const GgmlType type : test::kGgmlTypes) {
    const GgmlFormat* f = find_ggml(static_cast<std::uint32_t>(type));
    ASSERT_NE(f, nullptr);
    EXPECT_EQ(find_ggml(f->name), f);
    EXPECT_EQ(f->row_bytes(f->block * 3), f->bytes * 3);
    std::string upper(ggml_type_name(static_cast<std::uint32_t>(type)));
    for (char& c : upper) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(upper, f->name);
  }
  EXPECT_EQ(find_ggml(16U), nullptr);
  EXPECT_EQ(find_ggml("iq2_xxs"), nullptr);
  EXPECT_EQ(ggml_type_name(16), "IQ2_XXS");
  EXPECT_EQ(ggml_type_name(41), "Q1_0");
  EXPECT_EQ(ggml_type_name(1000), "");
}

}  // namespace
}  // namespace sdx
