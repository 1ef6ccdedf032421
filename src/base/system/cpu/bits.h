#pragma once
// What a processor has by its own account, and which of its registers the operating system keeps for processes.

#include <string>

#include "base/tools_api.h"

namespace sdx {

struct CpuBits {
  // x86-64, as kernels need them together: see bits.cc.
  bool sse4 = false;
  bool avx2 = false;
  bool avx512 = false;
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  bool avx_vnni = false;
  bool amx_int8 = false;
  bool amx_bf16 = false;
  // AArch64.
  bool neon = false;
  bool neon_dots = false;  // FEAT_DotProd
  bool neon_i8mm = false;
  bool neon_bf16 = false;
  // Registers that are saved when threads change. Instructions that use others fault (Intel SDM, volume 1, chapter 13).
  bool saves_ymm = false;
  bool saves_zmm = false;
  bool saves_tiles = false;
};

// Of this machine, read once.
const CpuBits& cpu_bits() noexcept;

// "AMD EPYC 9354P 32-Core Processor", by the processor's own account; empty where it has none.
std::string cpu_brand();

// Asks for the registers of AMX (base/system/amx.h). Linux saves tiles only for processes that ask (arch_prctl(2),
// ARCH_REQ_XCOMP_PERM). It refuses while a thread's alternate signal stack has no room for them. Not to be called on processors
// without tiles.
bool system_grants_tiles();

}  // namespace sdx
