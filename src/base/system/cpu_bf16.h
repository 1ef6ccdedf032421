#pragma once

#include "base/system/cpu_features.h"
#include "base/tools_api.h"

namespace sdx {

// Whether `isa` may use dot products of bfloat16 (AVX512-BF16, Arm's BF16): the machine has them, and SDX_CPU_BF16 is not "0".
SDX_TOOLS_API bool use_bf16(Isa isa);

}  // namespace sdx
