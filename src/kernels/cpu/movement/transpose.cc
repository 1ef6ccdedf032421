#include "kernels/cpu/movement/transpose.h"

#include <algorithm>
#include <cstring>

#include "base/copy_bytes.h"
#include "base/thread_pool.h"
#include "kernels/cpu/movement/transpose_simd.h"

namespace sdx::cpu {
namespace {

constexpr int kMaxRank = 32;

// A dense side with extents `dims` and a strided side, outermost axis first. Adjacent axes that step evenly are merged.
struct Walk {
  int rank = 0;
  std::int64_t dims[kMaxRank];
  std::int64_t strides[kMaxRank];
};

Walk merge(int rank, const std::int64_t* dims, const std::int64_t* strides) {
  Walk w;
  for (int i = 0; i < rank; ++i) {
    if (dims[i] == 1) continue;
    if (w.rank > 0 && w.strides[w.rank - 1] == strides[i] * dims[i]) {
      w.dims[w.rank - 1] *= dims[i];
      w.strides[w.rank - 1] = strides[i];
    } else {
      w.dims[w.rank] = dims[i];
      w.strides[w.rank] = strides[i];
      ++w.rank;
    }
  }
  if (w.rank == 0) {
    w.rank = 1;
    w.dims[0] = 1;
    w.strides[0] = 1;
  }
  return w;
}

template <std::size_t kSize>
void gather_row(const char* src, std::int64_t stride, char* dst, std::int64_t n) {
  if (stride == 0) {
    for (std::int64_t i = 0; i < n; ++i) std::memcpy(dst + i * static_cast<std::int64_t>(kSize), src, kSize);
    return;
  }
  const std::int64_t step = stride * static_cast<std::int64_t>(kSize);
  for (std::int64_t i = 0; i < n; ++i) std::memcpy(dst + i * static_cast<std::int64_t>(kSize), src + i * step, kSize);
}
template <std::size_t kSize>
void scatter_row(const char* src, char* dst, std::int64_t stride, std::int64_t n) {
  const std::int64_t step = stride * static_cast<std::int64_t>(kSize);
  for (std::int64_t i = 0; i < n; ++i) std::memcpy(dst + i * step, src + i * static_cast<std::int64_t>(kSize), kSize);
}

using GatherFn = void (*)(const char*, std::int64_t, char*, std::int64_t);
using ScatterFn = void (*)(const char*, char*, std::int64_t, std::int64_t);

GatherFn gather_of(std::size_t size) {
  switch (size) {
    case 1: return gather_row<1>;
    case 2: return gather_row<2>;
    case 4: return gather_row<4>;
    case 8: return gather_row<8>;
    default: return gather_row<16>;
  }
}
ScatterFn scatter_of(std::size_t size) {
  switch (size) {
    case 1: return scatter_row<1>;
    case 2: return scatter_row<2>;
    case 4: return scatter_row<4>;
    case 8: return scatter_row<8>;
    default: return scatter_row<16>;
  }
}

// Calls row(dense offset, strided offset), both in elements, for every innermost row of [begin, end).
template <class Row>
void walk_rows(const Walk& w, std::int64_t begin, std::int64_t end, Row&& row) {
  if (w.rank == 2) {
    for (std::int64_t r = begin; r < end; ++r) row(r * w.dims[1], r * w.strides[0]);
    return;
  }
  std::int64_t index[kMaxRank] = {};
  std::int64_t rest = begin;
  std::int64_t at = 0;
  for (int i = w.rank - 2; i >= 0; --i) {
    index[i] = rest % w.dims[i];
    rest /= w.dims[i];
    at += index[i] * w.strides[i];
  }
  const std::int64_t inner = w.dims[w.rank - 1];
  for (std::int64_t r = begin; r < end; ++r) {
    row(r * inner, at);
    for (int i = w.rank - 2; i >= 0; --i) {
      at += w.strides[i];
      if (++index[i] < w.dims[i]) break;
      index[i] = 0;
      at -= w.strides[i] * w.dims[i];
    }
  }
}

template <class Row>
void for_rows(const Walk& w, std::size_t size, Row&& row) {
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < w.rank; ++i) rows *= w.dims[i];
  const std::int64_t bytes = std::max<std::int64_t>(1, w.dims[w.rank - 1] * static_cast<std::int64_t>(size));
  parallel_for(rows, std::max<std::int64_t>(1, 65536 / bytes),
               [&](std::int64_t begin, std::int64_t end) { walk_rows(w, begin, end, row); });
}

bool empty(int rank, const std::int64_t* dims) {
  for (int i = 0; i < rank; ++i) {
    if (dims[i] <= 0) return true;
  }
  return false;
}

// Computes y[j, i] = x[i, j] in blocks that stay in cache: 32 rows and columns of the strided side are 32 pages at most.
template <std::size_t kSize>
void transpose_block(const char* x, std::int64_t ldx, char* y, std::int64_t ldy, std::int64_t rows, std::int64_t columns) {
  constexpr auto kS = static_cast<std::int64_t>(kSize);
  constexpr std::int64_t kBlock = 32;
  for (std::int64_t i0 = 0; i0 < rows; i0 += kBlock) {
    const std::int64_t ie = std::min(rows, i0 + kBlock);
    for (std::int64_t j0 = 0; j0 < columns; j0 += kBlock) {
      const std::int64_t je = std::min(columns, j0 + kBlock);
      for (std::int64_t j = j0; j < je; ++j) {
        for (std::int64_t i = i0; i < ie; ++i) std::memcpy(y + (j * ldy + i) * kS, x + (i * ldx + j) * kS, kSize);
      }
    }
  }
}

// Returns false if the elements are not aligned to their size.
template <class T>
bool transpose_aligned(TransposeFn<T> fn, const char* x, std::int64_t ldx, char* y, std::int64_t ldy, std::int64_t rows,
                       std::int64_t columns) {
  const auto aligned = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % sizeof(T) == 0; };
  if (!aligned(x) || !aligned(y)) return false;
  fn(reinterpret_cast<const T*>(x), ldx, reinterpret_cast<T*>(y), ldy, rows, columns);
  return true;
}

void transpose_2d(const char* x, std::int64_t ldx, char* y, std::int64_t ldy, std::int64_t rows, std::int64_t columns,
                  std::size_t size) {
  const TransposeKernels& k = transpose_kernels();
  switch (size) {
    case 1: transpose_aligned(k.bytes1, x, ldx, y, ldy, rows, columns); return;
    case 2:
      if (!transpose_aligned(k.bytes2, x, ldx, y, ldy, rows, columns)) transpose_block<2>(x, ldx, y, ldy, rows, columns);
      return;
    case 4:
      if (!transpose_aligned(k.bytes4, x, ldx, y, ldy, rows, columns)) transpose_block<4>(x, ldx, y, ldy, rows, columns);
      return;
    case 8:
      if (!transpose_aligned(k.bytes8, x, ldx, y, ldy, rows, columns)) transpose_block<8>(x, ldx, y, ldy, rows, columns);
      return;
    default: return transpose_block<16>(x, ldx, y, ldy, rows, columns);
  }
}

// A copy of which one side is dense; on the other, the elements of a row are `stride` apart.
struct StridedCopy {
  Walk walk;
  std::int64_t size;           // of an element
  std::int64_t inner, stride;  // of a row

  StridedCopy(std::size_t element_size, int rank, const std::int64_t* dims, const std::int64_t* strides)
      : walk(merge(rank, dims, strides)),
        size(static_cast<std::int64_t>(element_size)),
        inner(walk.dims[walk.rank - 1]),
        stride(walk.strides[walk.rank - 1]) {}
};

}  // namespace

void copy_strided(const void* x, void* y, std::size_t element_size, int rank, const std::int64_t* dims,
                  const std::int64_t* x_strides) {
  if (empty(rank, dims)) return;
  const StridedCopy c(element_size, rank, dims, x_strides);
  const auto* src = static_cast<const char*>(x);
  auto* dst = static_cast<char*>(y);
  const GatherFn gather = gather_of(element_size);
  // Cuts a single long row into parts, which would otherwise stay on one thread.
  if (c.walk.rank == 1) {
    parallel_for(c.inner, 65536 / c.size, [&](std::int64_t b, std::int64_t e) {
      if (c.stride == 1) {
        std::memcpy(dst + b * c.size, src + b * c.size, static_cast<std::size_t>((e - b) * c.size));
      } else {
        gather(src + b * c.stride * c.size, c.stride, dst + b * c.size, e - b);
      }
    });
    return;
  }
  for_rows(c.walk, element_size, [&](std::int64_t dense, std::int64_t at) {
    if (c.stride == 1) {
      copy_bytes(dst + dense * c.size, src + at * c.size, static_cast<std::size_t>(c.inner * c.size));
    } else {
      gather(src + at * c.size, c.stride, dst + dense * c.size, c.inner);
    }
  });
}

void copy_strided_to(const void* x, void* y, std::size_t element_size, int rank, const std::int64_t* dims,
                     const std::int64_t* y_strides) {
  if (empty(rank, dims)) return;
  const StridedCopy c(element_size, rank, dims, y_strides);
  const auto* src = static_cast<const char*>(x);
  auto* dst = static_cast<char*>(y);
  const ScatterFn scatter = scatter_of(element_size);
  if (c.walk.rank == 1) {
    parallel_for(c.inner, 65536 / c.size, [&](std::int64_t b, std::int64_t e) {
      if (c.stride == 1) {
        std::memcpy(dst + b * c.size, src + b * c.size, static_cast<std::size_t>((e - b) * c.size));
      } else {
        scatter(src + b * c.size, dst + b * c.stride * c.size, c.stride, e - b);
      }
    });
    return;
  }
  for_rows(c.walk, element_size, [&](std::int64_t dense, std::int64_t at) {
    if (c.stride == 1) {
      copy_bytes(dst + at * c.size, src + dense * c.size, static_cast<std::size_t>(c.inner * c.size));
    } else {
      scatter(src + dense * c.size, dst + at * c.size, c.stride, c.inner);
    }
  });
}

void transpose(const void* x, void* y, std::size_t element_size, int rank, const std::int64_t* dims, const int* perm) {
  if (empty(rank, dims)) return;
  std::int64_t x_strides[kMaxRank];
  std::int64_t out_dims[kMaxRank];
  std::int64_t out_strides[kMaxRank];
  std::int64_t step = 1;
  for (int i = rank - 1; i >= 0; --i) {
    x_strides[i] = step;
    step *= dims[i];
  }
  for (int i = 0; i < rank; ++i) {
    out_dims[i] = dims[perm[i]];
    out_strides[i] = x_strides[perm[i]];
  }
  const Walk w = merge(rank, out_dims, out_strides);
  if (w.strides[w.rank - 1] == 1 || w.rank == 1) return copy_strided(x, y, element_size, rank, out_dims, out_strides);
  // x's contiguous axis is an outer axis of y: transposes these two in blocks, with loops over the others.
  int contiguous = w.rank - 2;
  while (contiguous >= 0 && w.strides[contiguous] != 1) --contiguous;
  if (contiguous < 0) return copy_strided(x, y, element_size, rank, out_dims, out_strides);
  const auto size = static_cast<std::int64_t>(element_size);
  std::int64_t y_strides[kMaxRank];
  step = 1;
  for (int i = w.rank - 1; i >= 0; --i) {
    y_strides[i] = step;
    step *= w.dims[i];
  }
  const std::int64_t rows = w.dims[w.rank - 1];
  const std::int64_t columns = w.dims[contiguous];
  const std::int64_t ldx = w.strides[w.rank - 1];
  const std::int64_t ldy = y_strides[contiguous];
  // Outer loops: the remaining axes and pieces of the columns.
  constexpr std::int64_t kPiece = 64;
  const std::int64_t pieces = (columns + kPiece - 1) / kPiece;
  std::int64_t outer = pieces;
  for (int i = 0; i + 1 < w.rank; ++i) outer *= i == contiguous ? 1 : w.dims[i];
  const std::int64_t bytes = rows * std::min(columns, kPiece) * size;
  parallel_for(outer, std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(1, bytes)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t o = begin; o < end; ++o) {
                   const std::int64_t c0 = o % pieces * kPiece;
                   std::int64_t rest = o / pieces;
                   std::int64_t from = c0;
                   std::int64_t to = c0 * ldy;
                   for (int i = w.rank - 2; i >= 0; --i) {
                     if (i == contiguous) continue;
                     const std::int64_t index = rest % w.dims[i];
                     rest /= w.dims[i];
                     from += index * w.strides[i];
                     to += index * y_strides[i];
                   }
                   transpose_2d(static_cast<const char*>(x) + from * size, ldx, static_cast<char*>(y) + to * size, ldy, rows,
                                std::min(kPiece, columns - c0), element_size);
                 }
               });
}

}  // namespace sdx::cpu
