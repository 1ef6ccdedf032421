#include "base/system/amx.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "base/system/cpu/bits.h"
#include "base/system/cpu_features.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace sdx {
namespace {

bool is_set_to(std::string_view value) {
  const char* text = std::getenv("SDX_CPU_AMX");
  return text != nullptr && text == value;
}

bool has_permission() {
  const CpuBits& has = cpu_bits();
  return !is_set_to("0") && cpu_features().avx512_vnni && has.amx_int8 && has.saves_tiles && system_grants_tiles();
}

bool may_use_bf16() { return !is_set_to("int8") && cpu_bits().amx_bf16; }

std::atomic<bool> g_allowed{true};

}  // namespace

bool system_grants_tiles() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long kRequest = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
#else
  return false;
#endif
}

void allow_amx(bool allowed) { g_allowed.store(allowed, std::memory_order_relaxed); }

bool use_amx() {
  if (!g_allowed.load(std::memory_order_relaxed)) return false;
  if (cpu_isa() != Isa::avx512 || !use_vnni(Isa::avx512)) return false;
  static const bool permission = has_permission();
  return permission;
}

bool use_amx_bf16() {
  static const bool bf16 = may_use_bf16();
  return bf16 && use_amx();
}

}  // namespace sdx
