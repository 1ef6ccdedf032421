#include "base/system/cpu_features.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/system/amx.h"
#include "base/system/cpu_bf16.h"

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

// XCR0 tells which register files the operating system saves; without it the instructions fault (Intel SDM 13.3).
std::uint64_t xcr0() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

CpuFeatures detect() {
  CpuFeatures f;
  const Leaf l1 = cpuid(1);
  const Leaf l7 = cpuid(7);
  const Leaf l7_1 = l7.a >= 1 ? cpuid(7, 1) : Leaf{};
  const Leaf e1 = cpuid(0x80000001U);
  // SSSE3, SSE4.1, SSE4.2, POPCNT, PCLMULQDQ and AES: the features of Highway's SSE4 target.
  f.sse4 = bit(l1.c, 9) && bit(l1.c, 19) && bit(l1.c, 20) && bit(l1.c, 23) && bit(l1.c, 1) && bit(l1.c, 25);
  const bool os_save = bit(l1.c, 27);
  const std::uint64_t saved = os_save ? xcr0() : 0;
  const bool ymm = (saved & 0x6) == 0x6;
  const bool zmm = (saved & 0xE6) == 0xE6;
  f.avx2 = f.sse4 && ymm && bit(l1.c, 28) && bit(l1.c, 12) && bit(l1.c, 29) && bit(l7.b, 5) && bit(l7.b, 3) && bit(l7.b, 8) &&
           bit(e1.c, 5);
  // F, DQ, CD, BW, VL: newer releases of Highway compile for CD, too.
  f.avx512 = f.avx2 && zmm && bit(l7.b, 16) && bit(l7.b, 17) && bit(l7.b, 28) && bit(l7.b, 30) && bit(l7.b, 31);
  f.avx512_vnni = f.avx512 && bit(l7.c, 11);
  f.avx512_bf16 = f.avx512 && bit(l7_1.a, 5);
  f.avx_vnni = f.avx2 && bit(l7_1.a, 4);
  return f;
}

#else

CpuFeatures detect() {
  CpuFeatures f;
#if defined(__aarch64__)
  f.neon = true;  // part of the base architecture
#endif
#if defined(__aarch64__) && defined(__linux__)
  // HWCAP_ASIMDDP, HWCAP2_I8MM and HWCAP2_BF16, which older headers lack.
  constexpr unsigned long kDots = 1UL << 20, kI8mm = 1UL << 13, kBf16 = 1UL << 14;
  f.neon_dots = (getauxval(AT_HWCAP) & kDots) != 0;
  f.neon_i8mm = (getauxval(AT_HWCAP2) & kI8mm) != 0;
  f.neon_bf16 = (getauxval(AT_HWCAP2) & kBf16) != 0;
#endif
  return f;
}

#endif

constexpr Isa kAll[] = {Isa::scalar, Isa::sse4, Isa::avx2, Isa::avx512, Isa::neon};

bool supported(Isa isa) {
  if (!in_this_build(isa)) return false;
  const CpuFeatures& f = cpu_features();
  switch (isa) {
    // On AArch64 the kernels' baseline is NEON itself, so there is no scalar build of them.
    case Isa::scalar: return !f.neon;
    case Isa::sse4: return f.sse4;
    case Isa::avx2: return f.avx2;
    case Isa::avx512: return f.avx512;
    case Isa::neon: return f.neon;
  }
  return false;
}

std::string names(const std::vector<Isa>& isas) {
  std::string text;
  for (const Isa isa : isas) {
    if (!text.empty()) text += ", ";
    text += name(isa);
  }
  return text;
}

Isa choose() {
  const char* text = std::getenv("SDX_CPU_ISA");
  return text == nullptr || *text == '\0' ? supported_isas().back() : isa_from_name(text);
}

std::atomic<int> g_isa{-1};
std::atomic<bool> g_i8mm_allowed{true};

bool is_zero(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr && std::string_view(text) == "0";
}

}  // namespace

std::string_view name(Isa isa) noexcept {
  switch (isa) {
    case Isa::scalar: return "scalar";
    case Isa::sse4: return "sse4";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
    case Isa::neon: return "neon";
  }
  return "unknown";
}

Isa isa_from_name(std::string_view text) {
  const std::vector<Isa>& have = supported_isas();
  for (const Isa isa : kAll) {
    if (name(isa) != text) continue;
    for (const Isa h : have) {
      if (h == isa) return isa;
    }
    fail(ErrorCode::invalid_argument, "SDX_CPU_ISA={}: this machine cannot run it; it has: {}", text, names(have));
  }
  fail(ErrorCode::invalid_argument, "SDX_CPU_ISA={}: no such instruction set; this machine has: {}. Unset it for the best one",
       text, names(have));
}

// SDX_ISA of CMake says what is left out.
bool in_this_build(Isa isa) noexcept {
  switch (isa) {
#ifdef SDX_NO_SSE4
    case Isa::sse4: return false;
#endif
#ifdef SDX_NO_AVX2
    case Isa::avx2: return false;
#endif
#ifdef SDX_NO_AVX512
    case Isa::avx512: return false;
#endif
    default: return true;
  }
}

const CpuFeatures& cpu_features() noexcept {
  static const CpuFeatures features = detect();
  return features;
}

const std::vector<Isa>& supported_isas() {
  static const std::vector<Isa> isas = [] {
    std::vector<Isa> out;
    for (const Isa isa : kAll) {
      if (supported(isa)) out.push_back(isa);
    }
    return out;
  }();
  return isas;
}

Isa cpu_isa() {
  const int now = g_isa.load(std::memory_order_relaxed);
  if (now >= 0) return static_cast<Isa>(now);
  const Isa chosen = choose();
  g_isa.store(static_cast<int>(chosen), std::memory_order_relaxed);
  return chosen;
}

bool use_vnni(Isa isa) {
  static const bool off = is_zero("SDX_CPU_VNNI");
  if (off || !in_this_build(isa)) return false;
  const CpuFeatures& f = cpu_features();
  return (isa == Isa::avx512 && f.avx512_vnni) || (isa == Isa::avx2 && f.avx_vnni) || (isa == Isa::neon && f.neon_dots);
}

void allow_i8mm(bool allowed) { g_i8mm_allowed.store(allowed, std::memory_order_relaxed); }

bool use_i8mm() {
  static const bool on = cpu_features().neon_i8mm && use_vnni(Isa::neon) && !is_zero("SDX_CPU_I8MM");
  return on && g_i8mm_allowed.load(std::memory_order_relaxed);
}

std::string cpu_sets() {
  const Isa isa = cpu_isa();
  std::string sets(name(isa));
  if (use_vnni(isa)) sets += isa == Isa::neon ? ", dotprod" : ", vnni";
  if (isa == Isa::neon && use_i8mm()) sets += ", i8mm";
  if (use_bf16(isa)) sets += ", bf16";
  if (use_amx()) sets += use_amx_bf16() ? ", amx" : ", amx (bytes only)";
  return sets;
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(": ");
    if (colon != std::string::npos && (line.starts_with("model name") || line.starts_with("Model")))
      return line.substr(colon + 2);
  }
  return "";
}

void force_cpu_isa(Isa isa) { g_isa.store(static_cast<int>(isa), std::memory_order_relaxed); }

}  // namespace sdx
