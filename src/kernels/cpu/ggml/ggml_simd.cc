#include "kernels/cpu/ggml/ggml_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/ggml/ggml_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/ggml/ggml_blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// Sums of M rows of x. One row alone has a chain of dependent multiply-adds: its steps go round the accumulators that other rows
// would use.
template <int M>
struct RowSums {
  VF s0, s1, s2, s3;
  const float* x;
  std::int64_t ldx;

  HWY_INLINE RowSums(const float* x_in, std::int64_t ldx_in) : s0(hn::Zero(DF())), s1(s0), s2(s0), s3(s0), x(x_in), ldx(ldx_in) {}
  // `turn` is a constant once loops are unrolled.
  HWY_INLINE void add(int turn, VF w, std::int64_t at) {
    const DF d;
    const float* p = x + at;
    const VF v = hn::LoadU(d, p);
    if constexpr (M == 1) {
      switch (turn % 4) {
        case 0: s0 = hn::MulAdd(w, v, s0); break;
        case 1: s1 = hn::MulAdd(w, v, s1); break;
        case 2: s2 = hn::MulAdd(w, v, s2); break;
        default: s3 = hn::MulAdd(w, v, s3); break;
      }
    } else {
      s0 = hn::MulAdd(w, v, s0);
      s1 = hn::MulAdd(w, hn::LoadU(d, p + ldx), s1);
      if constexpr (M > 2) s2 = hn::MulAdd(w, hn::LoadU(d, p + 2 * ldx), s2);
      if constexpr (M > 3) s3 = hn::MulAdd(w, hn::LoadU(d, p + 3 * ldx), s3);
    }
  }
  HWY_INLINE void store(float* out) const {
    const DF d;
    if constexpr (M == 1) {
      out[0] = sum_lanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
    } else {
      out[0] = sum_lanes(d, s0);
      out[1] = sum_lanes(d, s1);
      if constexpr (M > 2) out[2] = sum_lanes(d, s2);
      if constexpr (M > 3) out[3] = sum_lanes(d, s3);
    }
  }
};

template <class Blocks, int M>
void dots_of(const Byte* row, std::int64_t k, const float* x, std::int64_t ldx, float* out) {
  RowSums<M> sums(x, ldx);
  std::int64_t at = 0;
  // Blocks of 32 go by twos, so that neighbours have sums of their own.
  constexpr int kTwo = Blocks::kElements == 32 && !Blocks::kPlain && M == 1 ? 2 : 1;
  for (; at + kTwo * Blocks::kElements <= k; at += kTwo * Blocks::kElements, row += kTwo * Blocks::kBytes) {
    // Four kilobytes ahead: the stream is read once, and the hardware's own prefetch stops at page borders.
    for (int line = 0; line < kTwo * Blocks::kBytes; line += 64) {
      __builtin_prefetch(
          reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(row) + 4096 + static_cast<unsigned>(line)));
    }
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

template <class Blocks>
void dots_rows(const Byte* row, std::int64_t k, const float* x, std::int64_t ldx, std::int64_t m, float* out) {
  switch (m) {
    case 1: return dots_of<Blocks, 1>(row, k, x, ldx, out);
    case 2: return dots_of<Blocks, 2>(row, k, x, ldx, out);
    case 3: return dots_of<Blocks, 3>(row, k, x, ldx, out);
    default: return dots_of<Blocks, 4>(row, k, x, ldx, out);
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
  }
}

void dots(GgmlType type, const void* row, std::int64_t k, const float* x, std::int64_t ldx, std::int64_t m, float* out) {
  with_blocks(type, [&](auto blocks) { dots_rows<decltype(blocks)>(static_cast<const Byte*>(row), k, x, ldx, m, out); });
}

void expand(GgmlType type, const void* row, std::int64_t k, float* out) {
  with_blocks(type, [&](auto blocks) { expand_row<decltype(blocks)>(static_cast<const Byte*>(row), k, out); });
}

}  // namespace

const GgmlKernels& ggml_table() {
  static const GgmlKernels table{dots, expand};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const GgmlKernels&, ggml_kernels, ggml_table)
#endif
