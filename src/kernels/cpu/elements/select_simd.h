#pragma once
// The rows behind select_row() per instruction set.

#include "kernels/cpu/elements/functions.h"

namespace sdx::cpu {

struct SelectKernels {
  SelectRow (*row)(int bytes);
};

const SelectKernels& select_kernels();

}  // namespace sdx::cpu
