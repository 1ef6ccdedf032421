#include "base/system/cpu/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/system/amx.h"
#include "base/system/cpu_bf16.h"
#include "base/system/cpu_features.h"

namespace sdx {
namespace {

CpuChoice everything() {
  CpuChoice c;
  CpuBits& has = c.has;
  has.sse4 = has.avx2 = has.avx512 = has.avx512_vnni = has.avx512_bf16 = has.avx_vnni = has.amx_int8 = has.amx_bf16 = true;
  has.saves_ymm = has.saves_zmm = has.saves_tiles = true;
  return c;
}

// The reason of each that is not used.
std::map<std::string, std::string> unused(const CpuChoice& choice) {
  std::map<std::string, std::string> out;
  for (const CpuInstructions& i : explain_cpu(choice)) {
    EXPECT_EQ(i.used, i.reason.empty()) << i.name;
    if (!i.used) out[i.name] = i.reason;
  }
  return out;
}

using Reasons = std::map<std::string, std::string>;

TEST(CpuReport, AgreesWithWhatKernelsAsk) {
  const Isa isa = cpu_isa();
  const auto used = [all = explain_cpu(this_choice())](const std::string& name) {
    const auto at = std::find_if(all.begin(), all.end(), [&](const CpuInstructions& i) { return i.name == name; });
    return at != all.end() && at->used;
  };
  if (isa != Isa::scalar) {
    EXPECT_TRUE(used(std::string(name(isa))));
  }
  for (const Isa other : {Isa::sse4, Isa::avx2, Isa::avx512}) {
    EXPECT_EQ(used(std::string(name(other))), isa != Isa::neon && other <= isa && in_this_build(other)) << name(other);
  }
  EXPECT_EQ(used(isa == Isa::neon ? "dotprod" : "vnni"), use_vnni(isa));
  EXPECT_EQ(used("i8mm"), use_i8mm());
  EXPECT_EQ(used("bf16"), use_bf16(isa));
  EXPECT_EQ(used("amx int8"), use_amx());
  EXPECT_EQ(used("amx bf16"), use_amx_bf16());
}

TEST(CpuReport, VariablesAreNamed) {
  CpuChoice c = everything();
  EXPECT_EQ(unused(c), Reasons{});
  c.amx = "int8";
  EXPECT_EQ(unused(c), (Reasons{{"amx bf16", "SDX_CPU_AMX=int8"}}));
  c.amx = "0";
  EXPECT_EQ(unused(c), (Reasons{{"amx int8", "SDX_CPU_AMX=0"}, {"amx bf16", "SDX_CPU_AMX=0"}}));
  c.vnni = c.bf16 = "0";
  EXPECT_EQ(
      unused(c),
      (Reasons{
          {"vnni", "SDX_CPU_VNNI=0"}, {"bf16", "SDX_CPU_BF16=0"}, {"amx int8", "SDX_CPU_AMX=0"}, {"amx bf16", "SDX_CPU_AMX=0"}}));
}

TEST(CpuReport, ALesserSetTakesItsExtensionsAlong) {
  CpuChoice c = everything();
  c.isa = "avx2";
  EXPECT_EQ(unused(c), (Reasons{{"avx512", "SDX_CPU_ISA=avx2"},
                                {"bf16", "needs avx512"},
                                {"amx int8", "needs avx512"},
                                {"amx bf16", "needs amx int8"}}));
  c.has.avx_vnni = false;
  EXPECT_EQ(unused(c)["vnni"], "needs avx512 on this processor");
  c.isa = "scalar";
  EXPECT_EQ(unused(c)["sse4"], "SDX_CPU_ISA=scalar");
  EXPECT_EQ(unused(c)["avx2"], "SDX_CPU_ISA=scalar");
  EXPECT_EQ(unused(c)["vnni"], "needs avx512");
  c.has.avx_vnni = true;
  EXPECT_EQ(unused(c)["vnni"], "needs avx2");
}

TEST(CpuReport, BuildAndSystemAreBlamedForWhatTheProcessorHas) {
  CpuChoice c = everything();
  c.has.saves_tiles = false;
  EXPECT_EQ(unused(c)["amx int8"], "the operating system does not enable its registers");
  c.tiles_granted = false;
  c.has.saves_tiles = true;
  EXPECT_EQ(unused(c)["amx int8"], "the operating system refuses the tiles to this process");
  c.built_avx512 = false;
  EXPECT_EQ(unused(c)["avx512"], "this build has no code for it");
  EXPECT_EQ(unused(c)["amx int8"], "needs avx512");
  c.has.saves_ymm = c.has.saves_zmm = false;
  EXPECT_EQ(unused(c)["avx2"], "the operating system does not enable its registers");
  EXPECT_EQ(unused(c)["vnni"], "needs avx2");
}

TEST(CpuReport, ABuildForOneSetNeedsNoOthers) {
  CpuChoice c = everything();
  c.built_sse4 = c.built_avx2 = false;
  EXPECT_EQ(unused(c), (Reasons{{"sse4", "this build has no code for it"}, {"avx2", "this build has no code for it"}}));
  c.isa = "avx2";  // refused elsewhere
  EXPECT_EQ(unused(c).size(), 2U);
}

TEST(CpuReport, ProcessorsWithout) {
  CpuChoice c;
  for (const CpuInstructions& i : explain_cpu(c)) EXPECT_EQ(i.reason, "the processor lacks it") << i.name;
  c.isa = "avx2";  // refused elsewhere
  for (const CpuInstructions& i : explain_cpu(c)) EXPECT_EQ(i.reason, "the processor lacks it") << i.name;
  c = {};
  c.has.neon = true;
  const std::string lacks = "the processor lacks it";
  EXPECT_EQ(unused(c), (Reasons{{"dotprod", lacks}, {"i8mm", lacks}, {"bf16", lacks}}));
  c.has.neon_dots = c.has.neon_i8mm = c.has.neon_bf16 = true;
  EXPECT_EQ(unused(c), Reasons{});
  c.bf16 = c.i8mm = "0";
  EXPECT_EQ(unused(c), (Reasons{{"i8mm", "SDX_CPU_I8MM=0"}, {"bf16", "SDX_CPU_BF16=0"}}));
  c.i8mm.clear();
  c.vnni = "0";
  EXPECT_EQ(unused(c)["dotprod"], "SDX_CPU_VNNI=0");
  EXPECT_EQ(unused(c)["i8mm"], "needs dotprod");
}

}  // namespace
}  // namespace sdx
