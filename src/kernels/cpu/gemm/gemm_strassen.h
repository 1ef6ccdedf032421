#pragma once
// Products with packed weights by one level of Strassen's algorithm: seven products of quarters of the matrices instead of eight.
//
// Rows and columns pair up (row i with row i + m/2), so rounding errors of one affect the other. Pairs of very different
// magnitude are therefore multiplied as in gemm_f32(), and so are rows with an infinity or NaN. The algorithm doubles the
// rounding errors of plain sums; summing at most 128 products at a time makes up for much of that. Results depend only on the
// data, the extents and the instruction set: they are the same for any number of threads.

#include <atomic>
#include <cstdint>
#include <memory>

#include "kernels/cpu/gemm/gemm.h"

namespace sdx::cpu {

// Records which of the weights' columns are similar enough in magnitude. One object per matrix; the first product fills it.
class StrassenColumns {
 public:
  enum class State : std::uint8_t { unknown, even, uneven };
  explicit StrassenColumns(std::int64_t n);
  // The result for a pair of panels. Several threads may determine it at the same time; all find the same.
  std::atomic<State>& of(std::int64_t pair) { return states_[pair]; }

 private:
  std::unique_ptr<std::atomic<State>[]> states_;
};

// Whether the extents suit the algorithm (K in even blocks, at least two panels of columns), and whether there are enough rows
// for it to be faster than gemm_f32().
bool strassen_fits(std::int64_t k, std::int64_t n);
bool strassen_pays(std::int64_t m, std::int64_t k, std::int64_t n);

// Like gemm_f32() with packed_b or like_packed, untransposed a, alpha and all scales 1, and a bias per column, for extents for
// which strassen_fits() holds.
void gemm_strassen_f32(const GemmArgs& args, StrassenColumns& columns);

}  // namespace sdx::cpu
