#include "base/system/cpu_bf16.h"

#include <cstdlib>
#include <string_view>

namespace sdx {
namespace {

bool switched_off() {
  const char* text = std::getenv("SDX_CPU_BF16");
  return text != nullptr && std::string_view(text) == "0";
}

}  // namespace

bool use_bf16(Isa isa) {
  static const bool on = !switched_off();
  const CpuFeatures& f = cpu_features();
  return on && ((isa == Isa::avx512 && f.avx512_bf16) || (isa == Isa::neon && f.neon_bf16));
}

}  // namespace sdx
