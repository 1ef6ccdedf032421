#pragma once
// Products with packed weights by one level of Strassen's scheme: seven products of quarters of the matrices instead of eight.
//
// Rows and columns pair up (row i with row i + m/2), so rounding errors of one reach the other. Pairs of very different magnitude
// are therefore multiplied as gemm_f32 does it, as are rows that hold an infinity or NaN. Sums of at most 64 products make up for
// the scheme, which doubles the rounding of plain sums. Results depend on the data, the extents and the instruction set alone:
// they are the same for any number of threads.

#include <cstdint>
#include <mutex>
#include <vector>

#include "kernels/cpu/gemm/gemm.h"

namespace sdx::cpu {

// Which of the weights' columns are even enough. One for each matrix; the first product looks at them.
class StrassenColumns {
 public:
  // For each pair of panels whether it takes part.
  const std::vector<std::uint8_t>& even(const float* packed_b, std::int64_t k, std::int64_t n);

 private:
  std::once_flag once_;
  std::vector<std::uint8_t> even_;
};

// Whether the extents suit the scheme: K in even blocks, at least two panels of columns; and whether there are rows enough for it
// to be faster than gemm_f32.
bool strassen_fits(std::int64_t k, std::int64_t n);
bool strassen_pays(std::int64_t m, std::int64_t k, std::int64_t n);

// As gemm_f32 with packed_b and untransposed a, with alpha and all scales 1 and a bias of columns, for what strassen_fits.
void gemm_strassen_f32(const GemmArgs& args, StrassenColumns& columns);

}  // namespace sdx::cpu
