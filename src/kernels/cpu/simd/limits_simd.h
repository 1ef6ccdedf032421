#pragma once
// What a core can do at most, for judging kernels: loops that do nothing but multiply-add, or nothing but read.
//
// Thread-safe; both work on the calling thread alone.

#include <cstdint>

namespace sdx::cpu {

// `rounds` times as many fused multiply-adds in registers, of independent chains, as hide their latency. Returns the
// floating-point operations done (two for each multiply-add).
std::int64_t fma_rounds(std::int64_t rounds);

// Reads `count` floats (a multiple of 4096) once, in order; float alignment. Returns their sum.
float read_once(const float* x, std::int64_t count);

}  // namespace sdx::cpu
