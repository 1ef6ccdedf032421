#include "kernels/cpu/ggml/ggml_bytes_neon.h"

#if defined(__aarch64__) && defined(__GNUC__)

#include <arm_neon.h>

#include <cstring>

#include "kernels/cpu/simd/attributes.h"

#define SDX_BYTES_INLINE __attribute__((always_inline)) inline

HWY_PUSH_ATTRIBUTES(SDX_NEON_DOTS)
namespace sdx::cpu {
namespace {

// All codes are below 128: signed bytes.
struct Ops {
  using Int = int32x4_t;
  using Codes = int8x16_t;
  using Float = float32x4_t;
  // 16 sums, and as many registers for the rest.
  static constexpr int kLanes = 4, kVectors = 4, kRows = 4;
  static constexpr bool kStarts = true;
  static SDX_BYTES_INLINE Int zero() { return vdupq_n_s32(0); }
  static SDX_BYTES_INLINE Codes load(const void* p) { return vld1q_s8(static_cast<const std::int8_t*>(p)); }
  static SDX_BYTES_INLINE Int broadcast(const void* p) {
    std::int32_t v;
    std::memcpy(&v, p, 4);
    return vdupq_n_s32(v);
  }
  static SDX_BYTES_INLINE Codes broadcast_codes(const void* p) { return vreinterpretq_s8_s32(broadcast(p)); }
  static SDX_BYTES_INLINE Int dot(Int sum, Codes codes, Codes x) { return vdotq_s32(sum, codes, x); }
  static SDX_BYTES_INLINE Float to_float(Int v) { return vcvtq_f32_s32(v); }
  static SDX_BYTES_INLINE Float set(float v) { return vdupq_n_f32(v); }
  static SDX_BYTES_INLINE Float mul(Float a, Float b) { return vmulq_f32(a, b); }
  static SDX_BYTES_INLINE Float mul_add(Float a, Float b, Float c) { return vfmaq_f32(c, a, b); }
  static SDX_BYTES_INLINE Float load_float(const float* p) { return vld1q_f32(p); }
  static SDX_BYTES_INLINE void store(Float v, float* p) { vst1q_f32(p, v); }
};

#include "kernels/cpu/ggml/ggml_bytes-inl.h"

}  // namespace

void set_byte_neon(ByteKernels& t) {
  t.tile = byte_tile<Ops>;
  t.columns = Ops::kVectors * Ops::kLanes;
  t.rows = Ops::kRows;
}

}  // namespace sdx::cpu
HWY_POP_ATTRIBUTES

#else

namespace sdx::cpu {

void set_byte_neon(ByteKernels&) {}

}  // namespace sdx::cpu

#endif
