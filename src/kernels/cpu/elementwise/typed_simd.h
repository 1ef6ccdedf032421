#pragma once
// One table of the functions behind typed.h per instruction set; single-threaded ranges.

#include <cstdint>

#include "kernels/cpu/elementwise/typed.h"

namespace sdx::cpu {

// Steps of 0 or 1.
using SelectRow = void (*)(const std::uint8_t* condition, std::int64_t condition_step, const void* a, std::int64_t a_step,
                           const void* b, std::int64_t b_step, void* y, std::int64_t n);

struct TypedKernels {
  PairRow (*pair)(Pair op, Elem elem);
  MapRow (*map)(Map op, Elem elem);
  SelectRow (*select)(int bytes);
};

const TypedKernels& typed_kernels();

}  // namespace sdx::cpu
