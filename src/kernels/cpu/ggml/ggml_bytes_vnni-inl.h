// The operations of one width for ggml_bytes_vnni.cc, which includes this once for each; it sets SDX_TARGET, SDX_SPACE, SDX_RAW,
// SDX_OP, SDX_INTS and SDX_DOT. No header: no guard.

HWY_PUSH_ATTRIBUTES(SDX_TARGET)
namespace sdx::cpu::SDX_SPACE {
namespace {

using RawInts = SDX_RAW(i);
using RawFloats = SDX_RAW();
inline constexpr int kBytes = sizeof(RawInts);

struct Ops {
  // Not __m512i: GCC 12 spills accumulators of that type, which halves the speed.
  using Int = int __attribute__((vector_size(kBytes)));
  using Codes = Int;
  using Float = float __attribute__((vector_size(kBytes)));
  static constexpr int kLanes = kBytes / 4;
  static constexpr int kVectors = 2;
  // Sums of 8 rows take half of the 32 registers of AVX-512.
  static constexpr int kRows = kLanes == 16 ? 8 : 4;
  static constexpr bool kStarts = true;
  static SDX_BYTES_INLINE RawInts raw(Int v) { return reinterpret_cast<RawInts>(v); }
  static SDX_BYTES_INLINE Int of(RawInts v) { return reinterpret_cast<Int>(v); }
  static SDX_BYTES_INLINE Int zero() { return Int{}; }
  static SDX_BYTES_INLINE Int load(const void* p) { return of(SDX_INTS(loadu)(reinterpret_cast<const RawInts*>(p))); }
  static SDX_BYTES_INLINE Int broadcast(const void* p) {
    int v;
    std::memcpy(&v, p, 4);
    return of(SDX_OP(set1_epi32)(v));
  }
  static SDX_BYTES_INLINE Int broadcast_codes(const void* p) { return broadcast(p); }
  static SDX_BYTES_INLINE Int dot(Int sum, Int codes, Int x) { return of(SDX_DOT(raw(sum), raw(codes), raw(x))); }
  static SDX_BYTES_INLINE Float to_float(Int v) { return reinterpret_cast<Float>(SDX_OP(cvtepi32_ps)(raw(v))); }
  static SDX_BYTES_INLINE Float set(float v) { return reinterpret_cast<Float>(SDX_OP(set1_ps)(v)); }
  static SDX_BYTES_INLINE Float mul(Float a, Float b) { return a * b; }
  static SDX_BYTES_INLINE Float mul_add(Float a, Float b, Float c) {
    return reinterpret_cast<Float>(
        SDX_OP(fmadd_ps)(reinterpret_cast<RawFloats>(a), reinterpret_cast<RawFloats>(b), reinterpret_cast<RawFloats>(c)));
  }
  static SDX_BYTES_INLINE Float load_float(const float* p) { return reinterpret_cast<Float>(SDX_OP(loadu_ps)(p)); }
  static SDX_BYTES_INLINE void store(Float v, float* p) { SDX_OP(storeu_ps)(p, reinterpret_cast<RawFloats>(v)); }
};

#include "kernels/cpu/ggml/ggml_bytes-inl.h"

}  // namespace

inline void set(ByteKernels& t) {
  t.tile = byte_tile<Ops>;
  t.columns = Ops::kVectors * Ops::kLanes;
  t.rows = Ops::kRows;
  t.unsigned_bytes = true;
}

}  // namespace sdx::cpu::SDX_SPACE
HWY_POP_ATTRIBUTES

#undef SDX_TARGET
#undef SDX_SPACE
#undef SDX_OP
#undef SDX_INTS
#undef SDX_DOT
#undef SDX_RAW
