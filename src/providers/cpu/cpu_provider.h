#pragma once
// Our own engine.

#include "provider/provider.h"

namespace sdx::cpu {

// Takes every node whose operator exists in this build. Kernels are tried in the order of the kernel table; the reference kernel
// runs what no fast kernel accepts. SDX_CPU_KERNEL=reference (or another kernel's name) leaves out all others, for tests and
// comparisons.
const Provider& provider();

}  // namespace sdx::cpu
