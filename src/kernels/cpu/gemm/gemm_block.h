#pragma once
// Blocks of a float product on one thread, and how a product is cut into blocks. For gemm_f32(), and for products whose right
// operand is computed rather than read (patches of images, weights of fewer bits).

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/gemm_simd.h"
#include "kernels/cpu/simd/cuts.h"

namespace sdx::cpu {

// Distances between neighbouring rows and columns of op(X).
struct Strides {
  std::int64_t row;
  std::int64_t column;
};
inline Strides strides_of(std::int64_t ld, bool trans) { return trans ? Strides{1, ld} : Strides{ld, 1}; }

// A panel of 16 columns takes 16 KB, half of a typical first-level cache. 256 is as fast as 384 (both 83.5 to 85.3 GFLOP/s of
// 91.7 over 16 shapes of transformers) and rounds less: its error is 0.82 of that of 384.
inline constexpr std::int64_t kGemmKBlock = 256;
inline constexpr std::int64_t kGemmNBlock = 256;  // columns packed on the fly at a time: 262 KB, in the second-level cache
inline constexpr std::int64_t kGemmMBlock = 252;  // rows packed on the fly at a time: 258 KB; a multiple of 6, 12 and 14
inline constexpr std::int64_t kShortPanel = 16;   // columns of a panel of vectors of at most 256 bits

inline Cuts k_cuts(std::int64_t k) { return Cuts(k, kGemmKBlock); }

// Provides blocks of a right operand that is not packed in advance: writes rows [k0, k0 + kc) of columns [n0, n0 + nb) as panels,
// as pack_b_panels() does. Called concurrently.
struct BPacker {
  const void* context = nullptr;
  void (*pack)(const void* context, std::int64_t k0, std::int64_t kc, std::int64_t n0, std::int64_t nb, float* out) = nullptr;
};

// Rows that a product may be cut between: tiles, or blocks of 32 rows where tiles of bfloat16 multiply (gemm_split.h).
class RowUnits {
 public:
  RowUnits(const GemmKernels& kernels, const GemmArgs& args);
  std::int64_t count() const { return block_ != 0 ? up_div(tiles_.total, block_) : tiles_.parts; }
  std::int64_t begin(std::int64_t i) const { return block_ != 0 ? std::min(i * block_, tiles_.total) : tiles_.begin(i); }

 private:
  Cuts tiles_;
  std::int64_t block_ = 0;
};

// Computes C[m0:m1, n0:n1] on this thread. n0 must be a multiple of nr; m0 and m1 must be tile borders if packed_a is used.
// `packer` may be null if args.packed_b is set or args.b is used.
void gemm_block(const GemmKernels& kernels, const GemmArgs& args, const BPacker* packer, std::int64_t m0, std::int64_t m1,
                std::int64_t n0, std::int64_t n1);

// A rectangle of C, for which some block of K is multiplied.
struct GemmPart {
  std::int64_t row, rows, column, columns;
  bool first_k = true, last_k = true;  // whether it is the first block of K, and the last
};

// Computes that part of C from its products, whose rows are `ld` apart: applies alpha and the epilogue. Later blocks of K are
// added to what C holds.
void gemm_finish(const GemmKernels& kernels, const GemmArgs& args, const GemmPart& part, const float* product, std::int64_t ld);

// Multiplies all rows by the right operand from `packer`, split by columns over the current pool: each thread unpacks its part
// once.
void gemm_unpacking(const GemmArgs& args, const BPacker& packer);

// Cuts [m, n] into tasks for the current pool; `rows` and `columns` count the parts. `packed`: the right operand is already in
// panels, so cutting the rows only costs reading it again.
struct TaskGrid {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
};
TaskGrid choose_grid(const GemmKernels& kernels, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, bool packed);
// The same for `batch` products of floats, which tiles of bfloat16 may multiply.
TaskGrid choose_float_grid(const GemmKernels& kernels, const GemmArgs& args, std::int64_t batch);

}  // namespace sdx::cpu
