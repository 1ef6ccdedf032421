#include "base/system/cpu/bits.h"

#include <algorithm>
#include <cstdint>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace sdx {
namespace {

#if defined(__x86_64__)

struct Leaf {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Leaf cpuid(unsigned leaf, unsigned sub = 0) {
  Leaf r;
  if (__get_cpuid_count(leaf, sub, &r.a, &r.b, &r.c, &r.d) == 0) return {};
  return r;
}

bool bit(unsigned value, int index) { return ((value >> index) & 1U) != 0; }

// XCR0: the register files that the operating system saves.
std::uint64_t xcr0() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

CpuBits look() {
  CpuBits has;
  const Leaf l1 = cpuid(1);
  const Leaf l7 = cpuid(7);
  const Leaf l7_1 = l7.a >= 1 ? cpuid(7, 1) : Leaf{};
  const Leaf e1 = cpuid(0x80000001U);
  // SSSE3, SSE4.1, SSE4.2, POPCNT, PCLMULQDQ and AES: the features of Highway's SSE4 target.
  has.sse4 = bit(l1.c, 9) && bit(l1.c, 19) && bit(l1.c, 20) && bit(l1.c, 23) && bit(l1.c, 1) && bit(l1.c, 25);
  // AVX, FMA, F16C, AVX2, BMI1, BMI2, LZCNT.
  has.avx2 = bit(l1.c, 28) && bit(l1.c, 12) && bit(l1.c, 29) && bit(l7.b, 5) && bit(l7.b, 3) && bit(l7.b, 8) && bit(e1.c, 5);
  // F, DQ, CD, BW, VL: newer releases of Highway compile for CD, too.
  has.avx512 = bit(l7.b, 16) && bit(l7.b, 17) && bit(l7.b, 28) && bit(l7.b, 30) && bit(l7.b, 31);
  has.avx512_vnni = bit(l7.c, 11);
  has.avx512_bf16 = bit(l7_1.a, 5);
  has.avx_vnni = bit(l7_1.a, 4);
  has.amx_int8 = bit(l7.d, 24) && bit(l7.d, 25);  // with AMX-TILE
  has.amx_bf16 = has.amx_int8 && bit(l7.d, 22);
  const bool os_saves = bit(l1.c, 27);
  const std::uint64_t saved = os_saves ? xcr0() : 0;
  has.saves_ymm = (saved & 0x6) == 0x6;
  has.saves_zmm = (saved & 0xE6) == 0xE6;
  has.saves_tiles = (saved & 0x60000) == 0x60000;  // configuration and data
  return has;
}

std::string brand() {
  std::string text;
  for (unsigned leaf = 0x80000002U; leaf <= 0x80000004U; ++leaf) {
    const Leaf part = cpuid(leaf);
    for (const unsigned letters : {part.a, part.b, part.c, part.d}) {
      for (int i = 0; i < 4; ++i) text += static_cast<char>(letters >> (8 * i) & 0xFF);
    }
  }
  text.resize(std::min(text.find('\0'), text.size()));
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

#else

std::string brand() { return ""; }

CpuBits look() {
  CpuBits has;
#if defined(__aarch64__)
  has.neon = true;  // part of the base architecture
#if defined(__linux__)
  // HWCAP_ASIMDDP, HWCAP2_I8MM and HWCAP2_BF16, which older headers lack.
  constexpr unsigned long kDots = 1UL << 20, kI8mm = 1UL << 13, kBf16 = 1UL << 14;
  has.neon_dots = (getauxval(AT_HWCAP) & kDots) != 0;
  has.neon_i8mm = (getauxval(AT_HWCAP2) & kI8mm) != 0;
  has.neon_bf16 = (getauxval(AT_HWCAP2) & kBf16) != 0;
#endif
#endif
  return has;
}

#endif

}  // namespace

const CpuBits& cpu_bits() noexcept {
  static const CpuBits bits = look();
  return bits;
}

std::string cpu_brand() { return brand(); }

}  // namespace sdx
