#pragma once
// Matrix products of all element types: kernel.

#include "array/emitter.h"

namespace sdx::array::detail {

// Inputs: A, B, of one type, rank 2 at least; leading axes broadcast. Attributes: "trans_a", "trans_b".
const ArrayOp& matmul_op();

// c[m, n] = op(a) op(b) of any numeric type; row-major without gaps.
struct Product {
  Dtype type = Dtype::float32;
  std::int64_t m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
};
// `batch` products; product i is of the matrices a_at[i] and b_at[i] (numbers of matrices), to matrix i of c.
void multiply(const Product& p, const void* a, const void* b, void* c, const std::vector<std::int64_t>& a_at,
              const std::vector<std::int64_t>& b_at);

}  // namespace sdx::array::detail
