#pragma once
// Products of bfloat16 matrices with the instruction that multiplies pairs of bfloat16 and adds the products to a float:
// vdpbf16ps of AVX512-BF16, bfdot of Armv8.6. Products of two bfloat16 are exact in float, so only sums round: to nearest even on
// x86; on Arm to odd (an inexact sum gets 1 as its last bit). Numbers below 1.18e-38 count as zero, factors as well as sums
// (Intel SDM, VDPBF16PS; Arm ARM, BFDOT).

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/gemm/gemm_half.h"

namespace sdx::cpu {

// Whether both cpu_isa() and the machine support the instruction. If not, nothing else here may be called.
bool has_bf16_dots();

// Like half_pack(): packs op(W)[k, n] with rows `ld` apart (W is [n, k] if `trans`), any alignment, into panels for bf16_gemm().
std::size_t bf16_packed_bytes(std::int64_t k, std::int64_t n);
void bf16_pack(const void* w, std::int64_t ld, bool trans, std::int64_t k, std::int64_t n, void* packed);
// The same for floats, rounded as bf16_gemm() rounds `a`. `packed` needs only 2-byte alignment (4 if `trans`). Work is split over
// current_pool().
void bf16_pack_rounded(const float* w, std::int64_t ld, bool trans, std::int64_t k, std::int64_t n, void* packed);

// Like half_gemm(), with weights from bf16_pack() and with each element of `a` rounded to bfloat16 first, which does not change
// bfloat16 values. args.type must be bfloat16. Sums run in float, in blocks of 512 along K. Thread-safe; work is split over
// current_pool().
void bf16_gemm(const HalfGemmArgs& args);

}  // namespace sdx::cpu
