#include "base/system/cpu_features.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "support/errors.h"

namespace sdx {
namespace {

TEST(CpuFeatures, EverySupportedSetIsFoundByName) {
  ASSERT_FALSE(supported_isas().empty());
  for (const Isa isa : supported_isas()) EXPECT_EQ(isa_from_name(name(isa)), isa);
}

TEST(CpuFeatures, UnknownNamesAreRefusedWithTheChoices) {
  for (const char* text : {"", "AVX2", "sse9", "avx2 "}) {
    testing::expect_error(ErrorCode::invalid_argument, [&] { isa_from_name(text); },
                          {std::string(name(supported_isas().back()))});
  }
}

TEST(CpuFeatures, SetsOfAnotherArchitectureAreRefused) {
  EXPECT_THROW(isa_from_name(cpu_features().neon ? "avx2" : "neon"), Error);
}

TEST(CpuFeatures, WiderSetsImplyNarrowerOnes) {
  const CpuFeatures& f = cpu_features();
  EXPECT_TRUE(!f.avx512 || f.avx2);
  EXPECT_TRUE(!f.avx2 || f.sse4);
  EXPECT_TRUE(!f.avx512_vnni || f.avx512);
  EXPECT_FALSE(f.neon && f.sse4);
}

TEST(CpuFeatures, ExtensionsNeedTheirSet) {
  EXPECT_FALSE(use_i8mm() && !use_vnni(Isa::neon));
  EXPECT_FALSE(use_vnni(Isa::neon) && !cpu_features().neon);
  EXPECT_FALSE(use_vnni(Isa::avx512) && !cpu_features().avx512);
  EXPECT_TRUE(cpu_sets().starts_with(name(cpu_isa())));
  EXPECT_EQ(cpu_sets().find("i8mm") != std::string::npos, use_i8mm());
  const bool had = use_i8mm();
  allow_i8mm(false);
  EXPECT_FALSE(use_i8mm());
  allow_i8mm(true);
  EXPECT_EQ(use_i8mm(), had);
}

TEST(CpuFeatures, ForcingASetHolds) {
  const Isa before = cpu_isa();
  for (const Isa isa : supported_isas()) {
    force_cpu_isa(isa);
    EXPECT_EQ(cpu_isa(), isa);
  }
  force_cpu_isa(before);
}

}  // namespace
}  // namespace sdx
