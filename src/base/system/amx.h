#pragma once
// Intel's AMX: tiles of 16 rows by 64 bytes (Intel SDM, volume 1, chapter 18).

#include "base/tools_api.h"

namespace sdx {

// Whether products of bytes may use tiles. This requires a processor with AMX-TILE and AMX-INT8, registers that the system grants
// this process (the first call asks for them), cpu_isa() avx512 with use_vnni(), and SDX_CPU_AMX other than "0". Thread-safe.
SDX_TOOLS_API bool use_amx();

// The same for products of bfloat16 (AMX-BF16), which every processor so far has that has AMX-INT8. SDX_CPU_AMX "int8" allows
// bytes only.
SDX_TOOLS_API bool use_amx_bf16();

// For tests: false makes both functions return false; true restores the rules above. Not while kernels run.
void allow_amx(bool allowed);

}  // namespace sdx
