#include "kernels/cpu/ggml/ggml_simd.h"

#include "kernels/cpu/simd/prefetch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/ggml/ggml_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/ggml/ggml_blocks-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// Enough for the sums of two rows of weights with eight rows of x.
constexpr bool kManyRegisters = HWY_TARGET != HWY_SCALAR && (!HWY_ARCH_X86 || kLanes == 16);

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void sums_of_four(VF a, VF b, VF c, VF e, float* out) {
  const VF all[] = {a, b, c, e};
  for (int i = 0; i < 4; ++i) out[i] = hn::GetLane(all[i]);
}
#else
// In each 128 bits, {a0 + a2, b0 + b2, a1 + a3, b1 + b3}: applied twice to four vectors, in the order 0 2, 1 3, it sums each of
// them.
HWY_INLINE VF added(VF a, VF b) {
  const DF d;
  return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
}

// The sums of four vectors' lanes.
HWY_INLINE void sums_of_four(VF a, VF b, VF c, VF e, float* out) {
  const hn::FixedTag<float, 4> four;
  float lanes[kLanes];
  hn::StoreU(added(added(a, c), added(b, e)), DF(), lanes);
  auto sum = hn::LoadU(four, lanes);
  for (int i = 4; i < kLanes; i += 4) sum = hn::Add(sum, hn::LoadU(four, lanes + i));
  hn::StoreU(sum, four, out);
}
#endif

// Sums of M rows of x. A multiply-add waits four cycles for the one before it in its sum, and two start per cycle: fewer than
// eight rows have several sums each, used in turn.
template <int M>
struct RowSums {
  static constexpr int kTurns = M == 1 ? 4 : M <= 4 ? 2 : 1;
  VF s0, s1, s2, s3, s4, s5, s6, s7;
  const float* x;
  std::int64_t ldx;

  HWY_INLINE RowSums(const float* x_in, std::int64_t ldx_in)
      : s0(hn::Zero(DF())), s1(s0), s2(s0), s3(s0), s4(s0), s5(s0), s6(s0), s7(s0), x(x_in), ldx(ldx_in) {}

  // Adds to sum number `sum`, which is constant once loops are unrolled.
  HWY_INLINE void add_to(int sum, VF w, const float* p) {
    const VF v = hn::LoadU(DF(), p);
    switch (sum) {
      case 0: s0 = hn::MulAdd(w, v, s0); break;
      case 1: s1 = hn::MulAdd(w, v, s1); break;
      case 2: s2 = hn::MulAdd(w, v, s2); break;
      case 3: s3 = hn::MulAdd(w, v, s3); break;
      case 4: s4 = hn::MulAdd(w, v, s4); break;
      case 5: s5 = hn::MulAdd(w, v, s5); break;
      case 6: s6 = hn::MulAdd(w, v, s6); break;
      default: s7 = hn::MulAdd(w, v, s7); break;
    }
  }
  HWY_INLINE void add(int turn, VF w, std::int64_t at) {
    const float* p = x + at;
    const int first = turn % kTurns * M;
    add_to(first, w, p);
    if constexpr (M > 1) add_to(first + 1, w, p + ldx);
    if constexpr (M > 2) add_to(first + 2, w, p + 2 * ldx);
    if constexpr (M > 3) add_to(first + 3, w, p + 3 * ldx);
    if constexpr (M == 8) {
      add_to(4, w, p + 4 * ldx);
      add_to(5, w, p + 5 * ldx);
      add_to(6, w, p + 6 * ldx);
      add_to(7, w, p + 7 * ldx);
    }
  }
  HWY_INLINE void store(float* out) const {
    const DF d;
    if constexpr (M == 1) {
      out[0] = sum_lanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
    } else if constexpr (M == 2) {
      out[0] = sum_lanes(d, hn::Add(s0, s2));
      out[1] = sum_lanes(d, hn::Add(s1, s3));
    } else if constexpr (M == 3) {
      out[0] = sum_lanes(d, hn::Add(s0, s3));
      out[1] = sum_lanes(d, hn::Add(s1, s4));
      out[2] = sum_lanes(d, hn::Add(s2, s5));
    } else if constexpr (M == 4) {
      out[0] = sum_lanes(d, hn::Add(s0, s4));
      out[1] = sum_lanes(d, hn::Add(s1, s5));
      out[2] = sum_lanes(d, hn::Add(s2, s6));
      out[3] = sum_lanes(d, hn::Add(s3, s7));
    } else {
      sums_of_four(s0, s1, s2, s3, out);
      sums_of_four(s4, s5, s6, s7, out + 4);
    }
  }
};

// Prefetches 4 KB ahead: the stream is read once, and the hardware prefetcher stops at page boundaries.
HWY_INLINE void fetch_ahead(const Byte* at) { prefetch_after(at, 4096); }

template <class Blocks, int M>
void dots_of(const Byte* row, std::int64_t k, const float* x, std::int64_t ldx, float* out) {
  RowSums<M> sums(x, ldx);
  std::int64_t at = 0;
  // Blocks of 32 are processed in pairs, so that neighbours have separate sums.
  constexpr int kTwo = Blocks::kElements == 32 && !Blocks::kPlain && M == 1 ? 2 : 1;
  for (; at + kTwo * Blocks::kElements <= k; at += kTwo * Blocks::kElements, row += kTwo * Blocks::kBytes) {
    for (int line = 0; line < kTwo * Blocks::kBytes; line += 64) fetch_ahead(row + line);
    Blocks::each(row, [&](int turn, int offset, VF w) HWY_ATTR { sums.add(turn, w, at + offset); });
    if constexpr (kTwo == 2) {
      Blocks::each(row + Blocks::kBytes,
                   [&](int turn, int offset, VF w) HWY_ATTR { sums.add(turn + 2, w, at + Blocks::kElements + offset); });
    }
  }
  if (kTwo == 2 && at < k) Blocks::each(row, [&](int turn, int offset, VF w) HWY_ATTR { sums.add(turn, w, at + offset); });
  sums.store(out);
  if constexpr (Blocks::kPlain) {
    for (; at < k; ++at, row += Blocks::kBytes / Blocks::kElements) {
      const float w = Blocks::one(row);
      for (int i = 0; i < M; ++i) out[i] += w * x[i * ldx + at];
    }
  }
}

// A row of x times a vector of each of two rows of weights.
HWY_INLINE void add_row(VF& a, VF& b, VF w, VF u, const float* p) {
  VF v = hn::LoadU(DF(), p);
#if SDX_512_BITS
  __asm__("" : "+v"(v.raw));  // else GCC loads it once per product, and loads are the bottleneck
#endif
  a = hn::MulAdd(w, v, a);
  b = hn::MulAdd(u, v, b);
}

HWY_INLINE void add_rows(RowSums<8>& a, RowSums<8>& b, VF w, VF u, std::int64_t at) {
  const float* p = a.x + at;
  add_row(a.s0, b.s0, w, u, p);
  add_row(a.s1, b.s1, w, u, p + a.ldx);
  add_row(a.s2, b.s2, w, u, p + 2 * a.ldx);
  add_row(a.s3, b.s3, w, u, p + 3 * a.ldx);
  add_row(a.s4, b.s4, w, u, p + 4 * a.ldx);
  add_row(a.s5, b.s5, w, u, p + 5 * a.ldx);
  add_row(a.s6, b.s6, w, u, p + 6 * a.ldx);
  add_row(a.s7, b.s7, w, u, p + 7 * a.ldx);
}

// Two rows of weights at once. Each vector of x is loaded once for both: with eight rows of x, one row of weights would wait for
// loads, not for products.
template <class Blocks>
void dots_of_two(const Byte* row, std::int64_t row_bytes, std::int64_t k, const float* x, std::int64_t ldx, float* out) {
  RowSums<8> first(x, ldx), second(x, ldx);
  HWY_ALIGN float weights[Blocks::kElements];
  std::int64_t at = 0;
  for (; at + Blocks::kElements <= k; at += Blocks::kElements, row += Blocks::kBytes) {
    const Byte* other = row + row_bytes;
    for (int line = 0; line < Blocks::kBytes; line += 64) {
      fetch_ahead(row + line);
      fetch_ahead(other + line);
    }
    Blocks::each(row, [&](int, int offset, VF w) HWY_ATTR { hn::Store(w, DF(), weights + offset); });
    Blocks::each(other, [&](int, int offset, VF w)
                            HWY_ATTR { add_rows(first, second, hn::Load(DF(), weights + offset), w, at + offset); });
  }
  first.store(out);
  second.store(out + 8);
  if constexpr (Blocks::kPlain) {
    for (; at < k; ++at, row += Blocks::kBytes / Blocks::kElements) {
      const float w = Blocks::one(row), v = Blocks::one(row + row_bytes);
      for (int i = 0; i < 8; ++i) {
        out[i] += w * x[i * ldx + at];
        out[8 + i] += v * x[i * ldx + at];
      }
    }
  }
}

template <class Blocks>
void dots_rows(const Byte* row, std::int64_t k, const float* x, std::int64_t ldx, std::int64_t m, float* out) {
  switch (m) {
    case 1: return dots_of<Blocks, 1>(row, k, x, ldx, out);
    case 2: return dots_of<Blocks, 2>(row, k, x, ldx, out);
    case 3: return dots_of<Blocks, 3>(row, k, x, ldx, out);
    case 4: return dots_of<Blocks, 4>(row, k, x, ldx, out);
    default: return dots_of<Blocks, 8>(row, k, x, ldx, out);
  }
}

template <class Blocks>
void expand_row(const Byte* row, std::int64_t k, float* out) {
  std::int64_t at = 0;
  for (; at + Blocks::kElements <= k; at += Blocks::kElements, row += Blocks::kBytes) {
    Blocks::each(row, [&](int, int offset, VF w) HWY_ATTR { hn::StoreU(w, DF(), out + at + offset); });
  }
  if constexpr (Blocks::kPlain) {
    for (; at < k; ++at, row += Blocks::kBytes / Blocks::kElements) out[at] = Blocks::one(row);
  }
}

// call(tag) with the type's class of blocks.
template <class Call>
HWY_INLINE void with_blocks(GgmlType type, Call&& call) {
  switch (type) {
    case GgmlType::f32: return call(PlainF32());
    case GgmlType::f16: return call(PlainF16());
    case GgmlType::bf16: return call(PlainBf16());
    case GgmlType::q4_0: return call(BlocksQ4<false>());
    case GgmlType::q4_1: return call(BlocksQ4<true>());
    case GgmlType::q5_0: return call(BlocksQ5<false>());
    case GgmlType::q5_1: return call(BlocksQ5<true>());
    case GgmlType::q8_0: return call(BlocksQ8());
    case GgmlType::q2_k: return call(BlocksQ2K());
    case GgmlType::q3_k: return call(BlocksQ3K());
    case GgmlType::q4_k: return call(BlocksQ45K<false>());
    case GgmlType::q5_k: return call(BlocksQ45K<true>());
    case GgmlType::q6_k: return call(BlocksQ6K());
    case GgmlType::iq4_nl: return call(BlocksIQ4NL());
    case GgmlType::iq4_xs: return call(BlocksIQ4XS());
    case GgmlType::tq1_0: return call(Decoded<GgmlType::tq1_0, 256, 54>());
    case GgmlType::tq2_0: return call(BlocksTQ2());
    case GgmlType::mxfp4: return call(BlocksMXFP4());
    case GgmlType::nvfp4: return call(BlocksNVFP4());
  }
}

void dots(GgmlType type, const void* row, std::int64_t k, const float* x, std::int64_t ldx, std::int64_t m, float* out) {
  with_blocks(type, [&](auto blocks) { dots_rows<decltype(blocks)>(static_cast<const Byte*>(row), k, x, ldx, m, out); });
}

void dots_two(GgmlType type, const void* row, std::int64_t row_bytes, std::int64_t k, const float* x, std::int64_t ldx,
              float* out) {
  with_blocks(type,
              [&](auto blocks) { dots_of_two<decltype(blocks)>(static_cast<const Byte*>(row), row_bytes, k, x, ldx, out); });
}

void expand(GgmlType type, const void* row, std::int64_t k, float* out) {
  with_blocks(type, [&](auto blocks) { expand_row<decltype(blocks)>(static_cast<const Byte*>(row), k, out); });
}

}  // namespace

const GgmlKernels& ggml_table() {
  static const GgmlKernels table{dots, kManyRegisters ? dots_two : nullptr, expand};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const GgmlKernels&, ggml_kernels, ggml_table)
#endif
