#include "kernels/cpu/simd/limits_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/limits_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {

constexpr std::int64_t kTurns = 256;

// Twelve chains: two units with a latency of up to 5 cycles need ten.
std::int64_t Fma(std::int64_t rounds) {
  const DF d;
  const VF scale = hn::Set(d, 0.999999F), more = hn::Set(d, 1e-6F);
  VF a = hn::Iota(d, 1.0F), b = hn::Add(a, scale), c = hn::Add(b, scale), e = hn::Add(c, scale), f = hn::Add(e, scale),
     g = hn::Add(f, scale), h = hn::Add(g, scale), i = hn::Add(h, scale), j = hn::Add(i, scale), k = hn::Add(j, scale),
     l = hn::Add(k, scale), m = hn::Add(l, scale);
  for (std::int64_t turn = 0; turn < rounds * kTurns; ++turn) {
    a = hn::MulAdd(a, scale, more);
    b = hn::MulAdd(b, scale, more);
    c = hn::MulAdd(c, scale, more);
    e = hn::MulAdd(e, scale, more);
    f = hn::MulAdd(f, scale, more);
    g = hn::MulAdd(g, scale, more);
    h = hn::MulAdd(h, scale, more);
    i = hn::MulAdd(i, scale, more);
    j = hn::MulAdd(j, scale, more);
    k = hn::MulAdd(k, scale, more);
    l = hn::MulAdd(l, scale, more);
    m = hn::MulAdd(m, scale, more);
  }
  const VF ab = hn::Add(a, b), ce = hn::Add(c, e), fg = hn::Add(f, g), hi = hn::Add(h, i), jk = hn::Add(j, k), lm = hn::Add(l, m);
  const VF sum = hn::Add(hn::Add(hn::Add(ab, ce), hn::Add(fg, hi)), hn::Add(jk, lm));
  [[maybe_unused]] const volatile float used = sum_lanes(d, sum);  // or the compiler removes the loop
  return rounds * kTurns * 12 * 2 * lanes_f32();
}

float ReadOnce(const float* x, std::int64_t count) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  VF s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (std::int64_t i = 0; i < count; i += 4 * lanes) {
    s0 = hn::Add(s0, hn::LoadU(d, x + i));
    s1 = hn::Add(s1, hn::LoadU(d, x + i + lanes));
    s2 = hn::Add(s2, hn::LoadU(d, x + i + 2 * lanes));
    s3 = hn::Add(s3, hn::LoadU(d, x + i + 3 * lanes));
  }
  return sum_lanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

namespace sdx::cpu {

std::int64_t fma_rounds(std::int64_t rounds) { return SDX_CPU_PICK(Fma)(rounds); }
float read_once(const float* x, std::int64_t count) { return SDX_CPU_PICK(ReadOnce)(x, count); }

}  // namespace sdx::cpu
#endif
