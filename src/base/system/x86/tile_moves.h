#pragma once
// <immintrin.h> with _tile_loadd() and _tile_stored() that compile on all systems: GCC's take the stride as `long`, which has 32
// bits on Windows, where the assembler then refuses the address.

#include <immintrin.h>

#include <cstddef>

#if defined(_WIN32) && defined(__GNUC__) && !defined(__clang__)
#undef _tile_loadd
#undef _tile_stored
#define _tile_loadd(dst, base, stride)                                                             \
  __asm__ volatile("tileloadd\t(%0,%1,1), %%tmm" #dst                                              \
                   :                                                                               \
                   : "r"(static_cast<const void*>(base)), "r"(static_cast<std::ptrdiff_t>(stride)) \
                   : "memory")
#define _tile_stored(src, base, stride)                                                      \
  __asm__ volatile("tilestored\t%%tmm" #src ", (%0,%1,1)"                                    \
                   :                                                                         \
                   : "r"(static_cast<void*>(base)), "r"(static_cast<std::ptrdiff_t>(stride)) \
                   : "memory")
#endif
