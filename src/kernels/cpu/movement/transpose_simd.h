#pragma once
// Per-target inner loops of transposition; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

// y[j * ldy + i] = x[i * ldx + j] for i < rows, j < columns; elements aligned to their size.
template <class T>
using TransposeFn = void (*)(const T* x, std::int64_t ldx, T* y, std::int64_t ldy, std::int64_t rows, std::int64_t columns);

struct TransposeKernels {
  TransposeFn<std::uint8_t> bytes1;
  TransposeFn<std::uint16_t> bytes2;
  TransposeFn<std::uint32_t> bytes4;
  TransposeFn<std::uint64_t> bytes8;
};

const TransposeKernels& transpose_kernels();

}  // namespace sdx::cpu
