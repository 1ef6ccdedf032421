#include "kernels/cpu/ggml/ggml_bytes_simd.h"

#include <cmath>
#include <cstring>

#include "base/system/cpu_features.h"
#include "kernels/cpu/ggml/ggml_bytes_neon.h"
#include "kernels/cpu/ggml/ggml_bytes_vnni.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/ggml/ggml_bytes_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/ggml/ggml_codes-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

#if SDX_BYTE_PRODUCTS

// Larger numbers would make scales that are not finite in products; smaller ones round to 0, as they do in float16.
constexpr float kMostRounded = 0x1p100F, kLeastRounded = 1e-30F;

// Rounds a block of 32; false if a number is not finite or too large. `sum`: of each half's codes.
bool round_block(const float* x, std::int8_t* codes, float& scale, std::int32_t (&sum)[2]) {
  const DF d;
  const DI di;
  constexpr int kCount = 32 / kLanes;
  VF v[kCount];
  VI top = hn::Zero(di);
  HWY_UNROLL(8)
  for (int i = 0; i < kCount; ++i) {
    v[i] = hn::LoadU(d, x + i * kLanes);
    // As integers, magnitudes have the same order, with NaN above all numbers.
    top = hn::Max(top, hn::And(hn::BitCast(di, v[i]), hn::Set(di, 0x7FFFFFFF)));
  }
  float most;
  const std::int32_t bits = hn::GetLane(hn::MaxOfLanes(di, top));
  std::memcpy(&most, &bits, 4);
  if (!(most < kMostRounded)) return false;
  sum[0] = sum[1] = 0;
  if (most < kLeastRounded) {
    scale = 0.0F;
    std::memset(codes, 0, 32);
    return true;
  }
  scale = most / 127.0F;
  const VF inverse = hn::Set(d, 127.0F / most);
  VI sums[2] = {hn::Zero(di), hn::Zero(di)};
  HWY_UNROLL(8)
  for (int i = 0; i < kCount; ++i) {
    const VI code = hn::NearestInt(hn::Mul(v[i], inverse));
    sums[i / (kCount / 2)] = hn::Add(sums[i / (kCount / 2)], code);
    hn::StoreU(hn::DemoteTo(hn::Rebind<std::int8_t, DF>(), code), hn::Rebind<std::int8_t, DF>(), codes + i * kLanes);
  }
  sum[0] = hn::GetLane(hn::SumOfLanes(di, sums[0]));
  sum[1] = hn::GetLane(hn::SumOfLanes(di, sums[1]));
  return true;
}

bool round_row(const float* x, const ByteRows& row, std::int64_t blocks, std::int32_t factor) {
  bool ok = true;
  for (std::int64_t b = 0; b < blocks; ++b) {
    std::int32_t sum[2];
    ok = round_block(x + 32 * b, row.codes + 32 * b, row.scales[b], sum) && ok;
    if (row.group == 16) {
      for (int half = 0; half < 2; ++half) {
        if (row.sums != nullptr) row.sums[2 * b + half] = row.scales[b] * static_cast<float>(sum[half]);
        if (row.starts != nullptr) row.starts[2 * b + half] = factor * sum[half];
      }
    } else {
      if (row.sums != nullptr) row.sums[b] = row.scales[b] * static_cast<float>(sum[0] + sum[1]);
      if (row.starts != nullptr) row.starts[b] = factor * (sum[0] + sum[1]);
    }
  }
  return ok;
}

#endif  // SDX_BYTE_PRODUCTS

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

#define SDX_BYTES_INLINE HWY_INLINE

#if HWY_TARGET == HWY_AVX2
#define SDX_INTS(NAME) _mm256_##NAME##_si256
#define SDX_OP(NAME) _mm256_##NAME
using RawInts = __m256i;
using RawFloats = __m256;
#else
#define SDX_INTS(NAME) _mm512_##NAME##_si512
#define SDX_OP(NAME) _mm512_##NAME
using RawInts = __m512i;
using RawFloats = __m512;
#endif

// Products of pairs of bytes, as int16: |code| <= 128 of 8 bits times 127, twice, is below 2^15. Of fewer bits several fit:
// 16 * 15 * 127, 8 * 31 * 127 and 4 * 63 * 127 are, too.
struct PairOps {
  using Int = RawInts;
  using Float = RawFloats;
  static constexpr int kLanes = HWY_TARGET == HWY_AVX2 ? 8 : 16;
  static constexpr int kVectors = 2, kRows = 4;
  static constexpr bool kStarts = false;
  // Products of so many words may be added before they are widened.
  template <int kBits>
  static constexpr int together() {
    return kBits == 4 ? 8 : kBits == 5 ? 4 : kBits == 6 ? 2 : 1;
  }
  static HWY_INLINE Int zero() { return SDX_INTS(setzero)(); }
  static HWY_INLINE Int load(const void* p) { return SDX_INTS(loadu)(reinterpret_cast<const Int*>(p)); }
  static HWY_INLINE Int broadcast(const void* p) {
    int v;
    std::memcpy(&v, p, 4);
    return SDX_OP(set1_epi32)(v);
  }
  template <int kBits>
  static HWY_INLINE Int product(Int codes, Int x) {
    if constexpr (kBits < 8) return SDX_OP(maddubs_epi16)(codes, x);
#if HWY_TARGET == HWY_AVX2
    return SDX_OP(maddubs_epi16)(SDX_OP(abs_epi8)(codes), _mm256_sign_epi8(x, codes));
#else
    const Int turned = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(codes), _mm512_setzero_si512(), x);
    return SDX_OP(maddubs_epi16)(SDX_OP(abs_epi8)(codes), turned);
#endif
  }
  // In order: else GCC computes all products of a word before it adds them, and spills.
  static HWY_INLINE Int in_order(Int v) {
#if HWY_TARGET == HWY_AVX2
    __asm__ volatile("" : "+x"(v));
#else
    __asm__ volatile("" : "+v"(v));
#endif
    return v;
  }
  static HWY_INLINE Int add_narrow(Int a, Int b) { return in_order(SDX_OP(add_epi16)(a, b)); }
  static HWY_INLINE Int widen(Int v) { return SDX_OP(madd_epi16)(v, SDX_OP(set1_epi16)(1)); }
  static HWY_INLINE Int add(Int a, Int b) { return in_order(SDX_OP(add_epi32)(a, b)); }
  static HWY_INLINE Float to_float(Int v) { return SDX_OP(cvtepi32_ps)(v); }
  static HWY_INLINE Float set(float v) { return SDX_OP(set1_ps)(v); }
  static HWY_INLINE Float mul(Float a, Float b) { return SDX_OP(mul_ps)(a, b); }
  static HWY_INLINE Float mul_add(Float a, Float b, Float c) { return SDX_OP(fmadd_ps)(a, b, c); }
  static HWY_INLINE Float load_float(const float* p) { return SDX_OP(loadu_ps)(p); }
  static HWY_INLINE void store(Float v, float* p) { SDX_OP(storeu_ps)(p, v); }
};

#include "kernels/cpu/ggml/ggml_bytes-inl.h"

#undef SDX_OP
#undef SDX_INTS
#undef SDX_BYTES_INLINE

#endif  // AVX2 and later

}  // namespace

const ByteKernels* byte_table() {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  static const ByteKernels table = [] {
    ByteKernels t{unpack_codes, round_row, byte_tile<PairOps>, 2 * PairOps::kLanes, PairOps::kRows, false};
    constexpr bool kWide = HWY_TARGET != HWY_AVX2;
    if (use_vnni(kWide ? Isa::avx512 : Isa::avx2)) kWide ? set_byte_vnni_512(t) : set_byte_vnni_256(t);
    return t;
  }();
  return &table;
#elif HWY_TARGET == HWY_NEON
  static const ByteKernels table = [] {
    ByteKernels t{unpack_codes, round_row, nullptr, 0, 0, false};
    set_byte_neon(t);
    return t;
  }();
  return use_vnni(Isa::neon) && table.tile != nullptr ? &table : nullptr;
#else
  return nullptr;
#endif
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const ByteKernels*, byte_kernels, byte_table)

namespace sdx::cpu {

const ByteCodes* byte_codes(GgmlType type) {
  static constexpr ByteCodes k4{4, 8, 32, false}, k4Min{4, 0, 32, true}, k5{5, 16, 32, false}, k5Min{5, 0, 32, true},
      k6{6, 32, 16, false}, k8{8, 0, 32, false}, kFloat4{5, 12, 32, false};
  switch (type) {
    case GgmlType::q4_0: return &k4;
    case GgmlType::q4_1:
    case GgmlType::q4_k: return &k4Min;
    case GgmlType::q5_0: return &k5;
    case GgmlType::q5_1:
    case GgmlType::q5_k: return &k5Min;
    case GgmlType::q6_k: return &k6;
    case GgmlType::q8_0:
    case GgmlType::iq4_nl:
    case GgmlType::iq4_xs: return &k8;
    case GgmlType::mxfp4: return &kFloat4;
    default: return nullptr;
  }
}

}  // namespace sdx::cpu
#endif
