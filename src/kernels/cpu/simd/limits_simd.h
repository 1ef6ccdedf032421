#pragma once
// The most that a core can do, for judging kernels: loops that only multiply-add, or only read.
//
// Thread-safe; both run on the calling thread only.

#include <cstdint>

namespace sdx::cpu {

// `rounds` rounds of fused multiply-adds in registers, in enough independent chains to hide their latency. Returns the number of
// floating-point operations (two per multiply-add).
std::int64_t fma_rounds(std::int64_t rounds);

// Reads `count` floats (a multiple of 4096) once, in order; float alignment. Returns their sum.
float read_once(const float* x, std::int64_t count);

}  // namespace sdx::cpu
