// The operations of one width for nbits_vnni.cc, which includes this once for each; it sets SDX_TARGET, SDX_SPACE, SDX_RAW,
// SDX_OP, SDX_INTS, SDX_LOAD_BYTES (as many bytes as there are lanes) and SDX_DOT. No header: no guard.

HWY_PUSH_ATTRIBUTES(SDX_TARGET)
namespace sdx::cpu::SDX_SPACE {
namespace {

using RawInts = SDX_RAW(i);
using RawFloats = SDX_RAW();
inline constexpr int kBytes = sizeof(RawInts);

struct Ops {
  // Not __m512i: GCC 12 spills accumulators of that type, which halves the speed.
  using Int = int __attribute__((vector_size(kBytes)));
  using Float = float __attribute__((vector_size(kBytes)));
  static constexpr int kLanes = kBytes / 4;
  static constexpr int kMostSums = kLanes == 16 ? 24 : 12;
  // With sums of blocks, GCC spilled the codes, and 128 rows took half as long again. With 16 registers sums spill in any case,
  // and without sums of blocks each part takes one more product: up to a tenth of the time.
  static constexpr bool kFewSums = kLanes == 16;
  static RawInts raw(Int v) { return reinterpret_cast<RawInts>(v); }
  static Int of(RawInts v) { return reinterpret_cast<Int>(v); }
  static Int load(const void* p) { return of(SDX_INTS(loadu)(reinterpret_cast<const RawInts*>(p))); }
  static Int broadcast(const void* p) {
    int v;
    std::memcpy(&v, p, 4);
    return of(SDX_OP(set1_epi32)(v));
  }
  static Int low_nibbles(Int v) { return of(SDX_INTS(and)(raw(v), SDX_OP(set1_epi8)(15))); }
  static Int high_nibbles(Int v) { return low_nibbles(of(SDX_OP(srli_epi16)(raw(v), 4))); }
  static Int even_bytes(Int v) { return of(SDX_INTS(and)(raw(v), SDX_OP(set1_epi16)(255))); }
  static Int odd_bytes(Int v) { return of(SDX_OP(srli_epi16)(raw(v), 8)); }
  static Int zeros(const void* p) { return of(SDX_OP(cvtepu8_epi32)(SDX_LOAD_BYTES(static_cast<const __m128i*>(p)))); }
  static Int start4(Int correction, const Int* zero) {
    const RawInts pair = zero == nullptr ? SDX_OP(set1_epi16)(1) : SDX_INTS(or)(raw(*zero), SDX_OP(slli_epi32)(raw(*zero), 16));
    return of(SDX_OP(madd_epi16)(raw(correction), pair));
  }
  static Int dot4(Int sum, Int codes, Int digits) { return of(SDX_DOT(dpbusd)(raw(sum), raw(codes), raw(digits))); }
  template <int D>
  static Int end4(const Int* s, std::int64_t step) {
    if constexpr (D == 3) return s[0] + (s[step] << 7) - (s[2 * step] << 15);
    if constexpr (D == 2) return s[0] + (s[step] << 8);
    return s[0];
  }
  static Int start8(Int correction, const Int* zero) { return zero == nullptr ? correction : correction * *zero; }
  static Int dot8(Int sum, Int codes, Int digits) { return of(SDX_DOT(dpwssd)(raw(sum), raw(codes), raw(digits))); }
  static Float to_float(Int v) { return reinterpret_cast<Float>(SDX_OP(cvtepi32_ps)(raw(v))); }
  static Float set(float v) { return reinterpret_cast<Float>(SDX_OP(set1_ps)(v)); }
  static Float mul(Float a, Float b) { return a * b; }
  static Float mul_add(Float a, Float b, Float c) {
    return reinterpret_cast<Float>(
        SDX_OP(fmadd_ps)(reinterpret_cast<RawFloats>(a), reinterpret_cast<RawFloats>(b), reinterpret_cast<RawFloats>(c)));
  }
  static Float load_float(const float* p) { return reinterpret_cast<Float>(SDX_OP(loadu_ps)(p)); }
  static void store(Float v, float* p) { SDX_OP(storeu_ps)(p, reinterpret_cast<RawFloats>(v)); }
};

#include "kernels/cpu/nbits/nbits_digits-inl.h"

}  // namespace

inline NBitsPanel panel() { return nbits_panel<Ops>; }

}  // namespace sdx::cpu::SDX_SPACE
HWY_POP_ATTRIBUTES

#undef SDX_TARGET
#undef SDX_SPACE
#undef SDX_OP
#undef SDX_INTS
#undef SDX_LOAD_BYTES
#undef SDX_DOT
#undef SDX_RAW
