#pragma once
// The CPU's features, and the instruction set that the kernels use.

#include <string>
#include <string_view>
#include <vector>

#include "base/tools_api.h"

namespace sdx {

// The instruction sets that kernels are compiled for, in rising order of preference within an architecture.
// avx2 implies FMA, F16C and BMI2; avx512 implies F, VL, DQ and BW.
enum class Isa : int { scalar = 0, sse4 = 1, avx2 = 2, avx512 = 3, neon = 4 };

SDX_TOOLS_API std::string_view name(Isa isa) noexcept;

struct CpuFeatures {
  bool sse4 = false;
  bool avx2 = false;
  bool avx512 = false;
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  bool avx_vnni = false;
  bool neon = false;
  bool neon_dots = false;  // FEAT_DotProd: SDOT and UDOT
  bool neon_i8mm = false;  // FEAT_I8MM: SMMLA, UMMLA, USMMLA
  bool neon_bf16 = false;  // FEAT_BF16: BFDOT and BFMMLA
};

// The features of this CPU and operating system, read once. Unaffected by SDX_CPU_ISA.
const CpuFeatures& cpu_features() noexcept;

// Whether this build has kernels for `isa`: all of its architecture, unless CMake's SDX_ISA leaves some out.
bool in_this_build(Isa isa) noexcept;

// The sets that this build has and this machine can run, worst first; empty only for a build for another machine alone.
const std::vector<Isa>& supported_isas();

// The set of that name. Throws Error(invalid_argument) for an unknown name, and for a set this machine lacks.
Isa isa_from_name(std::string_view text);

// The set that kernels use: the best supported one, or what SDX_CPU_ISA names. Throws Error(invalid_argument) when that
// variable holds an unknown name or a set this machine lacks, Error(not_implemented) where supported_isas() is empty.
// Thread-safe. Weights packed under one set are of no use under another, so the choice is fixed before the first kernel.
SDX_TOOLS_API Isa cpu_isa();

// Whether the extension of `isa` for dot products of bytes (VNNI, Arm's DotProd) may be used: the machine has it, and
// SDX_CPU_VNNI is not "0".
SDX_TOOLS_API bool use_vnni(Isa isa);

// Whether products of bytes may use Arm's small matrices (I8MM): the machine has them, use_vnni(neon), and SDX_CPU_I8MM is not
// "0".
SDX_TOOLS_API bool use_i8mm();
// For tests: false makes use_i8mm() return false; true restores the rule above. Not while kernels run.
void allow_i8mm(bool allowed);

// cpu_isa() and the extensions that kernels use with it: "avx512, vnni, bf16, amx", "neon, dotprod, i8mm, bf16".
SDX_TOOLS_API std::string cpu_sets();

// The system's name for the processor ("AMD EPYC"), or for the board where it does not name processors; empty if it has none.
// Each call reads it anew.
SDX_TOOLS_API std::string processor_name();

// Overrides cpu_isa() in tests and benchmarks for the whole process; must be one of supported_isas(). Not while kernels run.
void force_cpu_isa(Isa isa);

}  // namespace sdx
