#include "base/system/cpu_features.h"

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/system/amx.h"
#include "base/system/cpu/bits.h"
#include "base/system/cpu_bf16.h"

namespace sdx {
namespace {

CpuFeatures detect() {
  const CpuBits& has = cpu_bits();
  CpuFeatures f;
  f.sse4 = has.sse4;
  f.avx2 = f.sse4 && has.avx2 && has.saves_ymm;
  f.avx512 = f.avx2 && has.avx512 && has.saves_zmm;
  f.avx512_vnni = f.avx512 && has.avx512_vnni;
  f.avx512_bf16 = f.avx512 && has.avx512_bf16;
  f.avx_vnni = f.avx2 && has.avx_vnni;
  f.neon = has.neon;
  f.neon_dots = has.neon_dots;
  f.neon_i8mm = has.neon_i8mm;
  f.neon_bf16 = has.neon_bf16;
  return f;
}

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
  if (supported_isas().empty()) {
    fail(ErrorCode::not_implemented,
         "this build computes with the instruction set of the machine that it was built on alone (CMake's "
         "SDX_ISA=native), which this processor ({}) lacks: build it here, or without SDX_ISA",
         processor_name());
  }
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
#ifdef SDX_ISA_ALONE
    case Isa::scalar: return false;
#endif
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
  return cpu_brand();
}

void force_cpu_isa(Isa isa) { g_isa.store(static_cast<int>(isa), std::memory_order_relaxed); }

}  // namespace sdx
