#pragma once
// For #if in files that are compiled once per instruction set: whether vectors have 512 bits. Better targets of an architecture
// have lower numbers; if the compiler is told to use a newer processor, the baseline's number is below AVX3's (AVX3_DL,
// AVX3_ZEN4, AVX3_SPR).
#define SDX_512_BITS (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3)
