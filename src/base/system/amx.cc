#include "base/system/amx.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/system/cpu_features.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace sdx {
namespace {

#if defined(__x86_64__) && defined(__linux__)

// Bits of CPUID.(EAX=7, ECX=0):EDX.
constexpr int kBf16 = 22, kTile = 24, kInt8 = 25;

bool cpu_lists(int bit) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> bit & 1U) != 0;
}

bool has_tiles() {
  if (!cpu_lists(kTile) || !cpu_lists(kInt8)) return false;
  std::uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & 0x60000U) == 0x60000U;  // XCR0: tile configuration and tile data
}

// Linux saves tiles only for processes that ask (arch_prctl(2), ARCH_REQ_XCOMP_PERM). It refuses while a thread's alternate
// signal stack has no room for them.
bool system_grants_tiles() {
  constexpr long kRequest = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

bool is_set_to(std::string_view value) {
  const char* text = std::getenv("SDX_CPU_AMX");
  return text != nullptr && text == value;
}

bool has_permission() { return !is_set_to("0") && cpu_features().avx512_vnni && has_tiles() && system_grants_tiles(); }
bool may_use_bf16() { return !is_set_to("int8") && cpu_lists(kBf16); }

#else

bool has_permission() { return false; }
bool may_use_bf16() { return false; }

#endif

std::atomic<bool> g_allowed{true};

}  // namespace

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
