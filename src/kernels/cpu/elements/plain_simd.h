#pragma once
// One table of the functions behind plain_unary_row() and plain_binary_row() per instruction set.

#include "kernels/cpu/elements/functions.h"

namespace sdx::cpu {

struct PlainKernels {
  UnaryRow (*unary)(UnaryFn fn, DataType type);
  BinaryRow (*binary)(BinaryFn fn, DataType type);
};

const PlainKernels& plain_kernels();

}  // namespace sdx::cpu
