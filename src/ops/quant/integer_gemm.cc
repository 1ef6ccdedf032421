#include "ops/quant/integer_gemm.h"

#include <algorithm>

#include "base/error.h"
#include "base/thread_pool.h"
#include "ops/math/broadcast.h"
#include "ops/quant/quant_codec.h"

namespace sdx::ops {
namespace {

// Columns of one tile: four rows of 32-bit sums stay in the first-level cache (4 KiB) with the row of b they share.
constexpr std::int64_t kTile = 256;

// Blocks of eight columns, a trip count known when compiling, become vector code at any optimisation level.
constexpr std::int64_t kBlock = 8;

inline void add_product(std::int16_t x, const std::int16_t* row, std::uint32_t* sum) {
  for (std::int64_t j = 0; j < kBlock; ++j) sum[j] += static_cast<std::uint32_t>(std::int32_t{x} * std::int32_t{row[j]});
}

template <int R>
void gemm_rows(std::int64_t n, std::int64_t k, const std::int16_t* a, std::int64_t lda, const std::int16_t* b, std::int64_t ldb,
               std::int32_t* acc, std::int64_t ldc) {
  std::uint32_t sums[R][kTile];
  for (int r = 0; r < R; ++r) std::fill(sums[r], sums[r] + n, 0u);
  const std::int64_t whole = n - n % kBlock;
  for (std::int64_t p = 0; p < k; ++p) {
    const std::int16_t* row = b + p * ldb;
    for (int r = 0; r < R; ++r) {
      const std::int16_t x = a[r * lda + p];
      if (x == 0) continue;
      std::uint32_t* sum = sums[r];
      for (std::int64_t j = 0; j < whole; j += kBlock) add_product(x, row + j, sum + j);
      for (std::int64_t j = whole; j < n; ++j) sum[j] += static_cast<std::uint32_t>(std::int32_t{x} * std::int32_t{row[j]});
    }
  }
  for (int r = 0; r < R; ++r) {
    for (std::int64_t j = 0; j < n; ++j) acc[r * ldc + j] = static_cast<std::int32_t>(sums[r][j]);
  }
}

Shape with_axes(const Shape& s, bool left) {
  if (s.size() != 1) return s;
  return left ? Shape{1, s[0]} : Shape{s[0], 1};
}

// The matrix of an operand for each matrix of the result.
std::vector<std::int64_t> batch_map(const Shape& own, const Shape& batch) {
  std::vector<std::int64_t> map;
  map.reserve(static_cast<std::size_t>(element_count(batch)));
  for_each_broadcast<1>({own}, batch, [&](const auto& at, const auto& step, std::int64_t, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) map.push_back(at[0] + i * step[0]);
  });
  return map;
}

// One matrix with its zero points taken off. `by_row`: a's zero points go with rows, b's with columns.
void widen_matrix(const Tensor& t, std::int64_t matrix, std::int64_t rows, std::int64_t columns,
                  const std::vector<std::int32_t>& zero, const QuantParam& param, bool by_row, std::int16_t* out) {
  const std::int64_t base = matrix * rows * columns;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int32_t z = zero.empty()                 ? 0
                           : by_row || param.count == 1 ? zero[static_cast<std::size_t>(param.index(matrix, r))]
                                                        : 0;
    widen(t.dtype(), t.data(), base + r * columns, columns, z, out + r * columns);
    if (by_row || zero.empty() || param.count == 1) continue;
    const std::int32_t* z_row = zero.data() + param.index(matrix, 0);
    for (std::int64_t j = 0; j < columns; ++j) out[r * columns + j] = static_cast<std::int16_t>(out[r * columns + j] - z_row[j]);
  }
}

}  // namespace

void integer_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const std::int16_t* a, std::int64_t lda, const std::int16_t* b,
                  std::int64_t ldb, std::int32_t* acc, std::int64_t ldc) {
  for (std::int64_t j = 0; j < n; j += kTile) {
    const std::int64_t width = std::min(kTile, n - j);
    std::int64_t i = 0;
    for (; i + 4 <= m; i += 4) gemm_rows<4>(width, k, a + i * lda, lda, b + j, ldb, acc + i * ldc + j, ldc);
    for (; i < m; ++i) gemm_rows<1>(width, k, a + i * lda, lda, b + j, ldb, acc + i * ldc + j, ldc);
  }
}

MatMulShapes matmul_shapes(const Shape& a, const Shape& b) {
  if (a.empty() || b.empty()) {
    fail(ErrorCode::runtime_failure, "matrix product of {} and {}: operands must have at least one axis", to_string(a),
         to_string(b));
  }
  const Shape left = with_axes(a, true);
  const Shape right = with_axes(b, false);
  MatMulShapes s;
  s.m = left[left.size() - 2];
  s.k = left.back();
  s.n = right.back();
  if (right[right.size() - 2] != s.k) {
    fail(ErrorCode::runtime_failure, "matrix product of {} and {}: {} columns do not match {} rows", to_string(a), to_string(b),
         s.k, right[right.size() - 2]);
  }
  s.outer_a.assign(left.begin(), left.end() - 2);
  s.outer_b.assign(right.begin(), right.end() - 2);
  s.out = broadcast_shapes(s.outer_a, s.outer_b);
  if (a.size() > 1) s.out.push_back(s.m);
  if (b.size() > 1) s.out.push_back(s.n);
  return s;
}

void MatMulShapes::plan_batches() {
  if (m == 0 || n == 0) return;
  const Shape batch = broadcast_shapes(outer_a, outer_b);
  batch_a = batch_map(outer_a, batch);
  batch_b = batch_map(outer_b, batch);
}

void infer_matmul(InferContext& c, std::size_t a, std::size_t b, DataType elem) {
  const SymShape* sa = c.shape(a);
  const SymShape* sb = c.shape(b);
  if (sa == nullptr || sb == nullptr) return c.output(0, elem);
  if (sa->empty() || sb->empty())
    c.fail("matrix product: operands must have at least one axis, received {} and {}", to_string(*sa), to_string(*sb));
  SymShape left = *sa;
  SymShape right = *sb;
  if (sa->size() == 1) left.insert(left.begin(), Dim(1));
  if (sb->size() == 1) right.push_back(Dim(1));
  const Dim& k = left.back();
  const Dim& rows = right[right.size() - 2];
  if (k.is_const() && rows.is_const() && k.value() != rows.value()) {
    c.fail("matrix product of {} and {}: {} columns do not match {} rows", to_string(*sa), to_string(*sb), k.value(),
           rows.value());
  }
  SymShape out = broadcast_shapes(SymShape(left.begin(), left.end() - 2), SymShape(right.begin(), right.end() - 2));
  if (sa->size() > 1) out.push_back(left[left.size() - 2]);
  if (sb->size() > 1) out.push_back(right.back());
  c.output(0, elem, std::move(out));
}

QuantParam quant_param(const char* what, const Tensor& param, std::int64_t lines, std::int64_t matrices) {
  const QuantParam p{param.size(), lines};
  if (p.count == 1 || p.count == lines || p.count == lines * matrices) return p;
  fail(ErrorCode::invalid_model,
       "{} has shape {}; expected a scalar, one element for each of the {} rows or columns, or one for each of "
       "those of the {} matrices",
       what, to_string(param.shape()), lines, matrices);
}

void widen(DataType type, const void* data, std::int64_t begin, std::int64_t count, std::int32_t zero, std::int16_t* out) {
  const auto z = static_cast<std::int16_t>(zero);
  if (type == DataType::int8) {
    const auto* in = static_cast<const std::int8_t*>(data) + begin;
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<std::int16_t>(in[i] - z);
  } else {
    SDX_ASSERT(type == DataType::uint8);
    const auto* in = static_cast<const std::uint8_t*>(data) + begin;
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<std::int16_t>(in[i] - z);
  }
}

std::vector<std::int32_t> integer_matmul(const OpContext& c, const MatMulShapes& s, const Tensor& a, const Tensor* a_zero,
                                         const Tensor& b, const Tensor* b_zero) {
  const std::int64_t matrices_a = s.m * s.k == 0 ? 0 : a.size() / (s.m * s.k);
  const std::int64_t matrices_b = s.n * s.k == 0 ? 0 : b.size() / (s.n * s.k);
  QuantParam pa;
  QuantParam pb;
  std::vector<std::int32_t> za;
  std::vector<std::int32_t> zb;
  if (a_zero != nullptr) {
    if (a_zero->dtype() != a.dtype()) c.fail("a's zero point is {}, a is {}", name(a_zero->dtype()), name(a.dtype()));
    pa = quant_param("a's zero point", *a_zero, s.m, matrices_a);
    za = decode_ints(*a_zero);
  }
  if (b_zero != nullptr) {
    if (b_zero->dtype() != b.dtype()) c.fail("b's zero point is {}, b is {}", name(b_zero->dtype()), name(b.dtype()));
    pb = quant_param("b's zero point", *b_zero, s.n, matrices_b);
    zb = decode_ints(*b_zero);
  }
  std::vector<std::int32_t> acc(static_cast<std::size_t>(element_count(s.out)));
  if (acc.empty() || s.k == 0) return acc;
  std::vector<std::int16_t> wide_a(static_cast<std::size_t>(s.m * s.k));
  std::vector<std::int16_t> wide_b(static_cast<std::size_t>(s.k * s.n));
  std::int64_t held_b = -1;
  for (std::int64_t i = 0; i < s.batches(); ++i) {
    c.stop().check();
    const std::int64_t ma = s.batch_a[static_cast<std::size_t>(i)];
    const std::int64_t mb = s.batch_b[static_cast<std::size_t>(i)];
    widen_matrix(a, ma, s.m, s.k, za, pa, true, wide_a.data());
    if (mb != held_b) widen_matrix(b, mb, s.k, s.n, zb, pb, false, wide_b.data());
    held_b = mb;
    std::int32_t* out = acc.data() + i * s.m * s.n;
    if (s.m >= 8) {
      parallel_for((s.m + 3) / 4, 1, [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t from = begin * 4;
        const std::int64_t rows = std::min(end * 4, s.m) - from;
        integer_gemm(rows, s.n, s.k, wide_a.data() + from * s.k, s.k, wide_b.data(), s.n, out + from * s.n, s.n);
      });
    } else {
      parallel_for(s.n, 64, [&](std::int64_t begin, std::int64_t end) {
        integer_gemm(s.m, end - begin, s.k, wide_a.data(), s.k, wide_b.data() + begin, s.n, out + begin, s.n);
      });
    }
  }
  return acc;
}

}  // namespace sdx::ops
