#pragma once
// Which instructions of the processor the kernels use, and why not others.

#include <string>
#include <vector>

#include "base/system/cpu/bits.h"
#include "base/tools_api.h"

namespace sdx {

struct CpuInstructions {
  std::string name;  // "avx2"
  bool used = false;
  std::string reason;  // why not: "SDX_CPU_VNNI=0"; empty if used
};

// All that the choice depends on.
struct CpuChoice {
  CpuBits has;
  // Whether this build has kernels for the set.
  bool built_sse4 = true;
  bool built_avx2 = true;
  bool built_avx512 = true;
  bool tiles_granted = true;               // by the operating system, to this process
  std::string isa, vnni, i8mm, bf16, amx;  // values of SDX_CPU_…; empty: not set
};

// Of this process.
SDX_TOOLS_API CpuChoice this_choice();

// Every set and extension that kernels exist for on processors of this kind, in rising order. A value of SDX_CPU_ISA that is
// no set of this machine and build, which cpu_isa() refuses, counts as unset.
SDX_TOOLS_API std::vector<CpuInstructions> explain_cpu(const CpuChoice& choice);

}  // namespace sdx
